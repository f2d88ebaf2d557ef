// @module-tag drill
// A market of the chain on a tape, with all that endpoints do to their readers, played through the real feed into the real engine:
// every trade and every bar is compared with the ledger of the world that made it. MINTLAKE_TEST_CHAIN_MINUTES=60 plays the hour of
// 10 000 tokens and 500 transactions a second.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { SolanaFeed } from '../../../src/ingest/solana/solana.ts'
import { openTape } from '../../../src/ingest/solana/tape.ts'
import type { FeedStatus } from '../../../src/ingest/types.ts'
import { Market } from '../../../src/market/market.ts'
import { type Bar, TIMEFRAME_MS } from '../../../src/schema/bar.ts'
import type { EventRejection, TradeEvent } from '../../../src/schema/event.ts'
import { type MarketTape, writeMarketTape } from '../../support/chain/market-tape.ts'
import { type LedgerTrade, OTHER_QUOTE, SOL } from '../../support/chain/world.ts'
import { MemoryLog } from '../memory-sink.ts'

const MINUTES = process.env.MINTLAKE_TEST_CHAIN_MINUTES
const OPTIONS = {
  ...{ seed: 34, startMs: Date.UTC(2026, 10, 1, 12, 59, 7) },
  ...(MINUTES === undefined
    ? { minutes: 2.5, perSecond: 100, launches: 0.02, truncated: 0.02 }
    : { minutes: Number(MINUTES), perSecond: 500, launches: 10_000 / 1_800_000, truncated: 0.005 }),
}
const TOKENS_MAX = 32_768
/** The ledger multiplies and sums in another order than the engine. */
const TOLERANCE = 1e-12
const DIFFERENCES_SHOWN_MAX = 5

const isNear = (a: number, b: number): boolean => Math.abs(a - b) <= TOLERANCE * Math.abs(b)

/** The trades of each token in their order, with their prices in USD: NaN in a quote that has none. */
function tradesByToken({ world, solUsd }: MarketTape): Map<string, { trade: LedgerTrade; usd: number }[]> {
  const byToken = new Map<string, { trade: LedgerTrade; usd: number }[]>()
  for (const [index, trade] of world.ledger.entries()) {
    const usd = trade.quoteMint === SOL ? solUsd[index] : trade.quoteMint === OTHER_QUOTE ? Number.NaN : 1
    const trades = byToken.get(trade.mint) ?? []
    if (trades.length === 0) byToken.set(trade.mint, trades)
    trades.push({ trade, usd })
  }
  return byToken
}

type LedgerBar = Omit<Bar, 'closed'>

/** Bars as the definition has them. */
function barsOf(trades: readonly { trade: LedgerTrade; usd: number }[], lengthMs: number): LedgerBar[] {
  const bars = new Map<number, LedgerBar>()
  for (const { trade, usd } of trades) {
    if (Number.isNaN(usd)) continue
    const t = Math.floor(trade.ts / lengthMs) * lengthMs
    const [price, volume] = [trade.priceInQuote * usd, trade.quoteAmount * usd]
    const bar = bars.get(t)
    if (bar === undefined) bars.set(t, { t, o: price, h: price, l: price, c: price, v: volume, n: 1 })
    else {
      bar.h = Math.max(bar.h, price)
      bar.l = Math.min(bar.l, price)
      bar.c = price
      bar.v += volume
      bar.n++
    }
  }
  return [...bars.values()].sort((a, b) => a.t - b.t)
}

const isSameBar = (bar: Bar | undefined, told: LedgerBar): boolean =>
  bar !== undefined &&
  bar.t === told.t &&
  bar.n === told.n &&
  (['o', 'h', 'l', 'c', 'v'] as const).every((field) => isNear(bar[field], told[field]))

/** What a trade of the feed says otherwise than the ledger; null: nothing. */
function differenceOf(event: TradeEvent, told: LedgerTrade | undefined): string | null {
  const place = `${event.mint} ${event.tx}:${event.eventIndex}`
  if (told === undefined) return `${place} is a trade too many`
  if (event.tx !== told.signature || event.eventIndex !== told.eventIndex)
    return `${place} instead of ${told.signature}:${told.eventIndex}`
  for (const field of ['slot', 'ts', 'side', 'tokenAmount', 'quoteMint', 'wallet'] as const)
    if (event[field] !== told[field]) return `${place}: ${field} ${event[field]} instead of ${told[field]}`
  // The decimals of a quote that is no known one are asked for: until the answer its amounts are not known.
  if (event.quoteMint === OTHER_QUOTE && event.quoteAmount === undefined) return null
  const price =
    event.vQuote == null
      ? (event.quoteAmount ?? Number.NaN) / event.tokenAmount
      : event.vQuote / event.vTokens!
  if (event.quoteAmount === told.quoteAmount && price === told.priceInQuote) return null
  return `${place}: ${event.quoteAmount} at ${price} instead of ${told.quoteAmount} at ${told.priceInQuote}`
}

