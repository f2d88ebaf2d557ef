// Which recorded events a replay applies: from the last moment before the wanted one at which the whole state of the market is
// known, or else, approximately, from a day before.

import { isDeepStrictEqual } from 'node:util'
import type { NumberRange } from '../../lib/segments/types.ts'
import { DAY_MS } from '../../lib/time.ts'
import type { EngineSettings } from '../../schema/event.ts'
import { notFound } from '../errors.ts'
import { findEvents, findTimes, listRuns, type RecordedRun, readEventRange } from './recorded-events.ts'

/** How long a market is fed before the wanted moment, where its state of then is not known. */
const WARM_UP_MS = DAY_MS

export interface ReplayPlan {
  /** The events that are applied. */
  range: NumberRange
  /** The checkpoint that they follow; null: an empty market. */
  checkpointEventNo: number | null
  /** Events before this number only bring the market to its state. */
  playFromNo: number
  /** Market time at which it is played from, and that of the last event, Unix ms. */
  fromMs: number
  toMs: number
  /** What the engine was set to; null: not known. */
  settings: EngineSettings | null
  simulated: boolean
  /** Why the market may differ from the one that was recorded; null: it does not. */
  approximate: string | null
  /** Why it ends before the last wanted event; null: it does not. */
  endsEarly: string | null
}

/** A checkpoint from which a replay may start. */
export interface KeptCheckpoint {
  /** The market is as it was after this event. */
  eventNo: number
  settings: EngineSettings
}

export interface LakeContents {
  runs: readonly RecordedRun[]
  /** The numbers that the lake has. */
  held: NumberRange
  checkpoints: readonly KeptCheckpoint[]
  /** The first and the last event that is wanted. */
  wanted: NumberRange
  /** Where a replay begins that has no exact start. */
  warmUpFrom: number
}

/** Makes the plan from what a lake has. */
export function planReplay({
  runs,
  held,
  checkpoints,
  wanted,
  warmUpFrom,
}: LakeContents): Omit<ReplayPlan, 'fromMs' | 'toMs'> {
  // Of two at one number the run counts: the checkpoint is of the market before it.
  const starts = [
    ...checkpoints.map((checkpoint) => ({ from: checkpoint.eventNo + 1, checkpoint })),
    ...runs.filter(isCold).map(({ eventNo }) => ({ from: eventNo, checkpoint: null })),
  ]
  const start = starts
    .filter(({ from }) => from >= held.from && from <= wanted.from)
    .sort((a, b) => a.from - b.from)
    .at(-1)
  const from = start?.from ?? Math.max(held.from, warmUpFrom)
  const checkpoint = start?.checkpoint ?? null
  const run = runs.findLast(({ eventNo }) => eventNo <= (checkpoint?.eventNo ?? from))
  const settings = checkpoint?.settings ?? run?.event.header.settings ?? null
  // A market that began empty, or with other settings, is another one.
  const other = runs.find(
    (each) =>
      each.eventNo > wanted.from &&
      each.eventNo <= wanted.to &&
      (isCold(each) || (settings !== null && !isDeepStrictEqual(each.event.header.settings, settings))),
  )
  return {
    range: { from, to: other === undefined ? wanted.to : other.eventNo - 1 },
    checkpointEventNo: checkpoint?.eventNo ?? null,
    playFromNo: Math.max(from, wanted.from),
    settings,
    simulated: (run ?? runs[0])?.event.header.simulated ?? false,
    approximate:
      start === undefined
        ? 'the lake has neither the beginning of this run nor a checkpoint before this time: what happened earlier than a day before is missing'
        : null,
    endsEarly: other === undefined ? null : whyEnded(other),
  }
}

const whyEnded = (run: RecordedRun): string =>
  `the run that began at ${new Date(run.atMs).toISOString()} ${isCold(run) ? 'began with an empty market' : 'had other settings'}: replay it from there`

const isCold = ({ event }: RecordedRun): boolean => event.header.checkpointEventNo === null

export interface WantedReplay extends Pick<LakeContents, 'checkpoints'> {
  /** Market time, Unix ms; null: from the first run that the lake has the beginning of. */
  fromMs: number | null
  /** Market time, Unix ms; null: to the end of that run. */
  toMs: number | null
}

/**
 * Reads what a lake has, and makes the plan.
 * @throws StoreError `not_found` where the lake has no events of that time
 */
export async function openReplayPlan(
  dataDir: string,
  { fromMs, toMs, checkpoints }: WantedReplay,
): Promise<ReplayPlan> {
  const [runs, held] = [await listRuns(dataDir), await readEventRange(dataDir)]
  if (held === null) throw notFound(`the lake in ${dataDir} has no recorded events`)
  const wanted = await findEvents(dataDir, fromMs ?? 0, toMs ?? Number.MAX_SAFE_INTEGER)
  if (wanted === null) throw notFound(`the lake in ${dataDir} has no recorded events of that time`)
  const first = runs.find((run) => isCold(run) && run.eventNo >= held.from)?.eventNo
  if (fromMs === null) wanted.from = first ?? held.from
  const warmUp = fromMs === null ? null : await findEvents(dataDir, fromMs - WARM_UP_MS, fromMs)
  const plan = planReplay({ runs, held, checkpoints, wanted, warmUpFrom: warmUp?.from ?? wanted.from })
  const [firstMs, lastMs] = await findTimes(dataDir, [plan.playFromNo, plan.range.to])
  if (fromMs !== null || firstMs > 0) return { ...plan, fromMs: fromMs ?? firstMs, toMs: lastMs }
  // Where files were replayed, market time is known from the first row on: the beginning of the run was recorded at 0.
  const timed = await findEvents(dataDir, 1, Number.MAX_SAFE_INTEGER, plan.playFromNo)
  const playFromNo = Math.min(timed?.from ?? plan.playFromNo, plan.range.to)
  const [timedMs] = await findTimes(dataDir, [playFromNo])
  return { ...plan, playFromNo, fromMs: timedMs, toMs: lastMs }
}
