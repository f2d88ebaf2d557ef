// A local PumpPortal that behaves as the real one: it acknowledges subscriptions, refuses those for trades without a key, and
// counts open connections.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { noteMost } from './faulty-network.ts'

export const PATH = '/api/data'
const wallet = mintOfSymbol('pumpportal wallet')
const curve = {
  bondingCurveKey: wallet,
  vTokensInBondingCurve: 1_013_000_000,
  vSolInBondingCurve: 31.78,
  marketCapSol: 31.4,
  pool: 'pump',
}

export const createFrame = (mint: string, more: object = {}) => ({
  signature: `create ${mint}`,
  mint,
  traderPublicKey: wallet,
  txType: 'create',
  initialBuy: 60_000_000,
  solAmount: 1.78,
  name: 'A Token',
  symbol: 'TOK',
  uri: 'https://example.com/meta.json',
  ...curve,
  ...more,
})
export const tradeFrame = (mint: string, signature: string, more: object = {}) => ({
  signature,
  mint,
  traderPublicKey: wallet,
  txType: 'buy',
  tokenAmount: 1_000,
  solAmount: 0.5,
  newTokenBalance: 1_000,
  ...curve,
  ...more,
})
export const migrateFrame = (mint: string) => ({
  signature: `migrate ${mint}`,
  mint,
  txType: 'migrate',
  pool: 'pump-amm',
})

export interface Subscription {
  method: string
  keys?: string[]
}

export class PumpPortalServer {
  readonly messages: Subscription[] = []
  readonly queries: string[] = []
  /** Clients that completed the handshake. */
  readonly peers = new Set<WebSocket>()
  /** TCP connections: open now, most at once, and in all. */
  readonly connections = { open: 0, most: 0, total: 0 }
  /** Whether a handshake is accepted, left unanswered, refused with a status, or answered with other bytes and then cut. */
  handshake: 'take' | 'hang' | number | { bytes: string } = 'take'
  /** Each connection is cut after so many messages of its client; null: it is not. */
  dropAfterMessages: number | null = null
  /** Called with each new client. */
  onPeer: (peer: WebSocket) => void = () => {}
  readonly url: string
  readonly port: number
  readonly #http: Server
  readonly #sockets = new Set<Socket>()

  private constructor(http: Server) {
    const webSockets = new WebSocketServer({ noServer: true })
    this.#http = http
    this.port = (http.address() as AddressInfo).port
    this.url = `ws://127.0.0.1:${this.port}${PATH}`
    http.on('connection', (socket: Socket) => this.#count(socket))
    http.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (this.handshake === 'hang') return
      if (typeof this.handshake === 'object') {
        socket.end(this.handshake.bytes)
        return
      }
      if (this.handshake !== 'take') {
        socket.end(`HTTP/1.1 ${this.handshake} No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
        return
      }
      const query = new URL(request.url as string, 'http://host').search.slice(1)
      this.queries.push(query)
      webSockets.handleUpgrade(request, socket, head, (peer) => this.#welcome(peer, query))
    })
  }

  /** @param port of a server that was closed, to listen there again. */
  static async start(port = 0): Promise<PumpPortalServer> {
    const http = createServer((_request, response) => void response.writeHead(404).end())
    http.listen(port, '127.0.0.1')
    await once(http, 'listening')
    return new PumpPortalServer(http)
  }

  /** Sends a frame to all clients: objects as JSON, texts and bytes as they are. */
  send(frame: object | string | Uint8Array): void {
    const isRaw = typeof frame === 'string' || frame instanceof Uint8Array
    for (const peer of this.peers) peer.send(isRaw ? frame : JSON.stringify(frame))
  }

  /** Writes bytes to all connections, whether or not they are a frame. */
  sendBytes(bytes: Uint8Array): void {
    for (const socket of this.#sockets) socket.write(bytes)
  }

  /** Makes the open connections half-open: nothing is read, answered or closed any more. */
  freeze(): void {
    for (const socket of this.#sockets) socket.pause()
  }

  drop(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async close(): Promise<void> {
    this.drop()
    if (!this.#http.listening) return
    this.#http.close()
    await once(this.#http, 'close')
  }

  #count(socket: Socket): void {
    const { connections } = this
    connections.total++
    connections.open++
    noteMost(connections)
    this.#sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => {
      connections.open--
      this.#sockets.delete(socket)
    })
  }

  #welcome(peer: WebSocket, query: string): void {
    this.peers.add(peer)
    peer.on('error', () => {})
    peer.on('close', () => this.peers.delete(peer))
    let messageCount = 0
    if (this.dropAfterMessages === 0) peer.terminate()
    peer.on('message', (data) => {
      const message = JSON.parse(data.toString()) as Subscription
      this.messages.push(message)
      if (++messageCount === this.dropAfterMessages) {
        peer.terminate()
        return
      }
      const isAllowed = !message.method.includes('TokenTrade') || query.includes('api-key=')
      peer.send(
        JSON.stringify(
          isAllowed
            ? { message: `Successfully subscribed: ${message.method}` }
            : { errors: 'An API key is required' },
        ),
      )
    })
    this.onPeer(peer)
  }
}
