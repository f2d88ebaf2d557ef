// How a run records its market, for /health and /metrics.
import type { CheckpointStatus } from '../checkpoint/checkpoint-scheduler.ts'
import type { JournalStats } from '../journal/types.ts'
import type { OpenedMarket } from './open-market.ts'

export interface RecordingStatus {
  /** Whether market events are to be recorded. */
  isOn: boolean
  /** A sentence for each thing that is wrong. */
  reasons: string[]
  journal: JournalStats | null
  checkpoints: CheckpointStatus | null
  /** What this run began with; null: an empty market. */
  restored: { fromEventNo: number; events: number; lost: number; tookMs: number } | null
}

/** What is wrong where a replay in recorded time, which begins anew with each start, is recorded behind other runs. */
export const RECORDED_TWICE =
  'the data folder has events of an earlier run: a replay that is recorded beside them counts its trades again, and keeps the bars there are; use an empty --data-dir'

/** What is wrong, as sentences. @param lakeEventNo the last recorded event that the lake has */
export function recordingReasons(
  { emptied, lostEnd, trouble }: Pick<OpenedMarket, 'emptied' | 'lostEnd' | 'trouble'>,
  { journal, checkpoints }: Pick<RecordingStatus, 'journal' | 'checkpoints'>,
  lakeEventNo: number,
): string[] {
  const reasons = trouble === null ? [] : [trouble]
  if (emptied !== null) reasons.push(`the market began empty: ${emptied}`)
  // Once the lake is past them it tells of them itself, until `lake repair` acknowledges that.
  if (lostEnd !== null && lakeEventNo < lostEnd.to)
    reasons.push(
      `the recorded events ${lostEnd.from} to ${lostEnd.to} are lost: the end of the journal is missing`,
    )
  if (journal !== null && journal.trouble !== null)
    reasons.push(`market events are not recorded: ${journal.trouble}`)
  if (journal !== null && journal.lost > 0)
    reasons.push(`market events of this run that could not be recorded: ${journal.lost}; see gaps`)
  if (checkpoints !== null && checkpoints.trouble !== null)
    reasons.push(`no checkpoint of the market can be made: ${checkpoints.trouble}`)
  return reasons
}
