// A local RPC node that speaks JSON-RPC over HTTP and WebSocket as Solana's nodes document it.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { base58 } from '@scure/base'
import { type WebSocket, WebSocketServer } from 'ws'
import {
  MAINNET_GENESIS,
  ORCA_OWNER,
  ORCA_SOL_USDC,
  PYTH_OWNER,
  PYTH_SOL_USD,
} from '../../../src/ingest/solana/programs.ts'
import { orcaAccount, pythAccount } from '../chain/encode.ts'
import { ChainHistory } from '../chain/history.ts'
import { logsNotification, type TestTransaction } from '../chain/transaction.ts'
import { slotAt } from '../chain/world.ts'

export interface Request {
  method: string
  params: unknown[]
}
export interface TestAccount {
  owner: string
  data: Buffer
}
/** What a request gets instead of its answer: a status with headers, an error, or nothing. */
export type Refusal = { status: number; headers?: Record<string, string> } | { error: object } | 'hang'

const PAST_SLOTS = 100
const TICK_MS = 50

interface Subscription {
  id: number
  method: string
  mentions: string | null
  peer: WebSocket
}

export class SolanaNode {
  readonly requests: Request[] = []
  readonly urls: string[] = []
  readonly peers = new Set<WebSocket>()
  readonly accounts = new Map<string, TestAccount>()
  readonly history = new ChainHistory()
  genesis = MAINNET_GENESIS
  slot = 300_000_000
  /** By method; of subscriptions too. */
  refusals: Record<string, Refusal | undefined> = {}
  /** Listed as holding a token, and not to be had: closed meanwhile, or not known yet where accounts are of slots before. */
  readonly missingAccounts = new Set<string>()
  accountsSlotsBehind = 0
  /** Connections that are told nothing of a program, whatever they have subscribed to. */
  #muted: { program: string; peers: ReadonlySet<WebSocket> } | null = null
  /** A handshake is refused with this status. */
  handshake: number | null = null
  handshakesRefused = 0
  readonly port: number
  readonly #http: Server
  readonly #sockets = new Set<Socket>()
  readonly #subscriptions: Subscription[] = []
  /** Null: slots begin only when a test says so. */
  #time: NodeJS.Timeout | null = null

