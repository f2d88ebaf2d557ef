// Computes what a market must answer from the list of its events, slowly and plainly. It shares only constants with the engine.

import { LATE_GRACE_MS, SILENCE_MS } from '../../src/market/time/limits.ts'
import { type Bar, TIMEFRAME_MS, type Timeframe } from '../../src/schema/bar.ts'
import type { SnapshotValues } from '../../src/schema/datapoint.ts'
import type { MarketEvent, TradeEvent } from '../../src/schema/event.ts'
import { HOT_HALF_LIFE_MS } from '../../src/schema/market-item.ts'
import type { Sort, Tab } from '../../src/schema/vocabulary.ts'

export interface Received {
  event: MarketEvent
  atMs: number
}

interface Taken extends TradeEvent {
  atMs: number
}

/** Of pump.fun's curve: what it has at first, and sells. */
const CURVE_SOL = 30
const CURVE_TOKENS = 1_073_000_000
const CURVE_SOLD = 793_100_000

const newestOf = (trades: readonly Taken[]): Taken | null =>
  trades.reduce<Taken | null>((best, trade) => (best === null || trade.ts >= best.ts ? trade : best), null)

/** Both sides of a curve, by the price of SOL that its trade had. */
// Sums of amounts may end a rounding below a curve that nobody has bought from.
const raisedUsd = ({ priceUsd, vSol, vTokens }: Taken): number =>
  2 * Math.max(0, vSol! - CURVE_SOL) * ((priceUsd! * vTokens!) / vSol!)
const progressOf = ({ vTokens }: Taken): number => Math.max(0, (100 * (CURVE_TOKENS - vTokens!)) / CURVE_SOLD)

export class Oracle {
  readonly log: Received[] = []
  #newWindowMs: number
  /** Events of each mint, of as many of the log as `#sorted`. */
  readonly #byMint = new Map<string, Received[]>()
  #sorted = 0

  constructor(newWindowMs: number) {
    this.#newWindowMs = newWindowMs
  }

  mints(): string[] {
    return [
      ...new Set(
        this.log.flatMap(({ event }) =>
          'mint' in event && event.type !== 'analysisCount' ? [event.mint] : [],
        ),
      ),
    ]
  }

