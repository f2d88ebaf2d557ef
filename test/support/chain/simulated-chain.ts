// A chain in a time of its own: a market tape is told by an endpoint whose connections end, and which keeps what it told. Everything
// that a feed waits for is an item of one queue, so that hours pass as fast as they are computed, the same each time.

import { MAINNET_GENESIS } from '../../../src/ingest/solana/programs.ts'
import type { Rpc, RpcAnswer } from '../../../src/ingest/solana/rpc.ts'
import type { ChainSource } from '../../../src/ingest/solana/source.ts'
import {
  FrameReader,
  type Silence,
  type SubscriptionHandlers,
} from '../../../src/ingest/solana/subscription.ts'
import type { UpstreamEnd } from '../../../src/ingest/upstream-socket.ts'
import type { Clock } from '../../../src/lib/clock.ts'
import { parseJson } from '../../../src/lib/text/json-text.ts'
import { ChainHistory } from './history.ts'
import type { Teller } from './market-tape.ts'
import { slotAt } from './world.ts'

export interface Outage {
  fromMs: number
  toMs: number
  /** The connection ends without a word: the feed finds out so much later, ms. */
  silentMs?: number
}

export interface SimulatedChainOptions {
  teller: Teller
  requestsPerSecond: number
  outages?: readonly Outage[]
  /** What a method is refused with. */
  refusals?: Readonly<Record<string, RpcAnswer>>
  /** How long a slot takes until it is confirmed. */
  confirmMs?: number
  /** So far is the node that answers behind the one that tells, ms: as two behind one address may be. */
  answersBehindMs?: number
  /** So far is the machine's clock ahead of the chain's, ms. */
  aheadMs?: number
}

interface Item {
  atMs: number
  order: number
  run(): void
}

interface Connection {
  reader: FrameReader
  handlers: SubscriptionHandlers
  end(reason: string): void
}

const CONFIRM_MS = 800
const TICK_MS = 100
/** Of the past the chain keeps what an outage, its healing and a restart reach back to: an hour of all would not fit into memory. */
const KEPT_MS = 1_200_000
const AT_ONCE = ['getTransaction', 'getMultipleAccounts', 'getGenesisHash']

export class SimulatedChain implements ChainSource {
  readonly hasEnd = false
  readonly hasOwnTime = true
  readonly collectMs = 0
  readonly host = 'simulated'
  readonly clock: Clock
  readonly rpc: Rpc
  readonly history = new ChainHistory()
  /** By method: requests so far. */
  readonly requests: Record<string, number> = {}
  /** Market time passes. */
  onTick: (nowMs: number) => void = () => {}
  nowMs = 0
  readonly #options: SimulatedChainOptions
  readonly #lines: Iterator<string>
  #next: { at: number; frame: string } | null = null
  #queue: Item[] = []
  #order = 0
  #nextTurnMs = 0
  #connection: Connection | null = null
  #opening: string[] = []

  constructor(options: SimulatedChainOptions) {
    this.#options = options
    this.#lines = options.teller.lines()
    const { aheadMs = 0 } = options
    this.clock = { now: () => this.nowMs + aheadMs, monotonicMs: () => this.nowMs }
    const call: Rpc['call'] = (...question) => this.#call(...question)
    this.rpc = {
      ...{ host: 'simulated', endpointCount: 1, describe: () => ({}) },
      ...{ call, spare: { call }, onMethodRefused: null },
    }
    this.#readNext()
    this.nowMs = this.#next?.at ?? 0
    this.#tick()
    for (const { fromMs, silentMs = 0 } of options.outages ?? [])
      this.#at(fromMs + silentMs, () => this.#connection?.end('the connection ends'))
  }

  get counts() {
    return this.#options.teller.counts
  }

  get tokens() {
    return this.#options.teller.world.tokens
  }

  /** Lets time pass until a moment, or until nothing is told any more. */
  async runTo(endMs: number): Promise<void> {
    for (;;) {
      const item = this.#queue[0]
      const lineMs = this.#next?.at ?? Number.POSITIVE_INFINITY
      const atMs = Math.min(item?.atMs ?? Number.POSITIVE_INFINITY, lineMs)
      if (atMs > endMs) break
      this.nowMs = Math.max(this.nowMs, atMs)
      if (item !== undefined && item.atMs <= lineMs) {
        this.#queue.shift()
        item.run()
      } else this.#tellNext()
      // Whatever goes on by it has its turn.
      await new Promise(setImmediate)
    }
    this.nowMs = Math.max(this.nowMs, endMs)
  }

