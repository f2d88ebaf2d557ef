// A program that pushes market events: whole bodies, one at a time, with duplicates, late and garbage records among them.
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import type { Draws } from '../machine/machine.ts'
import type { Answer, Sent } from '../server.ts'
import { FEED_KEY } from '../settings.ts'
import { check, count, drawsFor, note, type World } from '../world.ts'

/** The program gives up an answer that takes longer, ms. */
const PATIENCE_MS = 20_000
const LATE_MS_MAX = 120_000
/** How often a body has the first record of another token, and how often that one is late. */
const HAS_LAUNCH = 0.15
const IS_LAUNCHED_LATE = 0.4
/** What was sent in time and answered within this was not late, ms. */
const QUICK_MS = 3_000

/** A record that was sent. */
export interface Pushed {
  /** Unique: every valid record carries it. */
  id: number
  mint: string
  /** Its own time, Unix ms. */
  tsMs: number
  /** Life of the server that it was sent to, and when, on the machine's own time. */
  life: number
  sentMs: number
  answeredMs: number
  /** `taken`: the server said so; `unknown`: it did not answer. */
  state: 'taken' | 'unknown'
}

/** Refusals for the time of a record: they depend on the clock of the server. */
const isOfTime = (code: string): boolean => code === 'late' || code === 'ts_in_future'

interface Line {
  id: number | null
  text: string
  mint: string
  tsMs: number
  isLate: boolean
}

export class PushFeed {
  readonly pushed: Pushed[] = []
  readonly mints: string[]
  /** How many of them have been heard of. */
  #launched = 2
  /** Those that the market certainly has. */
  readonly known = new Set<string>()
  readonly #world: World
  readonly #draws: Draws
  #lastId = 0
  #sent: Sent | null = null
  #lines: Line[] = []
  #life = 0
  readonly #prices = new Map<string, number>()

  constructor(world: World, tokens: number) {
    this.#world = world
    this.#draws = drawsFor(world, 'feed')
    this.mints = Array.from({ length: tokens }, (_, index) => mintOfSymbol(`simulated ${index}`))
  }

  get isWaiting(): boolean {
    return this.#sent !== null
  }

  /** Whether the present life of the server took something between two moments of the machine's own time. */
  hasTakenWithin(fromMs: number, toMs: number): boolean {
    const { lives } = this.#world.server
    return this.pushed.some(
      ({ life, state, sentMs, answeredMs }) =>
        life === lives && state === 'taken' && sentMs > fromMs && answeredMs < toMs,
    )
  }

