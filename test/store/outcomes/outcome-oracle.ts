// Computes the outcome of one submission directly from raw trades. Shares only the lengths of the horizons with the store.
import { HORIZON_NAMES, HORIZONS } from '../../../src/schema/vocabulary.ts'

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

export interface RawTrade {
  mint: string
  ts: number
  priceUsd: number
}

export interface Submitted {
  analysisId: string
  mint: string
  atMs: number
  priceUsd: number | null
}

export interface Expected {
  analysis_id: string
  base_price_usd: number | null
  fwd_ret: (number | null)[]
  fwd_max_drawdown_24h: number | null
  dead_24h: boolean | null
  fwd_trades_24h: number | null
  fwd_last_trade_24h: number | null
  watched_minutes_24h: number | null
}

const endOf = (ts: number): number => Math.floor(ts / MINUTE_MS) * MINUTE_MS + MINUTE_MS

/** The last price of each minute with a trade, in ascending order of the minutes' ends. */
function closes(trades: readonly RawTrade[]): { endMs: number; price: number; trades: number }[] {
  const inOrder = trades.toSorted((a, b) => a.ts - b.ts)
  return [...Map.groupBy(inOrder, ({ ts }) => endOf(ts))].map(([endMs, members]) => {
    return { endMs, price: members.at(-1)!.priceUsd, trades: members.length }
  })
}

type Close = ReturnType<typeof closes>[number]

function deepestFall(prices: readonly number[]): number {
  let peak = 0
  return Math.min(
    ...prices.map((price) => {
      peak = Math.max(peak, price)
      return price / peak - 1
    }),
  )
}

/** The outcomes as of `labelledToMs` of all submissions with a horizon that ended by then. */
export function outcomesOf(
  submitted: readonly Submitted[],
  trades: readonly RawTrade[],
  labelledToMs: number,
): Expected[] {
  const minutesOf = new Map(
    [...Map.groupBy(trades, ({ mint }) => mint)].map(([mint, own]) => [mint, closes(own)]),
  )
  const watched = [...new Set(trades.map(({ ts }) => endOf(ts)))]
  return submitted
    .filter(({ atMs }) => atMs + HORIZONS[HORIZON_NAMES[0]] <= labelledToMs)
    .map((each) => outcomeOf(each, minutesOf.get(each.mint) ?? [], watched, labelledToMs))
}

function outcomeOf(
  submitted: Submitted,
  minutes: readonly Close[],
  watched: readonly number[],
  labelledToMs: number,
): Expected {
  const { atMs } = submitted
  const before = minutes.filter(({ endMs }) => endMs <= atMs && endMs > atMs - DAY_MS)
  const base = submitted.priceUsd ?? before.at(-1)?.price ?? null
  const until = (lengthMs: number) => minutes.filter(({ endMs }) => endMs > atMs && endMs <= atMs + lengthMs)
  const priceAfter = (lengthMs: number) => until(lengthMs).at(-1)?.price ?? base
  const day = until(DAY_MS)
  const isOver = atMs + DAY_MS <= labelledToMs
  const isSilent = day.every(({ endMs }) => endMs <= atMs + DAY_MS - 6 * 3_600_000)
  return {
    analysis_id: submitted.analysisId,
    base_price_usd: base,
    fwd_ret: HORIZON_NAMES.map((name) =>
      base === null || atMs + HORIZONS[name] > labelledToMs ? null : priceAfter(HORIZONS[name])! / base - 1,
    ),
    fwd_max_drawdown_24h:
      isOver && base !== null ? deepestFall([base, ...day.map(({ price }) => price)]) : null,
    dead_24h: isOver ? isSilent || (base !== null && priceAfter(DAY_MS)! <= base * 0.01) : null,
    fwd_trades_24h: isOver ? day.reduce((sum, minute) => sum + minute.trades, 0) : null,
    fwd_last_trade_24h: isOver && day.length > 0 ? day.at(-1)!.endMs - MINUTE_MS : null,
    watched_minutes_24h: isOver ? watched.filter((end) => end > atMs && end <= atMs + DAY_MS).length : null,
  }
}
