// Sends a request to another node over HTTP, on connections that are kept, and reads its answer as fast as it is taken. Tells apart what
// has certainly not arrived from what may have.
import type { ClientRequest, IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import type { Method } from '../../http/context.ts'
import { ANOTHER_NODE, NODE_HEADER, RELAY_HEADER } from '../../http/node.ts'
import type { ChunkSource } from '../../http/response/send-chunks.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { lazyPackage } from '../../lib/lazy-package.ts'
import { unlessLate } from '../../lib/wait.ts'
import { ServiceError } from '../../schema/errors.ts'
import { overloaded, UnansweredError } from './errors.ts'
import {
  CONNECT_MS_MAX,
  IDLE_SOCKET_MS_MAX,
  OPEN_ANSWERS_MAX,
  SOCKETS_MAX,
  STALLED_ANSWER_MS_MAX,
  WHOLE_ANSWER_BYTES_MAX,
} from './limits.ts'
import { type NodeAddress, relayValue } from './node-gate.ts'

const http = lazyPackage<typeof import('node:http')>('node:http')

/** A request as another node is to get it. */
export interface PassedRequest {
  method: Method
  path: string
  /** As it was sent, without its question mark. */
  query: string
  /** By name, as they were sent. */
  headers: Readonly<Record<string, string>>
  body: Buffer
  /**
   * `read`: it changes nothing. `keyed`: it has an Idempotency-Key, so that it is carried out once however often it arrives.
   * `once`: it is not tried again where it may have been carried out.
   */
  repeats: 'read' | 'keyed' | 'once'
  /** How long the answer may take to begin. */
  answerMsMax: number
  /** Aborted when nobody waits for the answer any more. */
  signal?: AbortSignal
}

/** The answer of another node. */
export interface PassedAnswer {
  status: number
  /** By name in lower case. */
  headers: Readonly<Record<string, string>>
  /** Whole, or what is still to be read. */
  body: Buffer | ChunkSource
}

const NO_BODY_STATUSES = [204, 304]
/** Of one connection, or of no use to who gets the answer. */
const CONNECTION_HEADERS = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date', 'uwebsockets'])

const AGENT = {
  keepAlive: true,
  maxSockets: SOCKETS_MAX,
  maxTotalSockets: SOCKETS_MAX,
  maxFreeSockets: SOCKETS_MAX,
  timeout: IDLE_SOCKET_MS_MAX,
}

/** HTTP carries bytes, and Node writes and reads them one by one; the HTTP engine reads and writes UTF-8. */
const toBytes = (text: string): string => Buffer.from(text).toString('latin1')
const fromBytes = (text: string): string => Buffer.from(text, 'latin1').toString()

export class NodeHttp {
  readonly #http = new http.Agent(AGENT)
  readonly #https = new HttpsAgent(AGENT)
  #openAnswers = 0

  /**
   * Sends a request to a node, once.
   * @throws UnansweredError; ServiceError `overloaded`, and `invalid_parameter` where it has characters that HTTP does not allow
   */
  async send(address: NodeAddress, request: PassedRequest): Promise<PassedAnswer> {
    const sent = this.#open(address, request)
    const connection = watchConnection(sent)
    sent.end(request.body.length > 0 ? request.body : undefined)
    sent.setTimeout(request.answerMsMax, () => sent.destroy(new Error('there was no answer in time')))
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    sent.on('response', resolve)
    // Also told after the answer has begun: then who reads it is told too.
    sent.on('error', reject)
    // The engine's own time begins with a connection.
    const waiting = setTimeout(() => {
      reject(overloaded('All connections to other nodes are in use; try again.'))
      sent.destroy()
    }, request.answerMsMax)
    sent.once('socket', () => clearTimeout(waiting))
    try {
      return await this.#take(await promise, address, request)
    } catch (error) {
      if (error instanceof UnansweredError || error instanceof ServiceError) throw error
      if (connection.isMade)
        throw new UnansweredError('late', `${address.url}: ${errorMessage(error)}`, error)
      throw new UnansweredError(
        'unreachable',
        `${address.url} cannot be reached: ${errorMessage(error)}`,
        error,
      )
    } finally {
      clearTimeout(waiting)
    }
  }

  /** Ends the connections that nobody uses. */
  close(): void {
    this.#http.destroy()
    this.#https.destroy()
  }

  /** @throws UnansweredError, ServiceError; rejects where the connection breaks */
  async #take(
    answer: IncomingMessage,
    address: NodeAddress,
    { repeats }: PassedRequest,
  ): Promise<PassedAnswer> {
    const headers = headersOf(answer)
    const { statusCode: status = 0 } = answer
    const bytes = NO_BODY_STATUSES.includes(status) ? 0 : Number(headers['content-length'] ?? Number.NaN)
    try {
      checkNode(headers[NODE_HEADER.toLowerCase()], address)
      if (bytes <= WHOLE_ANSWER_BYTES_MAX) return { status, headers, body: await wholeBody(answer) }
      // What was carried out is told in any case.
      if (repeats === 'read' && this.#openAnswers >= OPEN_ANSWERS_MAX)
        throw overloaded('The server passes on as many large answers as it may; try again.')
    } catch (error) {
      answer.destroy()
      throw error
    }
    this.#openAnswers++
    answer.once('close', () => this.#openAnswers--)
    return { status, headers, body: bodyOf(answer) }
  }

  #open(address: NodeAddress, { method, path, query, headers, body, signal }: PassedRequest): ClientRequest {
    const { protocol, hostname, port } = new URL(address.url)
    const sent: Record<string, string> = { [RELAY_HEADER]: relayValue(address) }
    for (const name in headers) sent[name] = toBytes(headers[name] ?? '')
    if (method === 'POST') sent['Content-Length'] = `${body.length}`
    const target = {
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      ...(port !== '' && { port }),
      path: toBytes(query === '' ? path : `${path}?${query}`),
    }
    const options = { ...target, method, headers: sent, ...(signal && { signal }) }
    try {
      return protocol === 'https:'
        ? requestHttps({ ...options, agent: this.#https })
        : http.request({ ...options, agent: this.#http })
    } catch (error) {
      throw new ServiceError('invalid_parameter', `The request cannot be passed on: ${errorMessage(error)}.`)
    }
  }
}

/** By name in lower case. */
function headersOf({ rawHeaders }: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {}
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    if (!CONNECTION_HEADERS.has(name)) headers[name] = fromBytes(rawHeaders[at + 1]!)
  }
  return headers
}

/** @throws UnansweredError where an answer is not one of that node */
function checkNode(named: string | undefined, { nodeId, url }: NodeAddress): void {
  if (named === nodeId) return
  if (named === ANOTHER_NODE)
    throw new UnansweredError('unreachable', `${url} is the address of another process than the bus tells of`)
  throw new UnansweredError('foreign', `what answers at ${url} is no node of this cluster`)
}

/** Whether the request may have gone out. */
function watchConnection(sent: ClientRequest): { isMade: boolean } {
  const connection = { isMade: false }
  sent.on('socket', (socket: Socket & { encrypted?: boolean }) => {
    if (!socket.connecting) {
      connection.isMade = true
      return
    }
    const timer = setTimeout(() => sent.destroy(new Error('no connection in time')), CONNECT_MS_MAX)
    socket.once(socket.encrypted ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer)
      connection.isMade = true
    })
    socket.once('close', () => clearTimeout(timer))
  })
  return connection
}

/** Rejects where it breaks off. */
function wholeBody(answer: IncomingMessage): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  answer.on('data', (chunk: Buffer) => chunks.push(chunk))
  answer.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
  answer.on('error', reject)
  answer.on('close', () => reject(new Error('the answer broke off')))
  return promise
}

/** The connection is read no faster than `next` is called. */
function bodyOf(answer: IncomingMessage): ChunkSource {
  // A slow client is no reason to cut it.
  answer.socket.setTimeout(0)
  const chunks: AsyncIterator<Buffer> = answer[Symbol.asyncIterator]()
  return {
    next: async () => {
      const { done, value } = await unlessLate(STALLED_ANSWER_MS_MAX, chunks.next(), () => {
        answer.destroy()
        throw new Error('the answer stalled')
      })
      return done === true ? null : value
    },
    stop: () => void answer.destroy(),
  }
}
