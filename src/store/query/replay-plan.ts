// Which recorded events a replay applies: from the last moment before the wanted one at which the whole state of the market is
// known, or else, approximately, from a day before.

import { isDeepStrictEqual } from 'node:util'
import type { DuckDBConnection } from '@duckdb/node-api'
import type { NumberRange } from '../../lib/segments/types.ts'
import { DAY_MS } from '../../lib/time.ts'
import type { EngineSettings } from '../../schema/event.ts'
import { notFound } from '../errors.ts'
import { withLakeReader } from './lake-reader.ts'
import {
  countEvents,
  findEvents,
  findTime,
  type LostRange,
  listRuns,
  type RecordedRun,
  type RecordedSpan,
  readSpan,
} from './recorded-events.ts'

/** How long a market is fed before the wanted moment, where its state of then is not known. */
const WARM_UP_MS = DAY_MS

export interface ReplayPlan {
  /** The events that are applied, but for those that are lost. */
  range: NumberRange
  /** Ranges in which some are lost for good, in order; no two meet. The market has a gap there. */
  lost: readonly NumberRange[]
  /** How many are applied. */
  eventsTotal: number
  /** The checkpoint that they follow; null: an empty market. */
  checkpointEventNo: number | null
  /** Events before this number only bring the market to its state. */
  playFromNo: number
  /** Market time at which it is played from, not before the first event that is known, and that of the last event, Unix ms. */
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
  /** The numbers of the lake. */
  held: RecordedSpan
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
}: LakeContents): Omit<ReplayPlan, 'eventsTotal' | 'fromMs' | 'toMs'> {
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
  const to = other === undefined ? wanted.to : other.eventNo - 1
  const losses = joined(held.lost)
    .map((each) => ({ ...each, from: Math.max(from, each.from), to: Math.min(to, each.to) }))
    .filter((each) => each.from <= each.to)
  const lost = losses.filter(({ isSettled }) => isSettled)
  const unsettled = losses.find(({ isSettled }) => !isSettled)
  return {
    range: { from, to },
    lost,
    checkpointEventNo: checkpoint?.eventNo ?? null,
    playFromNo: Math.max(from, wanted.from),
    settings,
    simulated: (run ?? runs[0])?.event.header.simulated ?? false,
    approximate: sentenceOf([
      start === undefined ? NO_START : null,
      lost.length === 0 ? null : tellLost(lost),
    ]),
    endsEarly: sentenceOf([
      unsettled === undefined
        ? null
        : `${tellLost([unsettled])}: the replay fails there until mintlake lake repair settles it`,
      other === undefined ? null : whyEnded(other),
    ]),
  }
}

const NO_START =
  'the lake has neither the beginning of this run nor a checkpoint before this time: what happened earlier than a day before is missing'

function tellLost(ranges: readonly NumberRange[]): string {
  const numbers = ranges.flatMap(({ from, to }) => [from, to])
  const where = ranges.length === 1 ? '' : `, in ${ranges.length} places`
  return `events between the numbers ${Math.min(...numbers)} and ${Math.max(...numbers)} are lost${where}`
}

/** One of several; null: there is none. */
function sentenceOf(parts: readonly (string | null)[]): string | null {
  const told = parts.filter((part) => part !== null)
  return told.length === 0 ? null : told.join('; ')
}

/** What ranges cover, in order, as ranges of which no two meet. Each is settled where all that it is made of are. */
function joined(ranges: readonly LostRange[]): LostRange[] {
  const all: LostRange[] = []
  for (const { from, to, isSettled } of ranges.toSorted((a, b) => a.from - b.from)) {
    const last = all.at(-1)
    if (last !== undefined && from <= last.to + 1) {
      last.to = Math.max(last.to, to)
      last.isSettled &&= isSettled
    } else all.push({ from, to, isSettled })
  }
  return all
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
export const openReplayPlan = (dataDir: string, wanted: WantedReplay): Promise<ReplayPlan> =>
  withLakeReader({ dataDir }, ({ connection }) => makePlan(connection, dataDir, wanted))

async function makePlan(
  connection: DuckDBConnection,
  dataDir: string,
  { fromMs, toMs, checkpoints }: WantedReplay,
): Promise<ReplayPlan> {
  const [runs, held] = [await listRuns(connection), await readSpan(connection)]
  if (held === null) throw notFound(`the lake in ${dataDir} has no recorded events`)
  const wanted = await findEvents(connection, fromMs ?? 0, toMs ?? Number.MAX_SAFE_INTEGER)
  if (wanted === null) {
    const why = held.lost.length === 0 ? '' : ', or has lost them: see mintlake lake verify'
    throw notFound(`the lake in ${dataDir} has no recorded events of that time${why}`)
  }
  if (fromMs === null) wanted.from = firstOf(runs, held)
  wanted.from = await firstKept(connection, runs, held, wanted.from)
  const warmUp = fromMs === null ? null : await findEvents(connection, fromMs - WARM_UP_MS, fromMs)
  const planned = planReplay({ runs, held, checkpoints, wanted, warmUpFrom: warmUp?.from ?? wanted.from })
  const { lost, range } = planned
  const eventsTotal = lost.length === 0 ? range.to - range.from + 1 : await countEvents(connection, range)
  const plan = { ...planned, eventsTotal }
  const firstMs = await findTime(connection, plan.playFromNo)
  const lastMs = await findTime(connection, range.to)
  const isKnown = async (atMs: number): Promise<boolean> =>
    plan.checkpointEventNo !== null || (await findEvents(connection, 1, atMs, range.from)) !== null
  // Of an earlier time nobody knows the market: it would be an empty one, for as long as that.
  if (fromMs !== null && (await isKnown(fromMs))) return { ...plan, fromMs, toMs: lastMs }
  if (firstMs > 0) return { ...plan, fromMs: firstMs, toMs: lastMs }
  // Where files were replayed, market time is known from the first row on: the beginning of the run was recorded at 0.
  const timed = await findEvents(connection, 1, Number.MAX_SAFE_INTEGER, plan.playFromNo)
  const playFromNo = Math.min(timed?.from ?? plan.playFromNo, range.to)
  return { ...plan, playFromNo, fromMs: await findTime(connection, playFromNo), toMs: lastMs }
}

/** The beginning of the first run that the lake has, or where that may be lost the first number. */
function firstOf(runs: readonly RecordedRun[], held: RecordedSpan): number {
  const first = runs.find((run) => isCold(run) && run.eventNo >= held.from)?.eventNo
  return first === undefined || held.lost.some(({ from }) => from < first) ? held.from : first
}

/** The first number that is wanted, or the run behind it, where all before that is lost for good: the replay would end before it. */
async function firstKept(
  connection: DuckDBConnection,
  runs: readonly RecordedRun[],
  { lost }: RecordedSpan,
  first: number,
): Promise<number> {
  const next = runs.find(({ eventNo }) => eventNo > first)?.eventNo
  const isLost = joined(lost).some(({ from, to, isSettled }) => isSettled && from <= first && first <= to)
  if (next === undefined || !isLost) return first
  return (await countEvents(connection, { from: first, to: next - 1 })) === 0 ? next : first
}
