// In: addresses as sockets, proxies and settings write them. Out: who a request is from, one text for one client, and which
// peers are proxies whose word about that is taken. A network of IPv6 that one subscriber has (/64) is one client.

import type { HttpResponse } from 'uWebSockets.js'
import { BlockList, isIP, SocketAddress } from 'node:net'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { ADDRESSES_REMEMBERED_MAX } from '../limits.ts'

/** What is no address (a proxy may say `unknown`) stands for itself, up to so many characters. */
const UNKNOWN_CHARACTERS_MAX = 64
const IPV4_BYTES = 4
const PREFIX_GROUPS = 4

/** Whether `text` is an address, or a network as address/bits. */
export function isNetwork(text: string): boolean {
  const [address, bits, ...rest] = text.split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

/** Peers whose X-Forwarded-For is believed. */
export class TrustedProxies {
  readonly #networks = new BlockList()
  readonly #isEmpty: boolean
  /** By address, whether it is a proxy that is trusted: the peers of a server behind proxies are few. */
  readonly #known = new BoundedMap<string, boolean>({ entriesMax: ADDRESSES_REMEMBERED_MAX })

  /** @param networks of which `isNetwork` is true. */
  constructor(networks: readonly string[]) {
    this.#isEmpty = networks.length === 0
    for (const network of networks) {
      const [written, bits] = network.split('/')
      const address = bits === undefined ? normalAddress(written) : written
      const family = isIP(address) === 4 ? 'ipv4' : 'ipv6'
      if (bits === undefined) this.#networks.addAddress(address, family)
      else this.#networks.addSubnet(address, Number(bits), family)
    }
  }

  /** @param address as `normalAddress` writes it. */
  has(address: string): boolean {
    if (this.#isEmpty) return false
    const known = this.#known.get(address)
    if (known !== undefined) return known
    const family = isIP(address)
    const found = family !== 0 && this.#networks.check(address, family === 4 ? 'ipv4' : 'ipv6')
    this.#known.set(address, found)
    return found
  }
}

/** The peer's address as one client; behind trusted proxies the last address that none of them is. */
export function clientAddress(res: HttpResponse, forwardedFor: string, proxies: TrustedProxies): string {
  const peer = peerAddress(res)
  if (forwardedFor === '' || !proxies.has(peer)) return clientOf(peer)
  const forwarded = forwardedFor.split(',').map(normalAddress)
  return clientOf(forwarded.findLast((address) => address !== '' && !proxies.has(address)) ?? peer)
}

/** The engine writes an address of IPv6 in full, and one of IPv4 inside it as such. */
function peerAddress(res: HttpResponse): string {
  const bytes = new Uint8Array(res.getRemoteAddress())
  if (bytes.length === IPV4_BYTES) return bytes.join('.')
  return normalAddress(Buffer.from(res.getRemoteAddressAsText()).toString())
}

/** One spelling for an address: the shortest, that of IPv4 where one is inside IPv6, without brackets, port or zone. */
export function normalAddress(text: string): string {
  const trimmed = text.trim()
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d+$/.exec(trimmed)?.[1] ?? trimmed
  if (isIP(bare) !== 6) return bare.slice(0, UNKNOWN_CHARACTERS_MAX)
  const { address } = new SocketAddress({ address: bare.split('%')[0], family: 'ipv6' })
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1] ?? address
}

/** Who has the address: for IPv6 its first 64 bits, of which the rest is anybody's choice. */
export function clientOf(address: string): string {
  if (isIP(address) !== 6) return address
  const [left, right] = address.split('::')
  const groups = left === '' ? [] : left.split(':')
  const rest = right === undefined || right === '' ? [] : right.split(':')
  const zeros = right === undefined ? 0 : 8 - groups.length - rest.length
  const all = [...groups, ...new Array<string>(Math.max(0, zeros)).fill('0'), ...rest]
  return `${all.slice(0, PREFIX_GROUPS).join(':')}::/64`
}

/** The address of a server, as a part of its URL. */
export const authorityOf = (host: string, port: number): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
