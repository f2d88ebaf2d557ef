// Reads the journal: whole batches in order, over all segments, with every checksum checked. Any process may read while the server
// writes. Holds one batch in memory at a time.
import { type Disk, nodeDisk } from '../lib/disk/disk.ts'
import { readHighWaterMark } from '../lib/disk/high-water-mark.ts'
import { decodeBatch } from './batch/batch-decoder.ts'
import type { EventBatch } from './event-batch.ts'
import { type JournalPlan, type PlannedSegment, planJournal } from './segments/plan.ts'
import { type FoundBatch, findProven, readSegment, type SegmentEnding } from './segments/segment-reader.ts'
import type { EventRange, JournalDamage, ReadJournalOptions, WrittenBatch } from './types.ts'

export interface DiskReadOptions extends ReadJournalOptions {
  disk?: Disk
}

/** As `ReadJournal` says. */
export async function* readJournal(
  folder: string,
  afterEventNo: number,
  options: DiskReadOptions = {},
): AsyncGenerator<EventBatch, void> {
  for await (const { frame } of findBatches(folder, afterEventNo, options)) {
    const batch = decodeBatch(frame)
    if (batch !== null) yield batch
  }
}

/** The same batches as bytes. Each frame is a copy. */
export async function* readFrames(
  folder: string,
  afterEventNo: number,
  options: DiskReadOptions = {},
): AsyncGenerator<WrittenBatch, void> {
  for await (const { firstEventNo, lastEventNo, frame } of findBatches(folder, afterEventNo, options))
    yield { firstEventNo, lastEventNo, frame: Buffer.from(frame) }
}

async function* findBatches(
  folder: string,
  afterEventNo: number,
  options: DiskReadOptions,
): AsyncGenerator<FoundBatch, void> {
  const { disk = nodeDisk, folderId = null, throughEventNo = Infinity, onDamage = () => {} } = options
  const { knownEventNo = 0 } = options
  const plan = await planJournal(disk, folder, folderId)
  for (const file of plan.foreign)
    onDamage({ kind: 'foreign_file', file, fromByte: 0, toByte: 0, missing: null })
  yield* readPlanned(disk, plan, { afterEventNo, throughEventNo, knownEventNo, onDamage })
}

/** The run that recorded an event; null where the journal does not have it any more, or its segment is damaged. */
export async function findRunOf(folder: string, folderId: string, eventNo: number): Promise<string | null> {
  const { segments } = await planJournal(nodeDisk, folder, folderId)
  const segment = segments.findLast(({ firstEventNo }) => firstEventNo <= eventNo)
  return segment?.header?.runId ?? null
}

interface PlannedRead {
  afterEventNo: number
  throughEventNo: number
  /** Events up to this one were durable, whatever the segments say. */
  knownEventNo: number
  onDamage(damage: JournalDamage): void
}

interface Ending extends SegmentEnding {
  /** Where the journal ends, where it was read to its end; null: it has no segments behind `afterEventNo`. */
  segment: PlannedSegment | null
}

async function* readPlanned(
  disk: Disk,
  { segments }: JournalPlan,
  { afterEventNo, throughEventNo, knownEventNo, onDamage }: PlannedRead,
): AsyncGenerator<FoundBatch, Ending> {
  const wanted = segments.filter(
    ({ firstEventNo, cutoffEventNo }) => cutoffEventNo > afterEventNo && firstEventNo <= throughEventNo,
  )
  const provenEventNo = Math.max(
    Number.isFinite(throughEventNo) ? throughEventNo : knownEventNo,
    await findProvenIn(disk, segments),
  )
  const ending: Ending = { nextEventNo: afterEventNo + 1, isCutOff: false, segment: null }
  if (throughEventNo <= afterEventNo) return ending
  for (const segment of wanted) {
    const isConnected =
      segment.firstEventNo <= ending.nextEventNo || segment.firstEventNo <= provenEventNo + 1
    // Only the first one may not be connected: readSegment sees to the others.
    if (!isConnected) break
    reportMissing(ending.nextEventNo, segment.firstEventNo - 1, onDamage)
    const batches = readSegment(disk, { segment, provenEventNo, onDamage })
    Object.assign(ending, yield* pickBatches(batches, afterEventNo, throughEventNo), { segment })
    if (ending.isCutOff || ending.nextEventNo > throughEventNo) return ending
  }
  if (ending.segment !== null) return ending
  const lastEventNo = Math.min(provenEventNo, throughEventNo)
  reportMissing(ending.nextEventNo, lastEventNo, onDamage)
  return { ...ending, nextEventNo: Math.max(ending.nextEventNo, lastEventNo + 1) }
}