  /** Pushes a body, unless the one before has no answer yet. */
  push(records = this.#draws.whole(1, this.#draws.chance(0.1) ? 200 : 20)): void {
    this.poll()
    if (this.#sent !== null) return
    const world = this.#world
    const lines = Array.from({ length: records }, () => this.#line())
    this.#launch(lines)
    if (this.#draws.chance(0.1)) lines.push(lines[this.#draws.whole(0, lines.length - 1)])
    this.#lines = lines
    this.#life = world.server.lives
    count(world, 'records pushed', lines.length)
    this.#sent = world.server.send(
      {
        method: 'POST',
        path: '/api/v1/ingest',
        key: FEED_KEY,
        headers: { 'Content-Type': 'application/x-ndjson' },
        body: lines.map(({ text }) => text).join('\n'),
      },
      (answer) => this.#take(answer),
    )
  }

  /** Begins the body with the first record of a token, sometimes of several, where there are more. */
  #launch(lines: Line[]): void {
    const draws = this.#draws
    if (this.#launched === this.mints.length || !draws.chance(HAS_LAUNCH)) return
    const before = this.#launched
    this.#launched = Math.min(this.mints.length, before + draws.whole(1, Math.ceil(this.mints.length / 8)))
    const first = this.mints.slice(before, this.#launched)
    lines.unshift(...first.map((mint) => this.#line(mint, draws.chance(IS_LAUNCHED_LATE))))
  }

  /** Gives up an answer that does not come. */
  poll(): void {
    const sent = this.#sent
    if (sent === null) return
    const { machine } = this.#world
    if (!sent.isLost && machine.nowMs - sent.sentMs > PATIENCE_MS) sent.leave()
    if (sent.isLost) this.#end(sent, null)
  }

  #take(answer: Answer): void {
    const sent = this.#sent
    if (sent === null) return
    const { body, status } = answer
    note(this.#world, 'push', status, body?.accepted ?? '', body?.rejected ?? '')
    // The server of before takes events on until it has ended: what it took then it alone had.
    const isOfLeft = this.#life === this.#world.otherWriters?.left?.lives
    // Of more faults than an answer shows it is not known which lines they are of.
    if (isOfLeft) count(this.#world, 'pushes answered by the server of before')
    if (status !== 200 || isOfLeft || body.rejected > body.errors.length) {
      this.#end(sent, null)
      return
    }
    const garbage = this.#lines.flatMap(({ id }, index) => (id === null ? [index] : []))
    const refused: { index: number; code: string }[] = body.errors
    const isQuick = answer.answeredMs - answer.sentMs < QUICK_MS && !this.#world.hadWrongClock
    const late = refused.flatMap(({ code, index }) =>
      isOfTime(code) && (this.#lines[index].isLate || !isQuick) ? [index] : [],
    )
    const expected = [...new Set([...garbage, ...late])].sort((a, b) => a - b)
    check(
      this.#world,
      'a push refuses garbage and nothing else',
      refused.map(({ index }) => index).join() === expected.join() &&
        body.accepted + body.rejected === this.#lines.length,
      () => `${answer.text.slice(0, 500)} for garbage at ${garbage.join()}`,
    )
    this.#end(sent, new Set(refused.map(({ index }) => index)), answer.answeredMs)
  }

  /** @param refused lines that were not taken; null: it is not known which were */
  #end(sent: Sent, refused: ReadonlySet<number> | null, answeredMs = this.#world.machine.nowMs): void {
    this.#sent = null
    this.#lines.forEach(({ id, mint, tsMs }, index) => {
      if (id === null || refused?.has(index)) return
      if (refused !== null) this.known.add(mint)
      const state = refused === null ? 'unknown' : 'taken'
      this.pushed.push({ id, mint, tsMs, life: this.#life, sentMs: sent.sentMs, answeredMs, state })
    })
  }

  #line(mint = this.#draws.of(this.mints.slice(0, this.#launched)), isLate = this.#draws.chance(0.05)): Line {
    const draws = this.#draws
    const { trueMs } = this.#world.machine
    const tsMs = trueMs - (isLate ? draws.whole(0, LATE_MS_MAX) : draws.whole(0, 800))
    if (draws.chance(0.03)) return { id: null, mint, tsMs, isLate, text: this.#garbage(mint, tsMs) }
    const id = ++this.#lastId
    return { id, mint, tsMs, isLate, text: JSON.stringify(this.#record(id, mint, tsMs)) }
  }

  #record(id: number, mint: string, ts: number): object {
    const draws = this.#draws
    switch (draws.weighted({ trade: 16, token: 1, patch: 2, live: 1 })) {
      case 'token':
        return {
          type: 'token',
          mint,
          ts,
          name: `Token ${id}`,
          symbol: 'SIM',
          description: `r${id}`,
          totalSupply: 1e6,
        }
      case 'patch':
        return {
          type: 'patch',
          ...{ mint, ts },
          fields: { viewerCount: id, holderCount: draws.whole(1, 900), liquidity: draws.whole(1, 90_000) },
        }
      case 'live':
        return { type: 'live', mint, ts, isLive: draws.chance(0.5), viewerCount: id }
      default: {
        const price = (this.#prices.get(mint) ?? draws.between(1e-4, 1)) * draws.between(0.98, 1.02)
        this.#prices.set(mint, price)
        const side = draws.chance(0.5) ? 'buy' : 'sell'
        return {
          type: 'trade',
          mint,
          ts,
          side,
          tokenAmount: draws.whole(1, 5_000),
          priceUsd: price,
          tx: `t${id}`,
        }
      }
    }
  }

  #garbage(mint: string, ts: number): string {
    return this.#draws.of([
      '{"type":"trade"',
      JSON.stringify({ type: 'trade', mint: 'short', ts, side: 'buy', tokenAmount: 1, priceUsd: 1 }),
      JSON.stringify({ type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: -1 }),
      // Beyond what a clock is ever wrong by.
      JSON.stringify({
        type: 'trade',
        mint,
        ts: ts + 100 * 86_400_000,
        side: 'buy',
        tokenAmount: 1,
        priceUsd: 1,
      }),
      JSON.stringify({ type: 'rumour', mint, ts }),
    ])
  }
}