describe('the market of a tape', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mintlake-hour-'))
  const market = new Market({ tokensMax: TOKENS_MAX })
  const differences: string[] = []
  const taken = new Map<string, number>()
  const rejections = new Map<EventRejection, number>()
  let tape: MarketTape
  let byToken: ReturnType<typeof tradesByToken>
  let status: FeedStatus

  function check(event: TradeEvent): void {
    const at = taken.get(event.mint) ?? 0
    taken.set(event.mint, at + 1)
    const difference = differenceOf(event, byToken.get(event.mint)?.[at]?.trade)
    if (difference !== null && differences.length < DIFFERENCES_SHOWN_MAX) differences.push(difference)
  }

  async function play(path: string): Promise<void> {
    const source = await openTape(path, 'max', () => performance.now())
    const sink = {
      apply: (event: Parameters<Market['apply']>[0], receivedAtMs: number) => {
        const rejection = market.apply(event, receivedAtMs)
        if (rejection !== null) rejections.set(rejection, (rejections.get(rejection) ?? 0) + 1)
        if (event.type === 'trade') check(event)
        return rejection
      },
    }
    const options = { source, commitment: 'confirmed', pools: 'migrated', random: () => 0 } as const
    const feed = new SolanaFeed({ ...options, holds: (mint) => market.has(mint) }, sink, new MemoryLog())
    await feed.ready
    await vi.waitUntil(() => feed.describe().state === 'finished', { interval: 20, timeout: 3_600_000 })
    status = feed.describe()
    await feed.stop()
  }

  beforeAll(async () => {
    const path = join(folder, 'chain.tape')
    const startedMs = performance.now()
    tape = await writeMarketTape(path, OPTIONS)
    byToken = tradesByToken(tape)
    const writtenMs = performance.now()
    await play(path)
    if (MINUTES !== undefined)
      console.info({
        ...{ writeMs: writtenMs - startedMs, playMs: performance.now() - writtenMs },
        ...{ tokens: tape.world.tokens.length, trades: tape.world.ledger.length, ...tape.counts },
      })
  }, 7_200_000)

  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('is one of everything that endpoints do', () => {
    for (const [kind, count] of Object.entries(tape.counts)) expect(count, kind).toBeGreaterThan(20)
    const { tokens, ledger } = tape.world
    expect(tokens.filter(({ pool }) => pool !== null).length).toBeGreaterThan(2)
    expect(new Set(tokens.map(({ quoteMint }) => quoteMint)).size).toBe(3)
    expect(tokens.some(({ isMayhem }) => isMayhem)).toBe(true)
    expect(ledger.length).toBeGreaterThan(OPTIONS.minutes * 60 * OPTIONS.perSecond * 0.8)
  })

  it('gives each trade once, with its amounts and its price, those of a token in their order', () => {
    expect(differences).toEqual([])
    expect(Object.fromEntries(rejections)).toEqual({})
    for (const [mint, trades] of byToken) expect(taken.get(mint), mint).toBe(trades.length)
  })

  it('leaves nothing unread or unproven, and counts what was no trade of ours', () => {
    const { failed, truncated, strangers } = tape.counts
    expect(status).toMatchObject({
      ...{ state: 'finished', problem: null, unreadable: {}, failedTransactions: expect.any(Number) },
      ...{ curves: { waiting: 0, unproven: 0 }, ignored: { pool_not_wanted: strangers } },
      truncated: { lost: 0 },
    })
    expect(status.failedTransactions).toBe(failed)
    expect(truncated).toBeGreaterThan(0)
    expect(market.stats().tokens).toBe(tape.world.tokens.length)
  })

  it.each(['1m', '5m', '1h'] as const)('makes the %s bars of the ledger, none of another quote', (tf) => {
    const wrong: string[] = []
    let count = 0
    for (const [mint, trades] of byToken) {
      const told = barsOf(trades, TIMEFRAME_MS[tf])
      const { bars } = market.bars({ mint, tf, limit: 10_000, fromMs: null, toMs: null, fill: 'none' })!
      count += told.length
      if (bars.length !== told.length) wrong.push(`${mint} has ${bars.length} bars instead of ${told.length}`)
      for (const [index, bar] of told.entries())
        if (!isSameBar(bars[index], bar))
          wrong.push(`${mint}: ${JSON.stringify(bars[index])} instead of ${JSON.stringify(bar)}`)
    }
    expect(wrong.slice(0, DIFFERENCES_SHOWN_MAX)).toEqual([])
    expect(count).toBeGreaterThan(100)
  })

  it('knows of each token what its launch said, and whether it has graduated', () => {
    for (const { mint, isMayhem, supply, pool, quoteMint } of tape.world.tokens) {
      const shown = JSON.parse(`${market.datapointJson(mint)!.json}`)
      expect(shown).toMatchObject({ isMayhem, quoteMint, totalSupply: Number(supply) / 1e6 })
      expect(shown.bondingComplete).toBe(pool !== null)
      if (quoteMint === OTHER_QUOTE) expect(shown).toMatchObject({ priceUsd: null, marketCap: null })
    }
  })
})
