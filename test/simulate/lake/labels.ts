// Outcomes as data/README.md defines them, computed plainly: what the price did after a submission, from bars of a minute.
import type { Row } from '../../../src/schema/tables.ts'
import { HORIZON_NAMES, HORIZONS, type Horizon } from '../../../src/schema/vocabulary.ts'

const MINUTE_MS = 60_000
const DEAD_SILENCE_MS = 6 * 3_600_000
const DEAD_PRICE_SHARE = 0.01
/** How far back the price is searched for a submission without one. */
const BASE_LOOKBACK_MS = 86_400_000

/** A submission whose last horizon has not passed. */
export interface OpenOutcome {
  analysisId: string
  mint: string
  submittedAtMs: number
  base: number | null
  /** How many horizons have their label. */
  done: number
  labels: Row
}

export interface Minute {
  endMs: number
  c: number
  n: number
}

/** Closed bars of a minute. */
export interface Minutes {
  /** Of a token, in their order. */
  of(mint: string): readonly Minute[]
  /** Ends of those with a bar of any token. */
  ends: ReadonlySet<number>
}

export function minutesOf(bars: Iterable<{ mint: string; t: number; c: number; n: number }>): Minutes {
  const byMint = new Map<string, Minute[]>()
  const ends = new Set<number>()
  for (const { mint, t, c, n } of bars) {
    const endMs = t + MINUTE_MS
    ends.add(endMs)
    const found = byMint.get(mint)
    if (found === undefined) byMint.set(mint, [{ endMs, c, n }])
    else found.push({ endMs, c, n })
  }
  for (const minutes of byMint.values()) minutes.sort((a, b) => a.endMs - b.endMs)
  return { of: (mint) => byMint.get(mint) ?? [], ends }
}

/** Of one whose bars were not in the lake any more. */
export const unknownLabels = (horizon: Horizon): Row => ({ [`fwd_ret_${horizon}`]: null })

type Labelled = Pick<OpenOutcome, 'mint' | 'submittedAtMs' | 'base'>

/** The price that returns refer to: that of the submission, else the last close before it. */
export function basePriceOf({ mint, submittedAtMs, base }: Labelled, minutes: Minutes): number | null {
  if (base !== null) return base
  const before = minutes
    .of(mint)
    .findLast(({ endMs }) => endMs <= submittedAtMs && endMs > submittedAtMs - BASE_LOOKBACK_MS)
  return before?.c ?? null
}

/** The columns of a horizon, of a submission whose base price is known as far as it can be. */
export function labelsOf(
  { mint, submittedAtMs, base }: Labelled,
  horizon: Horizon,
  minutes: Minutes,
): Record<string, number | boolean | null> {
  const toMs = submittedAtMs + HORIZONS[horizon]
  const isWithin = (endMs: number): boolean => endMs > submittedAtMs && endMs <= toMs
  const path = minutes.of(mint).filter(({ endMs }) => isWithin(endMs))
  const last = path.at(-1)
  const price = last?.c ?? base
  const hasBase = base !== null && base > 0
  const ret = { [`fwd_ret_${horizon}`]: hasBase ? price! / base - 1 : null }
  if (horizon !== HORIZON_NAMES.at(-1)) return ret
  let peak = base ?? 0
  let drawdown = 0
  for (const { c } of path) {
    peak = Math.max(peak, c)
    drawdown = Math.min(drawdown, c / peak - 1)
  }
  const isSilent = (last?.endMs ?? 0) <= toMs - DEAD_SILENCE_MS
  return {
    ...ret,
    fwd_max_drawdown_24h: hasBase ? drawdown : null,
    dead_24h: isSilent || (price !== null && base !== null && price <= base * DEAD_PRICE_SHARE),
    fwd_trades_24h: path.reduce((sum, { n }) => sum + n, 0),
    fwd_last_trade_24h: last === undefined ? null : last.endMs - MINUTE_MS,
    watched_minutes_24h: [...minutes.ends].filter(isWithin).length,
  }
}
