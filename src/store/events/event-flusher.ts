// Brings recorded events from the journal to the lake, in slices of one row group. Each slice is listed in one transaction with its
// position, so that each event is in the lake once. Works beside the flush of submissions: it uses the maintenance connection only
// to list what it has written.

import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import pLimit from 'p-limit'
import type { EventBatch } from '../../journal/event-batch.ts'
import type { ReadJournal } from '../../journal/types.ts'
import type { NumberRange, SegmentDamage } from '../../lib/segments/types.ts'
import { nextTurn } from '../../lib/wait.ts'
import { TABLES } from '../../schema/tables.ts'
import { withScratchDatabase } from '../duckdb/scratch-database.ts'
import { appendDeadLetters } from '../flush/dead-letters.ts'
import { type PendingFile, writePendingFiles } from '../lake/file-writer.ts'
import { nextKnownMs, saveLastKnown } from '../lake/known-at.ts'
import type { Lake } from '../lake/lake.ts'
import type { NewFile } from '../lake/manifest.ts'
import {
  DUCKDB_FREED_MEMORY_KEPT,
  EVENTS_MEMORY_LIMIT,
  EVENTS_ROUND_MS,
  EVENTS_SLICE_ROWS,
} from '../limits.ts'
import { journalFolder, spillFolder } from '../paths.ts'
import type { EventsAnswer, Requests } from '../process/protocol.ts'
import {
  countLostEvents,
  type EventPosition,
  insertIncompleteBars,
  insertLostEvents,
  type LostEvents,
  loadEventPosition,
  saveEventPosition,
} from './event-position.ts'
import { EVENT_TABLE_NAMES, loadRetainedFrom } from './event-retention.ts'
import { EventWindows, eventDate } from './event-windows.ts'
import { type BarInterval, findLateIntervals } from './late-gaps.ts'
import { StagedEvents, selectStagedEvents, type UnfitEvent } from './staged-events.ts'

export interface EventFlushOptions {
  lake: Lake
  /** Identity of the data folder. */
  logId: string
  readJournal: ReadJournal
  /** Monotonic time, ms. */
  monotonicMs(): number
}

/** What one slice brings to the lake. */
interface Slice {
  staged: StagedEvents
  windows: EventWindows
  lost: LostEvents[]
  lateIntervals: BarInterval[]
  /** Number of the event behind it. */
  nextNo: number
}

const scratchSettings = (dataDir: string): Record<string, string> => ({
  threads: '1',
  memory_limit: EVENTS_MEMORY_LIMIT,
  allocator_flush_threshold: DUCKDB_FREED_MEMORY_KEPT,
  allocator_bulk_deallocation_flush_threshold: DUCKDB_FREED_MEMORY_KEPT,
  temp_directory: join(spillFolder(dataDir), 'events'),
})

/** Batches of a journal, one of which can be put back. */
class BatchReader {
  readonly #batches: AsyncIterator<EventBatch>
  #held: EventBatch | null = null
  /** All batches were read. */
  isDone = false

  constructor(batches: AsyncIterable<EventBatch>) {
    this.#batches = batches[Symbol.asyncIterator]()
  }

  async next(): Promise<EventBatch | null> {
    const held = this.#held
    this.#held = null
    if (held !== null) return held
    const { done, value } = await this.#batches.next()
    this.isDone = done === true
    return done === true ? null : value
  }

  putBack(batch: EventBatch): void {
    this.#held = batch
  }

  async close(): Promise<void> {
    await this.#batches.return?.()
  }
}

const damageReason = ({ kind, file }: SegmentDamage): string =>
  `the journal is damaged: ${kind.replaceAll('_', ' ')}${file === null ? '' : ` in ${file}`}`

/** Notes that numbers are missing in the journal. */
function addLost(slice: Slice, range: NumberRange, damage: readonly SegmentDamage[]): void {
  const cause = damage.find(
    ({ missing }) => missing !== null && missing.from <= range.to && missing.to >= range.from,
  )
  slice.lost.push({
    ...range,
    reason: cause === undefined ? 'the journal does not have them' : damageReason(cause),
  })
}