  private constructor(http: Server) {
    const webSockets = new WebSocketServer({ noServer: true })
    this.#http = http
    this.port = (http.address() as AddressInfo).port
    http.on('request', (request, response) => void this.#onRequest(request, response))
    http.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => this.#sockets.delete(socket))
    })
    http.on('upgrade', (request, socket, head) => {
      if (this.handshake !== null) {
        this.handshakesRefused++
        socket.end(`HTTP/1.1 ${this.handshake} No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
        return
      }
      webSockets.handleUpgrade(request, socket, head, (peer) => this.#welcome(peer))
    })
  }

  static async start(port = 0): Promise<SolanaNode> {
    const http = createServer()
    http.listen(port, '127.0.0.1')
    await once(http, 'listening')
    return new SolanaNode(http)
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  get openConnections(): number {
    return this.#sockets.size
  }

  asked(method: string): Request[] {
    return this.requests.filter((request) => request.method === method)
  }

  /** Sets both prices of SOL, and tells subscribers. */
  setSolPrice(usd: number, atMs: number, orcaUsd = usd): void {
    this.setAccount(PYTH_SOL_USD, { owner: PYTH_OWNER, data: pythAccount(usd, atMs) })
    this.setAccount(ORCA_SOL_USDC, { owner: ORCA_OWNER, data: orcaAccount(orcaUsd) })
  }

  setAccount(address: string, account: TestAccount): void {
    this.accounts.set(address, account)
    for (const { id, peer } of this.#of('accountSubscribe', address))
      peer.send(
        JSON.stringify({
          jsonrpc: '2.0',
          method: 'accountNotification',
          params: {
            subscription: id,
            result: { context: { slot: this.slot }, value: encodeAccount(account) },
          },
        }),
      )
  }

  /** From now on slots pass with the clock, each with a block; as many before now have one as a feed may ask for. */
  beginTime(): void {
    this.slot = slotAt(Date.now()) - PAST_SLOTS
    const pass = () => {
      while (this.slot < slotAt(Date.now())) this.history.addBlock(this.nextSlot())
    }
    pass()
    this.#time = setInterval(pass, TICK_MS)
  }

  /** Begins the next slot. */
  nextSlot(): number {
    this.slot++
    const result = { parent: this.slot - 1, root: this.slot - 32, slot: this.slot }
    for (const { id, peer } of this.#of('slotSubscribe', null))
      peer.send(
        JSON.stringify({ jsonrpc: '2.0', method: 'slotNotification', params: { subscription: id, result } }),
      )
    return this.slot
  }

  /** A transaction has been confirmed: it is kept, and told to who subscribed to one of its programs. */
  confirm(transaction: TestTransaction): void {
    this.history.add(transaction)
    for (const program of new Set(transaction.events.map((event) => event.program)))
      for (const { id, peer } of this.#of('logsSubscribe', program))
        if (program !== this.#muted?.program || !this.#muted.peers.has(peer))
          peer.send(JSON.stringify(logsNotification(transaction, id)))
  }

  /** The connections that there are now are told nothing more of a program. */
  mute(program: string): void {
    this.#muted = { program, peers: new Set(this.peers) }
  }

  /** Sends a frame to all peers: objects as JSON, texts and bytes as they are. */
  send(frame: object | string | Uint8Array): void {
    const isRaw = typeof frame === 'string' || frame instanceof Uint8Array
    for (const peer of this.peers) peer.send(isRaw ? frame : JSON.stringify(frame))
  }

  drop(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async close(): Promise<void> {
    if (this.#time !== null) clearInterval(this.#time)
    this.drop()
    if (!this.#http.listening) return
    this.#http.close()
    await once(this.#http, 'close')
  }

  #of(method: string, mentions: string | null): Subscription[] {
    return this.#subscriptions.filter((each) => each.method === method && each.mentions === mentions)
  }

  #welcome(peer: WebSocket): void {
    this.peers.add(peer)
    peer.on('error', () => {})
    peer.on('close', () => {
      this.peers.delete(peer)
      for (let at = this.#subscriptions.length - 1; at >= 0; at--)
        if (this.#subscriptions[at].peer === peer) this.#subscriptions.splice(at, 1)
    })
    peer.on('message', (data) => this.#onMessage(peer, `${data}`))
  }

  #onMessage(peer: WebSocket, text: string): void {
    const { id, method, params } = JSON.parse(text)
    this.requests.push({ method, params })
    const refusal = this.refusals[method]
    if (refusal === 'hang') return
    if (refusal !== undefined && 'error' in refusal) {
      peer.send(JSON.stringify({ jsonrpc: '2.0', id, error: refusal.error }))
      return
    }
    const mentions = method === 'logsSubscribe' ? params[0].mentions[0] : (params[0] ?? null)
    const subscription = { id: 1_000 + this.requests.length, method, mentions, peer }
    this.#subscriptions.push(subscription)
    peer.send(JSON.stringify({ jsonrpc: '2.0', id, result: subscription.id }))
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.urls.push(`${request.url}`)
    let body = ''
    for await (const part of request) body += part
    const { id, method, params } = JSON.parse(body)
    this.requests.push({ method, params })
    const refusal = this.refusals[method]
    if (refusal === 'hang') return
    if (refusal !== undefined && 'status' in refusal) {
      response.writeHead(refusal.status, refusal.headers).end()
      return
    }
    const answer = refusal ?? this.#answer(method, params)
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
  }

  /** The 20 largest accounts of a token. */
  #largestAccounts(mint: string): object[] {
    const accounts = [...this.accounts].flatMap(([address, { data }]) => {
      const isOfMint =
        data.length >= TOKEN_ACCOUNT_BYTES && base58.encode(data.subarray(0, MINT_BYTES)) === mint
      return isOfMint ? { address, amount: data.readBigUInt64LE(AMOUNT_AT) } : []
    })
    accounts.sort((a, b) => (a.amount < b.amount ? 1 : -1))
    return accounts.slice(0, 20).map(({ address, amount }) => ({
      ...{ address, amount: `${amount}`, decimals: 6 },
      ...{ uiAmount: Number(amount) / 1e6, uiAmountString: `${Number(amount) / 1e6}` },
    }))
  }

  /** While time passes, a slot that is not over is not confirmed. */
  get #confirmedSlot(): number {
    return this.#time === null ? this.slot : this.slot - 1
  }

  #answer(method: string, params: unknown[]): object {
    switch (method) {
      case 'getGenesisHash':
        return { result: this.genesis }
      case 'getSlot':
        return { result: this.slot }
      case 'getMultipleAccounts': {
        const addresses = params[0] as string[]
        const value = addresses.map((address) => {
          const account = this.accounts.get(address)
          return account === undefined || this.missingAccounts.has(address) ? null : encodeAccount(account)
        })
        return { result: { context: { slot: this.slot - this.accountsSlotsBehind }, value } }
      }
      case 'getTokenLargestAccounts': {
        const value = this.#largestAccounts(String(params[0]))
        return { result: { context: { slot: this.slot }, value } }
      }
      default:
        return this.history.answer(method, params, this.#confirmedSlot) ?? { result: null }
    }
  }
}

/** Of an account of a wallet: the mint, and behind it and the owner the amount. */
const [MINT_BYTES, AMOUNT_AT, TOKEN_ACCOUNT_BYTES] = [32, 64, 165]

const encodeAccount = ({ owner, data }: TestAccount) => ({
  ...{ owner, data: [data.toString('base64'), 'base64'] },
  ...{ lamports: 1, executable: false, rentEpoch: 0, space: data.length },
})
