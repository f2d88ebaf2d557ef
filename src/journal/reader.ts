// Reads the journal: whole batches in order, over all segments, with every checksum checked. Any process may read while the server
// writes. Holds one batch in memory at a time.
import { type Disk, nodeDisk } from '../lib/disk/disk.ts'
import { readHighWaterMark } from '../lib/disk/high-water-mark.ts'
import { SegmentReader } from '../lib/segments/segment-reader.ts'
import {
  damageOf,
  type EntriesHead,
  type NumberRange,
  type PlannedSegment,
  type SegmentDamage,
} from '../lib/segments/types.ts'
import { decodeBatch } from './batch/batch-decoder.ts'
import type { EventBatch } from './event-batch.ts'
import { type JournalHeader, journalFormat } from './segments/journal-format.ts'
import type { JournalOptions, ReadJournalOptions, WrittenBatch } from './types.ts'

type JournalSegment = PlannedSegment<JournalHeader>
type JournalReader = SegmentReader<JournalHeader, EntriesHead>

const readerOn = (disk: Disk): JournalReader => new SegmentReader(disk, journalFormat)

interface FoundBatch extends EntriesHead {
  /** A view, valid until the next batch is asked for. */
  frame: Buffer
}

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
  for await (const { firstNo, lastNo, frame } of findBatches(folder, afterEventNo, options))
    yield { firstEventNo: firstNo, lastEventNo: lastNo, frame: Buffer.from(frame) }
}

async function* findBatches(
  folder: string,
  afterEventNo: number,
  options: DiskReadOptions,
): AsyncGenerator<FoundBatch, void> {
  const { disk = nodeDisk, folderId = null, throughEventNo = Infinity, onDamage = () => {} } = options
  const knownEventNo = Number.isFinite(throughEventNo) ? throughEventNo : (options.knownEventNo ?? 0)
  const reader = readerOn(disk)
  const { segments, foreign } = await reader.plan(folder, folderId)
  for (const name of foreign) onDamage(damageOf('foreign_file', name, null))
  const provenEventNo = Math.max(knownEventNo, await findProvenIn(reader, segments))
  yield* readPlanned(reader, segments, { afterEventNo, throughEventNo, provenEventNo, onDamage })
}

/** The run that recorded an event; null where the journal does not have it any more, or its segment is damaged. */
export async function findRunOf(folder: string, folderId: string, eventNo: number): Promise<string | null> {
  const { segments } = await readerOn(nodeDisk).plan(folder, folderId)
  return segments.findLast(({ firstNo }) => firstNo <= eventNo)?.header?.runId ?? null
}

interface PlannedRead {
  afterEventNo: number
  throughEventNo: number
  /** Events up to this one were durable. */
  provenEventNo: number
  onDamage(damage: SegmentDamage): void
}

interface Ending {
  /** The number that follows the last event that was read or is lost. */
  nextEventNo: number
  /** The journal ends there: what follows was never durable and is not whole. */
  isCutOff: boolean
  /** Where the journal ends, where it was read to its end; null: it has no segments behind `afterEventNo`. */
  segment: JournalSegment | null
}

async function* readPlanned(
  reader: JournalReader,
  segments: readonly JournalSegment[],
  read: PlannedRead,
): AsyncGenerator<FoundBatch, Ending> {
  const { afterEventNo, throughEventNo, provenEventNo, onDamage } = read
  let ending: Ending = { nextEventNo: afterEventNo + 1, isCutOff: false, segment: null }
  if (throughEventNo <= afterEventNo) return ending
  for (const segment of segments) {
    if (segment.cutoffNo <= afterEventNo || segment.firstNo > throughEventNo) continue
    const isConnected = segment.firstNo <= ending.nextEventNo || segment.firstNo <= provenEventNo + 1
    // Only the first one may not be connected: readSegment sees to the others.
    if (!isConnected) break
    reportMissing(ending.nextEventNo, segment.firstNo - 1, onDamage)
    ending = yield* readSegment(reader, segment, read)
    if (ending.isCutOff || ending.nextEventNo > throughEventNo) return ending
  }
  if (ending.segment !== null) return ending
  const lastEventNo = Math.min(provenEventNo, throughEventNo)
  reportMissing(ending.nextEventNo, lastEventNo, onDamage)
  return { ...ending, nextEventNo: Math.max(ending.nextEventNo, lastEventNo + 1) }
}