/** Adds the events of a batch that the slice does not have. */
function addBatch(slice: Slice, batch: EventBatch, damage: readonly SegmentDamage[]): void {
  const { staged, windows } = slice
  const firstNo = slice.nextNo
  if (batch.lastEventNo < firstNo) return
  if (batch.firstEventNo > firstNo) addLost(slice, { from: firstNo, to: batch.firstEventNo - 1 }, damage)
  staged.add(batch, firstNo)
  windows.add(batch, firstNo)
  for (const { event, eventNo, atMs } of batch.events)
    if (eventNo >= firstNo) slice.lateIntervals.push(...findLateIntervals(event, atMs))
  slice.nextNo = batch.lastEventNo + 1
}

/** Adds batches until they fill the slice, or there are no more. */
async function readSlice(reader: BatchReader, slice: Slice, damage: readonly SegmentDamage[]): Promise<void> {
  let rows = 0
  for (let batch = await reader.next(); batch !== null; batch = await reader.next()) {
    const count = batch.lastEventNo - Math.max(slice.nextNo, batch.firstEventNo) + 1
    if (rows > 0 && rows + count > EVENTS_SLICE_ROWS) return reader.putBack(batch)
    addBatch(slice, batch, damage)
    rows += count
    // Converting a batch takes some milliseconds.
    await nextTurn()
  }
  addLostEnd(slice, reader, damage)
}

/** Behind the last batch numbers count as lost only where damage says so: else what was not found may still be there. */
function addLostEnd(slice: Slice, reader: BatchReader, damage: readonly SegmentDamage[]): void {
  if (!reader.isDone) return
  const last = Math.max(0, ...damage.map(({ missing }) => missing?.to ?? 0))
  if (last < slice.nextNo) return
  addLost(slice, { from: slice.nextNo, to: last }, damage)
  slice.nextNo = last + 1
}

/** The files that a slice is written to: for each date, one of each table that has rows. */
function pendingFiles({ staged, windows }: Slice, knownMs: number): PendingFile[] {
  return windows.list.flatMap((window) =>
    EVENT_TABLE_NAMES.map((name) => ({ name, rows: window[name] - staged.countUnfit(name, window) }))
      .filter(({ rows }) => rows > 0)
      .map(({ name, rows }) => ({
        file: { table: name, date: window.date, first: window.first, last: window.last },
        rows,
        table: TABLES[name],
        select: selectStagedEvents(name, window, knownMs),
      })),
  )
}

/** A slice that is in files, and not listed yet. */
interface WrittenSlice extends EventPosition, Pick<Slice, 'lost' | 'lateIntervals'> {
  /** That of its rows. */
  knownMs: number
  files: NewFile[]
}

/** Keeps events that fit no row. @returns them as lost */
function keepUnfit(dataDir: string, unfit: readonly UnfitEvent[]): LostEvents[] {
  for (const [name, ofTable] of Map.groupBy(unfit, ({ table }) => table)) {
    for (const [date, ofDate] of Map.groupBy(ofTable, ({ atMs }) => eventDate(atMs))) {
      const lines = ofDate.map(({ text }) => text)
      appendDeadLetters(dataDir, { table: TABLES[name], date }, lines)
    }
  }
  const reason = 'it fits no row, and is kept as a dead letter'
  return unfit.map(({ eventNo }) => ({ from: eventNo, to: eventNo, reason }))
}

export class EventFlusher {
  readonly #options: EventFlushOptions
  /** A request that its caller gave up may still be running: the next one waits for it. */
  readonly #turns = pLimit(1)

  constructor(options: EventFlushOptions) {
    this.#options = options
  }

  /** Brings events up to `throughEventNo` to the lake, for about EVENTS_ROUND_MS; at least one slice. */
  flush(ask: Requests['events']['ask']): Promise<EventsAnswer> {
    return this.#turns(() => this.#flush(ask))
  }

