// Where other nodes reach this one, and what their requests have to know: whoever is answered on the bus gets both.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { NatsConnection } from '@nats-io/transport-node'
import type { RelayGate } from '../../http/node.ts'
import { authorityOf } from '../../http/request/addresses.ts'

const ID_BYTES = 8
const ID_DIGITS = 8
const SECRET_BYTES = 16
/** What a process listens on that takes connections at every address of its machine. */
const EVERY_ADDRESS = new Set(['0.0.0.0', '::'])

/** Where a node listens, and where others reach it, unless that is the same. */
export interface HostSettings {
  host: string
  bus: { nodeUrl: string }
}

/** A node as the bus tells of it. */
export interface NodeAddress {
  nodeId: string
  /** Scheme, host and port. */
  url: string
  secret: string
}

/** The value of X-Mintlake-Relay for a node. */
export const relayValue = ({ nodeId, secret }: Omit<NodeAddress, 'url'>): string => `${nodeId} ${secret}`

export class NodeGate implements RelayGate {
  /** Names this node on the bus, for as long as it runs. */
  readonly nodeId = BigInt(`0x${randomBytes(ID_BYTES).toString('hex')}`)
    .toString(36)
    .slice(0, ID_DIGITS)
  readonly #secret = randomBytes(SECRET_BYTES).toString('base64url')
  readonly #relay = Buffer.from(relayValue({ nodeId: this.nodeId, secret: this.#secret }))
  /** Whether requests of other nodes are taken. */
  isOpen = false

  admits(relay: string): boolean {
    const sent = Buffer.from(relay)
    return this.isOpen && sent.length === this.#relay.length && timingSafeEqual(sent, this.#relay)
  }

  /** @param port at which this process listens. @param connection to the bus, which tells the address of this machine */
  address({ host, bus: { nodeUrl } }: HostSettings, port: number, connection: NatsConnection) {
    const seen = EVERY_ADDRESS.has(host) ? connection.info?.client_ip : undefined
    const url = nodeUrl === '' ? `http://${authorityOf(seen ?? host, port)}` : nodeUrl
    return { nodeId: this.nodeId, url, secret: this.#secret }
  }
}
