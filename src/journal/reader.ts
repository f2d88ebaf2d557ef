// Reads the journal: whole batches in order, over all segments, with every checksum checked. Any process may read while the server
// writes. Holds one batch in memory at a time.
import { type Disk, nodeDisk } from '../lib/disk.ts'
import { decodeBatch } from './batch/batch-decoder.ts'
import type { EventBatch } from './event-batch.ts'
import { type PlannedSegment, planJournal } from './segments/plan.ts'
import { type FoundBatch, readSegment, type SegmentEnding } from './segments/segment-reader.ts'
import type { JournalDamage, ReadJournalOptions } from './types.ts'

export interface DiskReadOptions extends ReadJournalOptions {
  disk?: Disk
}

/** As `ReadJournal` says. */
export async function* readJournal(
  folder: string,
  afterEventNo: number,
  options: DiskReadOptions = {},
): AsyncGenerator<EventBatch, void> {
  for await (const { frame } of readFrames(folder, afterEventNo, options)) {
    const batch = decodeBatch(frame)
    if (batch !== null) yield batch
  }
}

/** As `readJournal`, but does not decode the batches. */
export async function* readFrames(
  folder: string,
  afterEventNo: number,
  { disk = nodeDisk, folderId = null, throughEventNo = Infinity, onDamage = () => {} }: DiskReadOptions,
): AsyncGenerator<FoundBatch, void> {
  const { segments, foreign } = await planJournal(disk, folder, folderId)
  for (const file of foreign) onDamage({ kind: 'foreign_file', file, fromByte: 0, toByte: 0, missing: null })
  const wanted = segments.filter(
    ({ firstEventNo, cutoffEventNo }) => cutoffEventNo > afterEventNo && firstEventNo <= throughEventNo,
  )
  const provenEventNo = Number.isFinite(throughEventNo) ? throughEventNo : 0
  let nextEventNo = afterEventNo + 1
  for (const segment of wanted) {
    if (segment.firstEventNo > nextEventNo) onDamage(missingBetween(nextEventNo, segment.firstEventNo - 1))
    const batches = readSegment({ disk, segment, provenEventNo, onDamage })
    nextEventNo = (yield* pickBatches(batches, afterEventNo, throughEventNo)).nextEventNo
    if (nextEventNo > throughEventNo) return
  }
  if (wanted.length === 0 && nextEventNo <= provenEventNo)
    onDamage(missingBetween(nextEventNo, provenEventNo))
}

const missingBetween = (from: number, to: number): JournalDamage => ({
  ...{ kind: 'missing', file: null, fromByte: 0, toByte: 0 },
  missing: { from, to },
})

/** Passes on the batches of a segment that have events behind `afterEventNo` and up to `throughEventNo`. */
async function* pickBatches(
  batches: AsyncGenerator<FoundBatch, SegmentEnding>,
  afterEventNo: number,
  throughEventNo: number,
): AsyncGenerator<FoundBatch, SegmentEnding> {
  for (;;) {
    const next = await batches.next()
    if (next.done === true) return next.value
    const { firstEventNo, lastEventNo } = next.value
    if (lastEventNo <= afterEventNo) continue
    if (firstEventNo <= throughEventNo) yield next.value
    if (lastEventNo < throughEventNo) continue
    await batches.return({ nextEventNo: lastEventNo + 1, isSealed: false })
    return { nextEventNo: lastEventNo + 1, isSealed: false }
  }
}

export interface JournalEnd {
  segments: PlannedSegment[]
  /** Number of the last event that can be read or is known to be lost; 0 where there is none. */
  lastEventNo: number
  /** The newest segment is complete and was closed in order. */
  isSealed: boolean
}

/** Finds where the journal ends; reads the newest segment only. */
export async function findEnd(disk: Disk, folder: string, folderId: string): Promise<JournalEnd> {
  const { segments } = await planJournal(disk, folder, folderId)
  const newest = segments.at(-1)
  if (newest === undefined) return { segments, lastEventNo: 0, isSealed: true }
  const batches = readSegment({ disk, segment: newest, provenEventNo: 0, onDamage: () => {} })
  for (;;) {
    const next = await batches.next()
    if (next.done !== true) continue
    const { nextEventNo, isSealed } = next.value
    return { segments, lastEventNo: nextEventNo - 1, isSealed }
  }
}
