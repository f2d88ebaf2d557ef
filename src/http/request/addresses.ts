// Tells which client a request comes from, behind trusted proxies too. An IPv6 /64, the network of one subscriber, counts as
// one client.
import { BlockList, isIP, SocketAddress } from 'node:net'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import type { EngineResponse } from '../engine.ts'
import { PROXY_CHECKS_CACHED_MAX } from '../limits.ts'

/** A proxy may send something that is no address, such as `unknown`: it is used as it is, up to this length. */
const UNKNOWN_CHARACTERS_MAX = 64
const IPV4_BYTES = 4
const PREFIX_GROUPS = 4

/** Whether `text` is an address, or a network as address/bits. */
export function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

/** Peers whose X-Forwarded-For is believed. */
export class TrustedProxies {
  readonly #networks = new BlockList()
  readonly #isEmpty: boolean
  /** Whether an address is a trusted proxy: a server behind proxies has few peers. */
  readonly #known = new BoundedMap<string, boolean>({ entriesMax: PROXY_CHECKS_CACHED_MAX })

  /** @param networks each as `isNetwork` accepts it. */
  constructor(networks: readonly string[]) {
    this.#isEmpty = networks.length === 0
    for (const network of networks) {
      const [written = '', bits] = network.split('/')
      const address = bits === undefined ? normalAddress(written) : written
      const family = isIP(address) === 4 ? 'ipv4' : 'ipv6'
      if (bits === undefined) this.#networks.addAddress(address, family)
      else this.#networks.addSubnet(address, Number(bits), family)
    }
  }

  /** @param address as `normalAddress` returns it. */
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

/** What a request tells of its client. */
export interface Sender {
  /** X-Forwarded-For; empty: not sent. */
  forwardedFor: string
  /** Whether another node of this cluster has passed it on, which names its client as a trusted proxy does. */
  isRelayed: boolean
}

/** The client that a request comes from: the peer or, behind trusted proxies and other nodes, the last forwarded address that is no
 *  proxy; where all are, the last one that a node has named, or the peer. @param proxies whose X-Forwarded-For is believed */
export function clientAddress(res: EngineResponse, sender: Sender, proxies: TrustedProxies): string {
  const { forwardedFor, isRelayed } = sender
  const peer = peerAddress(res)
  if (forwardedFor === '' || !(isRelayed || proxies.has(peer))) return clientName(peer)
  const forwarded = forwardedFor.split(',').map(normalAddress)
  const client = forwarded.findLast((address) => address !== '' && !proxies.has(address))
  return clientName(client ?? (isRelayed ? forwarded.at(-1) : undefined) ?? peer)
}

/** The engine gives four bytes for IPv4, and the text of IPv6 in full. */
export function peerAddress(res: EngineResponse): string {
  const bytes = new Uint8Array(res.getRemoteAddress())
  if (bytes.length === IPV4_BYTES) return bytes.join('.')
  return normalAddress(Buffer.from(res.getRemoteAddressAsText()).toString())
}

/** The canonical spelling of an address: shortest form, IPv4 for an IPv4-mapped address, without brackets, port or zone. */
function normalAddress(text: string): string {
  const trimmed = text.trim()
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d+$/.exec(trimmed)?.[1] ?? trimmed
  if (isIP(bare) !== 6) return bare.slice(0, UNKNOWN_CHARACTERS_MAX)
  const { address } = new SocketAddress({ address: bare.split('%')[0], family: 'ipv6' })
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1] ?? address
}

/** One text for each client: an IPv4 address, or the first 64 bits of an IPv6 address; the client chooses the rest. */
function clientName(address: string): string {
  if (isIP(address) !== 6) return address
  const [left = '', right] = address.split('::')
  const groups = left === '' ? [] : left.split(':')
  const rest = right === undefined || right === '' ? [] : right.split(':')
  const zeros = right === undefined ? 0 : 8 - groups.length - rest.length
  const all = [...groups, ...new Array<string>(Math.max(0, zeros)).fill('0'), ...rest]
  return `${all.slice(0, PREFIX_GROUPS).join(':')}::/64`
}

/** Host and port as a URL writes them. */
export const authorityOf = (host: string, port: number): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`

/** Whether a name by which a server is called is one of this computer. */
export const isLoopbackName = (name: string): boolean =>
  /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/i.test(name)

/** Whether an address to listen on is reached by programs of this computer alone. */
export const isLoopback = (host: string): boolean => isLoopbackName(host) || host === '::1'