  #of(mint: string, untilMs: number): Received[] {
    for (; this.#sorted < this.log.length; this.#sorted++) {
      const { event } = this.log[this.#sorted]
      if (!('mint' in event)) continue
      const before = this.#byMint.get(event.mint)
      if (before === undefined) this.#byMint.set(event.mint, [this.log[this.#sorted]])
      else before.push(this.log[this.#sorted])
    }
    return (this.#byMint.get(mint) ?? []).filter(({ atMs }) => atMs <= untilMs)
  }

  /** Trades not older than the watermark of their moment, and the watermark as of `untilMs`. */
  #taken(mint: string, untilMs: number): { trades: Taken[]; watermarkMs: number } {
    const trades: Taken[] = []
    let own = 0
    let tradedAt = 0
    const watermark = (nowMs: number) =>
      trades.length > 0 && nowMs - tradedAt >= SILENCE_MS ? Math.max(own, nowMs - LATE_GRACE_MS) : own
    for (const { event, atMs } of this.#of(mint, untilMs)) {
      if (event.type !== 'trade' || event.ts < watermark(atMs)) continue
      own = Math.max(watermark(atMs), event.ts - LATE_GRACE_MS)
      trades.push({ ...event, atMs })
      tradedAt = atMs
    }
    return { trades, watermarkMs: watermark(untilMs) }
  }

  late(): number {
    const trades = this.log.filter(({ event }) => event.type === 'trade').length
    return (
      trades -
      this.mints().reduce((sum, mint) => sum + this.#taken(mint, Number.POSITIVE_INFINITY).trades.length, 0)
    )
  }

  volume(mint: string, lengthMs: number, resolutionMs: number, atMs: number): number {
    const from = Math.floor(atMs / resolutionMs) * resolutionMs - lengthMs + resolutionMs
    return this.#taken(mint, atMs)
      .trades.filter((trade) => trade.ts >= from)
      .reduce((sum, trade) => sum + trade.priceUsd! * trade.tokenAmount, 0)
  }

  snapshot(mint: string, atMs: number): SnapshotValues | null {
    const events = this.#of(mint, atMs)
    if (events.length === 0) return null
    const { trades } = this.#taken(mint, atMs)
    const from = Math.floor(atMs / 900_000) * 900_000 - 86_400_000 + 900_000
    const day = trades.filter((trade) => trade.ts >= from)
    const newest = newestOf(trades)
    const onCurve = newestOf(trades.filter(({ vSol, vTokens }) => vSol != null && vTokens != null))
    const patched = (field: 'holderCount' | 'liquidity' | 'top10HolderPct') =>
      events.reduce<number | null>(
        (value, { event }) =>
          event.type === 'patch' && event.fields[field] !== undefined ? event.fields[field]! : value,
        null,
      )
    const told = events.findLast(({ event }) => event.type === 'token')?.event
    const supply = told?.type === 'token' ? (told.totalSupply ?? null) : null
    const graduated = events.some(({ event }) => event.type === 'graduated')
    return {
      priceUsd: newest?.priceUsd ?? null,
      marketCap: newest && supply ? newest.priceUsd! * supply : null,
      volume24h: this.volume(mint, 86_400_000, 900_000, atMs),
      liquidity: patched('liquidity') ?? (onCurve && raisedUsd(onCurve)),
      holderCount: patched('holderCount'),
      top10HolderPct: patched('top10HolderPct'),
      buys24h: day.filter((trade) => trade.side === 'buy').length,
      sells24h: day.filter((trade) => trade.side === 'sell').length,
      bondingProgress: graduated ? 100 : onCurve && progressOf(onCurve),
    }
  }

  bars(mint: string, tf: Timeframe, nowMs: number): Bar[] {
    const length = TIMEFRAME_MS[tf]
    const { trades, watermarkMs } = this.#taken(mint, nowMs)
    const buckets = new Map<number, Taken[]>()
    for (const trade of trades) {
      const t = Math.floor(trade.ts / length) * length
      buckets.set(t, [...(buckets.get(t) ?? []), trade])
    }
    return [...buckets.entries()]
      .sort(([a], [b]) => a - b)
      .map(([t, members]) => {
        const ordered = members.toSorted((a, b) => a.ts - b.ts)
        const prices = ordered.map((trade) => trade.priceUsd!)
        return {
          t,
          o: prices[0],
          h: Math.max(...prices),
          l: Math.min(...prices),
          c: prices[prices.length - 1],
          v: ordered.reduce((sum, trade) => sum + trade.priceUsd! * trade.tokenAmount, 0),
          n: ordered.length,
          closed: t + length <= watermarkMs,
        }
      })
  }

  tab(tab: Tab, nowMs: number): string[] {
    return this.mints().filter((mint) => {
      const events = this.#of(mint, nowMs)
      if (tab === 'all') return true
      if (tab === 'graduated') return events.some(({ event }) => event.type === 'graduated')
      const live = events.findLast(({ event }) => event.type === 'live')?.event
      if (tab === 'live') return live?.type === 'live' && live.isLive
      const created = this.#createdAt(mint, nowMs)
      return created !== null && nowMs - created < this.#newWindowMs
    })
  }

  #createdAt(mint: string, nowMs: number): number | null {
    return this.#of(mint, nowMs).find(({ event }) => event.type === 'token')?.event.ts ?? null
  }

  /** The change of the newest price against the last one before a window, percent. */
  #change(mint: string, lengthMs: number, resolutionMs: number, atMs: number): number | null {
    const from = Math.floor(atMs / resolutionMs) * resolutionMs - lengthMs + resolutionMs
    const trades = this.#taken(mint, atMs).trades.toSorted((a, b) => a.ts - b.ts)
    const then = trades.findLast(({ ts }) => ts < from)?.priceUsd
    return then == null ? null : (100 * (trades.at(-1)!.priceUsd! - then)) / then
  }

  #figure(mint: string, sort: Sort, nowMs: number): number | null {
    const snapshot = this.snapshot(mint, nowMs)
    if (snapshot === null) return null
    const trades = this.#taken(mint, nowMs).trades
    const counts = this.log.filter(({ event }) => event.type === 'analysisCount' && event.mint === mint)
    const count = counts.at(-1)?.event
    const MINUTE = 60_000
    const figures: Partial<Record<Sort, number | null>> = {
      market_cap: snapshot.marketCap,
      price: snapshot.priceUsd,
      volume_24h: snapshot.volume24h,
      volume_1h: this.volume(mint, 60 * MINUTE, MINUTE, nowMs),
      change_5m: this.#change(mint, 5 * MINUTE, MINUTE / 4, nowMs),
      change_1h: this.#change(mint, 60 * MINUTE, MINUTE, nowMs),
      change_6h: this.#change(mint, 360 * MINUTE, 5 * MINUTE, nowMs),
      change_24h: this.#change(mint, 1_440 * MINUTE, 15 * MINUTE, nowMs),
      liquidity: snapshot.liquidity,
      holders: snapshot.holderCount,
      trades_24h: snapshot.buys24h! + snapshot.sells24h!,
      buys_24h: snapshot.buys24h,
      sells_24h: snapshot.sells24h,
      last_trade: trades.length === 0 ? null : Math.max(...trades.map(({ ts }) => ts)),
      analyses: count?.type === 'analysisCount' ? count.count : 0,
    }
    return figures[sort] ?? null
  }

  key(mint: string, sort: Sort, nowMs: number): number {
    if (sort === 'created_timestamp') return this.#createdAt(mint, nowMs) ?? Number.NEGATIVE_INFINITY
    if (sort !== 'hot') return this.#figure(mint, sort, nowMs) ?? Number.NEGATIVE_INFINITY
    // The decayed volume itself, referred to now, rather than its logarithm.
    return this.#taken(mint, nowMs).trades.reduce(
      (sum, trade) =>
        sum + trade.priceUsd! * trade.tokenAmount * 2 ** ((trade.ts - nowMs) / HOT_HALF_LIFE_MS),
      0,
    )
  }
}