  async #flush({ throughEventNo, nowMs }: Requests['events']['ask']): Promise<EventsAnswer> {
    const { lake } = this.#options
    const { database } = lake
    // Before anything is said to be in the lake: the server then removes it from the journal.
    await lake.settle(nowMs)
    const from = await database.maintenance.run(loadEventPosition)
    const damage: SegmentDamage[] = []
    const eventNo =
      throughEventNo > from.eventNo
        ? await this.#flushFrom(from, throughEventNo, nowMs, damage)
        : from.eventNo
    const retainedFrom = await database.maintenance.run(loadRetainedFrom)
    return { eventNo, damage, retainedFrom }
  }

  async #flushFrom(from: EventPosition, throughEventNo: number, nowMs: number, damage: SegmentDamage[]) {
    const { lake, logId, monotonicMs, readJournal } = this.#options
    const { dataDir } = lake
    const batches = readJournal(journalFolder(dataDir), from.eventNo, {
      throughEventNo,
      folderId: logId,
      onDamage: (found) => damage.push(found),
    })
    const reader = new BatchReader(batches)
    const untilMs = monotonicMs() + EVENTS_ROUND_MS
    let reached = from
    try {
      do {
        // A database for each slice: its memory is freed, and what fails in it is no failure of the store's own.
        const slice = await withScratchDatabase(':memory:', scratchSettings(dataDir), (connection) =>
          this.#writeSlice(connection, reader, reached, { damage, nowMs }),
        )
        if (slice.eventNo === reached.eventNo) break
        await this.#listSlice(slice, nowMs)
        reached = slice
      } while (monotonicMs() < untilMs)
    } finally {
      await reader.close()
    }
    return reached.eventNo
  }

  /** Writes the events behind a position to files, until they fill a slice or there are no more. */
  async #writeSlice(
    connection: DuckDBConnection,
    reader: BatchReader,
    { eventNo, isSimulated }: EventPosition,
    { damage, nowMs }: { damage: readonly SegmentDamage[]; nowMs: number },
  ): Promise<WrittenSlice> {
    const { database, dataDir, failpoint, pathOf } = this.#options.lake
    const staged = await StagedEvents.create(connection, isSimulated)
    try {
      const windows = new EventWindows()
      const slice: Slice = { staged, windows, lost: [], lateIntervals: [], nextNo: eventNo + 1 }
      await readSlice(reader, slice, damage)
      staged.flush()
      failpoint('events:read')
      const { lost, lateIntervals } = slice
      const unfit = keepUnfit(dataDir, staged.unfit)
      const knownMs = await database.maintenance.run((owner) => nextKnownMs(owner, nowMs))
      const files = await writePendingFiles(connection, pendingFiles(slice, knownMs), {
        pathOf,
        failpoint: (step) => failpoint(`events:${step}`),
      })
      const position = { eventNo: slice.nextNo - 1, isSimulated: staged.isSimulated }
      const lostEvents = [...lost, ...unfit]
      return { ...position, knownMs, files, lost: lostEvents, lateIntervals }
    } finally {
      staged.close()
    }
  }

  /** Lists the files of a slice, in one transaction with the position behind it. */
  async #listSlice(slice: WrittenSlice, nowMs: number): Promise<void> {
    const { lake } = this.#options
    const { database, failpoint } = lake
    const record = async (connection: DuckDBConnection): Promise<void> => {
      await insertLostEvents(connection, slice.lost, nowMs)
      await insertIncompleteBars(connection, slice.lateIntervals)
      await saveEventPosition(connection, slice)
      await saveLastKnown(connection, slice.knownMs)
      failpoint('events:recorded')
    }
    await lake.addFiles(slice.files, nowMs, record)
    if (slice.lost.length > 0)
      lake.publishTrouble({ eventsLost: await database.maintenance.run(countLostEvents) })
  }
}