/** The last event that is known to have been durable. */
async function findProvenIn(disk: Disk, segments: readonly PlannedSegment[]): Promise<number> {
  const newest = segments.at(-1)
  if (newest === undefined) return 0
  const shown = segments.map(({ header }) => header?.syncedEventNo ?? 0)
  return Math.max(...shown, await findProven(disk, newest))
}

function reportMissing(from: number, to: number, onDamage: (damage: JournalDamage) => void): void {
  if (from <= to) onDamage({ kind: 'missing', file: null, fromByte: 0, toByte: 0, missing: { from, to } })
}

/** Passes on the batches of a segment that have events behind `afterEventNo` and up to `throughEventNo`. */
async function* pickBatches(
  batches: AsyncGenerator<FoundBatch, SegmentEnding>,
  afterEventNo: number,
  throughEventNo: number,
): AsyncGenerator<FoundBatch, SegmentEnding> {
  const none: SegmentEnding = { nextEventNo: 0, isCutOff: false }
  try {
    for (;;) {
      const next = await batches.next()
      if (next.done === true) return next.value
      const { firstEventNo, lastEventNo } = next.value
      if (lastEventNo <= afterEventNo) continue
      if (firstEventNo <= throughEventNo) yield next.value
      if (lastEventNo >= throughEventNo) return { nextEventNo: lastEventNo + 1, isCutOff: false }
    }
  } finally {
    // Closes the file, also where the caller wants no more.
    await batches.return(none)
  }
}

export interface JournalEnd {
  /** Those that hold events, oldest first. */
  segments: PlannedSegment[]
  /** Those behind the end: their events were never durable and are not used. They have to be deleted before others are written. */
  voidSegments: PlannedSegment[]
  /** Number of the last event that can be read or is known to be lost; 0 where there is none. */
  lastEventNo: number
  /** Number of the last event that is there, or before one that is. The events behind it were deleted or cut off. */
  heldEventNo: number
  /** The last event that is known to have been durable. */
  syncedEventNo: number
}

export interface FindEndOptions {
  disk: Disk
  folder: string
  folderId: string
  /** Where it was noted how far the journal went; undefined: nowhere. */
  markPath: string | undefined
}

/** Finds where the journal ends; reads the newest segments only. */
export async function findEnd({ disk, folder, folderId, markPath }: FindEndOptions): Promise<JournalEnd> {
  const plan = await planJournal(disk, folder, folderId)
  const { segments } = plan
  const knownEventNo = markPath === undefined ? 0 : await readHighWaterMark(disk, markPath, folderId)
  const shownEventNo = await findProvenIn(disk, segments)
  const syncedEventNo = Math.max(shownEventNo, knownEventNo)
  let missing: EventRange | null = null
  const onDamage = (damage: JournalDamage): void => {
    missing = damage.missing
  }
  const read = { afterEventNo: shownEventNo, throughEventNo: Infinity, knownEventNo, onDamage }
  const batches = readPlanned(disk, plan, read)
  for (;;) {
    const next = await batches.next()
    if (next.done !== true) continue
    const lastEventNo = next.value.nextEventNo - 1
    const isVoid = ({ firstEventNo }: PlannedSegment): boolean => firstEventNo > lastEventNo
    return {
      segments: segments.filter((segment) => !isVoid(segment)),
      voidSegments: segments.filter(isVoid),
      heldEventNo: heldBefore(missing, lastEventNo),
      ...{ lastEventNo, syncedEventNo: Math.min(syncedEventNo, lastEventNo) },
    }
  }
}

/** The last event that is held, where this part is missing as the last one of the journal's damage. */
const heldBefore = (missing: EventRange | null, lastEventNo: number): number =>
  missing !== null && missing.to === lastEventNo ? missing.from - 1 : lastEventNo
