// Fetches a document from an address that a stranger has given. Each name is resolved once, and what it resolves to is checked and
// connected to, so that neither a redirect nor a name that changes its mind leads into the server's own network.

import type { IncomingMessage } from 'node:http'
import { Agent, request as startRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { readBounded } from '../../lib/text/bounded-text.ts'
import { unlessAborted } from '../../lib/wait.ts'
import { withinTime } from '../wait.ts'
import { METADATA_BYTES_MAX, METADATA_MS_MAX, METADATA_REDIRECTS_MAX } from './limits.ts'
import { bareHost, isPublicAddress } from './public-address.ts'
import { type HostAddress, resolveHost } from './resolve-host.ts'

export interface PublicRequestOptions {
  /** All addresses of a name. */
  resolve?: (host: string, ending: AbortSignal) => Promise<HostAddress[]>
  isPublic?: (address: string) => boolean
  /** Asked before each request to a host, redirects included: false refuses it. */
  admit?: (host: string) => boolean
  msMax?: number
  /** Certificates of authorities besides those of the machine. */
  ca?: string
}

export type DocumentFault =
  | 'address_refused'
  | 'scheme_refused'
  | 'host_budget'
  | 'too_many_redirects'
  | 'too_large'
  | 'encoded'
  | 'timeout'
  | 'unreachable'
  | 'status'
  | 'stopped'
export type DocumentAnswer = { ok: true; text: string } | { ok: false; fault: DocumentFault }

/** Why a document is not fetched. */
class Refusal extends Error {
  readonly fault: DocumentFault

  constructor(fault: DocumentFault) {
    super(fault)
    this.fault = fault
  }
}

/** Fetches a document by GET. Does not reject. */
export async function fetchPublicDocument(
  address: string,
  signal: AbortSignal,
  options: PublicRequestOptions = {},
): Promise<DocumentAnswer> {
  const { msMax = METADATA_MS_MAX } = options
  return withinTime(msMax, signal, (ending) => fetchDocument(address, ending, signal, options))
}

async function fetchDocument(
  address: string,
  ending: AbortSignal,
  signal: AbortSignal,
  options: PublicRequestOptions,
): Promise<DocumentAnswer> {
  try {
    let url = new URL(address)
    for (let hops = 0; hops <= METADATA_REDIRECTS_MAX; hops++) {
      const response = await requestOnce(url, ending, options)
      try {
        const next = redirectOf(response, url)
        if (next === null) return { ok: true, text: await readDocument(response) }
        url = next
      } finally {
        // Also of an answer that is not read: its connection would stay.
        response.destroy()
      }
    }
    return { ok: false, fault: 'too_many_redirects' }
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, fault: error.fault }
    return { ok: false, fault: signal.aborted ? 'stopped' : ending.aborted ? 'timeout' : 'unreachable' }
  }
}

/** The address that an answer sends to; null: it is the document. @throws Refusal */
function redirectOf({ statusCode = 0, headers }: IncomingMessage, url: URL): URL | null {
  if (statusCode >= 300 && statusCode < 400 && headers.location !== undefined)
    return new URL(headers.location, url)
  if (statusCode !== 200) throw new Refusal('status')
  return null
}

async function requestOnce(
  url: URL,
  signal: AbortSignal,
  options: PublicRequestOptions,
): Promise<IncomingMessage> {
  const { resolve = resolveHost, isPublic = isPublicAddress, admit = () => true, ca } = options
  if (url.protocol !== 'https:') throw new Refusal('scheme_refused')
  const host = bareHost(url)
  if (!admit(host)) throw new Refusal('host_budget')
  const addresses = ipaddr.isValid(host)
    ? [{ address: host, family: ipaddr.parse(host).kind() === 'ipv6' ? 6 : 4 }]
    : host.includes('.')
      ? await unlessAborted(resolve(host, signal), signal)
      : // A name of the machine or of its network, which name servers are not asked for.
        []
  if (addresses === null) throw signal.reason
  // One that is not is enough: a name of the public Internet has none.
  if (addresses.length === 0 || !addresses.every(({ address }) => isPublic(address)))
    throw new Refusal('address_refused')
  return new Promise((answered, failed) => {
    const request = startRequest(url, {
      signal,
      ca,
      lookup: lookupOf(addresses),
      agent: new Agent({ keepAlive: false }),
      // A compressed body may be small and its text large; and no name or password of the address is sent anywhere.
      headers: { accept: 'application/json', 'accept-encoding': 'identity' },
      auth: undefined,
    })
    request.on('socket', (socket) =>
      socket.on('connect', () => {
        if (!isPublic(socket.remoteAddress ?? '')) request.destroy(new Refusal('address_refused'))
      }),
    )
    request.on('response', answered)
    // A server that says that it speaks another protocol now: the socket is ours from then on, and neither the signal nor an error ends it.
    request.on('upgrade', (_response, socket) => {
      socket.destroy()
      failed(new Refusal('unreachable'))
    })
    request.on('error', failed)
    // However it ends: what has answered or failed before stays so.
    request.on('close', () => failed(new Refusal('unreachable')))
    request.end()
  })
}

/** Gives what was resolved, and checked, before. */
const lookupOf =
  (addresses: readonly HostAddress[]): LookupFunction =>
  (_host, { all }, callback) => {
    const [{ address, family }] = addresses
    if (all === true) callback(null, [...addresses])
    else callback(null, address, family)
  }

/** @throws Refusal where it is larger than the maximum, or compressed all the same */
async function readDocument(response: IncomingMessage): Promise<string> {
  const { 'content-encoding': encoding = 'identity', 'content-length': length = '0' } = response.headers
  if (encoding !== 'identity') throw new Refusal('encoded')
  if (Number(length) > METADATA_BYTES_MAX) throw new Refusal('too_large')
  const bytes = await readBounded(response, METADATA_BYTES_MAX)
  if (bytes === null) throw new Refusal('too_large')
  if (!response.complete) throw new Refusal('unreachable')
  return bytes.toString('utf8')
}