/** The last event that the segments prove to have been durable. */
async function findProvenIn(reader: JournalReader, segments: readonly JournalSegment[]): Promise<number> {
  const newest = segments.at(-1)
  if (newest === undefined) return 0
  const shown = segments.map(({ header }) => header?.durableNo ?? 0)
  return Math.max(...shown, await reader.findProvenNo(newest))
}

function reportMissing(from: number, to: number, onDamage: (damage: SegmentDamage) => void): void {
  if (from <= to) onDamage(damageOf('missing', null, { from, to }))
}

/** Yields the batches of a segment that have events behind `afterEventNo` and up to `throughEventNo`. */
async function* readSegment(
  reader: JournalReader,
  segment: JournalSegment,
  { afterEventNo, throughEventNo, provenEventNo: provenNo, onDamage }: PlannedRead,
): AsyncGenerator<FoundBatch, Ending> {
  const check = reader.check({ segment, provenNo, onDamage })
  for await (const item of reader.scan(segment)) {
    const head = check.check(item)
    if (head === null || head.lastNo <= afterEventNo) continue
    if (head.firstNo <= throughEventNo) yield { ...head, frame: item.frame }
    if (head.lastNo >= throughEventNo) return { nextEventNo: head.lastNo + 1, isCutOff: false, segment }
  }
  check.finish()
  // A later segment goes on behind a gap.
  const isGap = check.nextNo <= segment.cutoffNo && segment.cutoffNo < Infinity
  return { nextEventNo: check.nextNo, isCutOff: check.isCutOff || isGap, segment }
}

export interface JournalEnd {
  /** Those that hold events, oldest first. */
  segments: JournalSegment[]
  /** Those behind the end: their events were never durable and are not used. They have to be deleted before others are written. */
  voidSegments: JournalSegment[]
  /** Number of the last event that can be read, is in the lake or is known to be lost; 0 where there is none. */
  lastEventNo: number
  /** Number of the last event that is there, or before one that is. The events behind it were deleted or cut off. */
  heldEventNo: number
  /** The last event that is known to have been durable. */
  syncedEventNo: number
}

/**
 * Finds where the journal ends; reads the newest segments only.
 * @param lakeEventNo the last event that the lake has: up to it all was durable here, and may be deleted. A segment that was begun while a
 * sync took long does not show so much
 */
export async function findEnd(
  { folder, folderId, markPath }: Pick<JournalOptions, 'folder' | 'folderId' | 'markPath'>,
  lakeEventNo: number,
  disk: Disk,
): Promise<JournalEnd> {
  const reader = readerOn(disk)
  const { segments } = await reader.plan(folder, folderId)
  const markedEventNo = markPath === undefined ? 0 : await readHighWaterMark(disk, markPath, folderId)
  const shownEventNo = await findProvenIn(reader, segments)
  const provenEventNo = Math.max(shownEventNo, markedEventNo, lakeEventNo)
  let missing: NumberRange | null = null
  const onDamage = (damage: SegmentDamage): void => {
    missing = damage.missing
  }
  const read = { afterEventNo: shownEventNo, throughEventNo: Infinity, provenEventNo, onDamage }
  const batches = readPlanned(reader, segments, read)
  for (;;) {
    const next = await batches.next()
    if (next.done !== true) continue
    const lastEventNo = next.value.nextEventNo - 1
    const isVoid = ({ firstNo }: JournalSegment): boolean => firstNo > lastEventNo
    return {
      segments: segments.filter((segment) => !isVoid(segment)),
      voidSegments: segments.filter(isVoid),
      heldEventNo: heldBefore(missing, lastEventNo),
      lastEventNo,
      syncedEventNo: Math.min(provenEventNo, lastEventNo),
    }
  }
}

/** The last event that is held, where this part is missing as the last one of the journal's damage. */
const heldBefore = (missing: NumberRange | null, lastEventNo: number): number =>
  missing !== null && missing.to === lastEventNo ? missing.from - 1 : lastEventNo
