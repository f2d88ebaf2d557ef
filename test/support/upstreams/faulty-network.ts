// A proxy to a local server that cuts, stalls or slows down what the server sends.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** What happens to the bytes that the server sends over one connection. */
export interface Fault {
  /** The connection is cut after this many bytes. */
  cutAfterBytes?: number
  /** Nothing more passes after this many bytes, while the connection stays open. */
  stallAfterBytes?: number
  /** One byte passes in each interval of this length. */
  dripMs?: number
}

const CLOSE_SEEN_MS = 10

/** Updates `most` after a short delay, in which the end of connections closed by the other side becomes visible. Where both
 *  happen at once, that end is seen after the next connection. */
export function noteMost(connections: { open: number; most: number }): void {
  setTimeout(() => {
    connections.most = Math.max(connections.most, connections.open)
  }, CLOSE_SEEN_MS).unref()
}

export class FaultyNetwork {
  readonly port: number
  /** Connections of clients: open now, most at once, and in all. */
  readonly connections = { open: 0, most: 0, total: 0 }
  /** The fault of a connection, by its number from 0. */
  faultOf: (connection: number) => Fault = () => ({})
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server, upstreamPort: number) {
    this.#server = server
    this.port = (server.address() as AddressInfo).port
    server.on('connection', (client) => this.#join(client, connect(upstreamPort, '127.0.0.1')))
  }

  static async before(upstreamPort: number): Promise<FaultyNetwork> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new FaultyNetwork(server, upstreamPort)
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #join(client: Socket, upstream: Socket): void {
    const { connections } = this
    const fault = this.faultOf(connections.total++)
    connections.open++
    noteMost(connections)
    client.on('close', () => connections.open--)
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ]) {
      this.#sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
    }
    client.on('data', (bytes) => void upstream.write(bytes))
    if (fault.dripMs === undefined) upstream.on('data', (bytes: Buffer) => pass(bytes))
    // The upstream may be cut in the middle: then the client is cut too.
    else drip(upstream, client, fault.dripMs).catch(() => client.destroy())

    let passed = 0
    const pass = (bytes: Buffer) => {
      const bytesMax = Math.min(fault.cutAfterBytes ?? Infinity, fault.stallAfterBytes ?? Infinity) - passed
      const allowed = bytes.subarray(0, Math.max(0, bytesMax))
      passed += bytes.length
      const isCut = passed >= (fault.cutAfterBytes ?? Infinity)
      if (allowed.length > 0) client.write(allowed, () => isCut && client.destroy())
      else if (isCut) client.destroy()
    }
  }
}

async function drip(upstream: Socket, client: Socket, everyMs: number): Promise<void> {
  for await (const bytes of upstream as AsyncIterable<Buffer>) {
    for (const byte of bytes) {
      if (client.destroyed) return
      client.write(Buffer.of(byte))
      await new Promise((resolve) => setTimeout(resolve, everyMs))
    }
  }
}
