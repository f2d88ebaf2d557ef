// What a server records before its feeds begin: which run it is, that nothing was received since the run before, and how often tokens
// were analysed.
import type { EventJournal } from '../journal/journal.ts'
import type { Market } from '../market/market.ts'
import { LATE_GRACE_MS } from '../market/time/limits.ts'
import type { MarketEvent, RunHeader } from '../schema/event.ts'
import { COVERAGE_SLICE_EVENTS, COVERAGE_WRITE_MS_MAX } from './limits.ts'

export interface BeginRunOptions {
  market: Pick<Market, 'timeMs' | 'analysisCounts' | 'gaps'>
  /** Applies an event to the market, and records it. */
  apply(event: MarketEvent, receivedAtMs: number): unknown
  journal: Pick<EventJournal, 'written'> | null
  /** Market time, Unix ms. */
  nowMs: number
  /** The position before the first change of this run. */
  firstSeq: number
  header: RunHeader
  /** The market goes on from an earlier run: what was received since is missing. */
  isRestored: boolean
  /** A feed that will make up for what it has missed since, if it was no longer than this, ms; null: none does. */
  healing: { feed: string; healMs: number } | null
  /** Accepted analyses as the store has them, which is what counts. */
  coverage: readonly { mint: string; count: number }[]
}

export async function beginRun(options: BeginRunOptions): Promise<void> {
  const { market, apply, nowMs, firstSeq, header, isRestored, healing } = options
  const { timeMs: fromMs } = market
  const ts = Math.max(nowMs, fromMs)
  apply({ type: 'run', ts, firstSeq, header }, nowMs)
  if (isRestored) {
    // Nothing closes in between: what follows says which bars stay open.
    if (healing !== null && ts - fromMs <= healing.healMs) {
      const healUntilMs = ts + healing.healMs
      const { feed } = healing
      // Something may have been on its way. No bar that ended since has closed.
      const sinceMs = fromMs - LATE_GRACE_MS
      apply({ type: 'disconnect', ts, feed, sinceMs, healUntilMs, isDowntime: true }, nowMs)
    }
    if (!isHealed(options)) apply({ type: 'gap', ts, fromMs, toMs: ts, reason: 'downtime' }, nowMs)
  }
  await applyCoverage(options)
}

/** Whether every feed makes up for what it has missed: also one that was about to when the run before ended. */
function isHealed({ market, header }: BeginRunOptions): boolean {
  const { open } = market.gaps(1)
  const heals = new Set(open.flatMap(({ feed, healUntilMs }) => (healUntilMs === undefined ? [] : feed)))
  return header.feeds.length > 0 && header.feeds.every((feed) => heals.has(feed))
}

/** Only counts that differ are applied. In slices: the journal could not hold hundreds of thousands while the disk is slow. */
async function applyCoverage({ market, apply, journal, coverage }: BeginRunOptions): Promise<void> {
  const known = new Map<string, number>()
  for (const { key, value } of market.analysisCounts()) known.set(key, value)
  let applied = 0
  const set = async (mint: string, count: number): Promise<void> => {
    apply({ type: 'analysisCount', mint, ts: market.timeMs, count }, market.timeMs)
    if (++applied % COVERAGE_SLICE_EVENTS === 0) await journal?.written(COVERAGE_WRITE_MS_MAX)
  }
  for (const { mint, count } of coverage) {
    if ((known.get(mint) ?? 0) !== count) await set(mint, count)
    known.delete(mint)
  }
  for (const [mint, count] of known) if (count !== 0) await set(mint, 0)
}