  /** Another process begins: nobody is connected, and what was asked for is not answered. */
  forgetCaller(): void {
    this.#connection = null
    this.#queue = []
    this.#tick()
    for (const { fromMs, silentMs = 0 } of this.#options.outages ?? [])
      if (fromMs + silentMs > this.nowMs)
        this.#at(fromMs + silentMs, () => this.#connection?.end('the connection ends'))
  }

  connect(handlers: SubscriptionHandlers, signal: AbortSignal): Promise<UpstreamEnd & Silence> {
    const { promise, resolve } = Promise.withResolvers<UpstreamEnd & Silence>()
    if (this.#isAway()) return Promise.resolve({ reason: 'nobody answers' })
    const end = (reason: string) => {
      this.#connection = null
      resolve({ reason })
    }
    signal.addEventListener('abort', () => end('stopped'))
    this.#connection = { reader: new FrameReader(handlers, end), handlers, end }
    for (const frame of this.#opening) this.#connection.reader.read(frame)
    return promise
  }

  wait(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve())
      if (signal.aborted) resolve()
      this.#at(this.nowMs + Math.max(1, ms), resolve)
    })
  }

  masked(text: string): string {
    return text
  }

  #isAway(): boolean {
    return (this.#options.outages ?? []).some(({ fromMs, toMs }) => this.nowMs >= fromMs && this.nowMs < toMs)
  }

  #tick(): void {
    this.#at(this.nowMs + TICK_MS, () => {
      this.onTick(this.nowMs)
      this.#keep()
      this.#tick()
    })
  }

  #at(atMs: number, run: () => void): void {
    const item = { atMs, order: this.#order++, run }
    const at = this.#queue.findLastIndex((each) => each.atMs <= atMs) + 1
    this.#queue.splice(at, 0, item)
  }

  /** The next frame; answers of the tape are not needed: the chain itself has them. */
  #readNext(): void {
    for (;;) {
      const { value, done } = this.#lines.next()
      if (done) break
      const line = Object(parseJson(value))
      if (typeof line.frame !== 'string') continue
      this.#next = { at: line.at, frame: line.frame }
      if (Object(parseJson(line.frame)).id === undefined) return
      this.#opening.push(line.frame)
    }
    this.#next = null
  }

  #tellNext(): void {
    const told = this.#next
    this.#readNext()
    if (told !== null && !this.#isAway()) this.#connection?.reader.read(told.frame)
  }

  /** What has happened becomes the past. */
  #keep(): void {
    for (const transaction of this.#options.teller.transactions.splice(0)) this.history.add(transaction)
    this.history.forgetBefore(slotAt(this.nowMs - KEPT_MS))
  }

  async #call(...[method, params, signal]: Parameters<Rpc['call']>): Promise<RpcAnswer> {
    this.requests[method] = (this.requests[method] ?? 0) + 1
    // What a notification asks for is answered at once: only its arrival orders the swaps of a pool.
    if (!AT_ONCE.includes(method)) {
      this.#nextTurnMs = Math.max(this.nowMs, this.#nextTurnMs) + 1_000 / this.#options.requestsPerSecond
      await this.wait(this.#nextTurnMs - this.nowMs, signal)
    }
    if (signal.aborted) return { ok: false, fault: 'stopped', message: 'the feed stops' }
    if (this.#isAway()) return { ok: false, fault: 'unreachable', message: 'nobody answers' }
    const refusal = this.#options.refusals?.[method]
    return refusal ?? this.#answer(method, params)
  }

  #answer(method: string, params: readonly unknown[]): RpcAnswer {
    const { teller, confirmMs = CONFIRM_MS, answersBehindMs = 0 } = this.#options
    this.#keep()
    if (method === 'getSlot') return { ok: true, result: slotAt(this.nowMs - answersBehindMs) }
    if (method === 'getGenesisHash') return { ok: true, result: MAINNET_GENESIS }
    if (method === 'getMultipleAccounts')
      return { ok: true, result: { value: teller.accountsOf(Object(params[0]), this.nowMs) } }
    // A transaction that was told is confirmed.
    const slot =
      method === 'getTransaction'
        ? Number.POSITIVE_INFINITY
        : slotAt(this.nowMs - confirmMs - answersBehindMs)
    const answer = this.history.answer(method, params, slot)
    if (answer === null) return { ok: false, fault: 'refused', message: `no method ${method}`, code: -32_601 }
    if ('result' in answer) return { ok: true, result: answer.result }
    return { ok: false, fault: 'refused', ...answer.error }
  }
}
