// Reads recorded market events back from a lake, exactly as the engine took them: trades and other events merged by number, in
// batches, with bounded memory. A server may write to the lake meanwhile.

import type { DuckDBConnection, DuckDBDataChunk, DuckDBValue } from '@duckdb/node-api'
import type { RecordedEvent } from '../../journal/event-batch.ts'
import { errorMessage } from '../../lib/error-text.ts'
import type { NumberRange } from '../../lib/segments/types.ts'
import { parseJson } from '../../lib/text/json-text.ts'
import type { MarketEvent, RunEvent, TradeEvent } from '../../schema/event.ts'
import { TABLES } from '../../schema/tables.ts'
import { queryOne, queryRows, queryValue } from '../duckdb/query.ts'
import { ResultStream } from '../duckdb/result-stream.ts'
import type { LakeTable } from '../duckdb/sql.ts'
import { StoreError, unavailable } from '../errors.ts'
import { readEventMetadata } from '../events/event-metadata.ts'
import { isEventTable } from '../events/event-retention.ts'
import { type CatalogEntry, readCatalogFiles, readKnownLosses } from '../lake/catalog-reader.ts'
import { findHashFault } from '../lake/file-check.ts'
import { relativePath } from '../lake/lake-files.ts'
import { selectAllRows } from '../lake/parquet-sql.ts'
import { LAKE_REOPENINGS_MAX, REPLAY_BATCH_EVENTS, REPLAY_MEMORY_LIMIT } from '../limits.ts'
import { isMissingFileError, type LakeReader, openLakeReader } from './lake-reader.ts'

/** The life of a server that recorded. */
export interface RecordedRun {
  eventNo: number
  /** Market time at which it began, Unix ms. */
  atMs: number
  event: RunEvent
}

/** All texts of a row are one: each that is asked for costs as much as ten numbers. */
const TEXTS = `to_json([feed, mint, wallet, tx, quote_mint])::VARCHAR`
const HEAD_COLUMNS = 'event_no::DOUBLE, epoch_ms("at")::DOUBLE, epoch_ms(received_at)::DOUBLE'
const TRADE_COLUMNS = `${HEAD_COLUMNS}, ${TEXTS}, epoch_ms(ts)::DOUBLE, side = 'buy', token_amount, reported_price_usd,
  sol_amount, v_sol, v_tokens, quote_amount, v_quote, quote_reserve, curve_tokens, slot::DOUBLE, event_index::DOUBLE`
const EVENT_COLUMNS = `${HEAD_COLUMNS}, feed, data`

type Head = Pick<RecordedEvent, 'eventNo' | 'atMs' | 'receivedAtMs'>
/** The cell of a column, in the row that is read. */
type Cell = (column: number) => DuckDBValue

function toTrade(cell: Cell, head: Head): RecordedEvent {
  const number = (column: number): number | null => {
    const value = cell(column)
    return typeof value === 'number' ? value : null
  }
  const [feed, mint, wallet, tx, quoteMint] = JSON.parse(String(cell(3))) as Texts
  const event: TradeEvent = {
    type: 'trade',
    ts: Number(cell(4)),
    mint,
    side: cell(5) === true ? 'buy' : 'sell',
    tokenAmount: Number(cell(6)),
    priceUsd: number(7),
    solAmount: number(8),
    vSol: number(9),
    vTokens: number(10),
    wallet,
    tx,
    quoteMint,
    quoteAmount: number(11),
    vQuote: number(12),
    quoteReserve: number(13),
    curveTokens: number(14),
    slot: number(15),
    eventIndex: number(16),
  }
  return { ...head, feed, event }
}

/** As TEXTS has them. */
type Texts = [feed: string, mint: string, wallet: string | null, tx: string | null, quoteMint: string | null]

const toOtherEvent = (cell: Cell, head: Head): RecordedEvent => ({
  ...head,
  feed: String(cell(3)),
  event: parseEvent(String(cell(4)), head.eventNo),
})

const isEvent = (value: unknown): value is MarketEvent =>
  typeof Reflect.get(Object(value), 'type') === 'string' &&
  typeof Reflect.get(Object(value), 'ts') === 'number'

/** The event of a row of `events`. @throws StoreError `unavailable` where it is none */
function parseEvent(text: string, eventNo: number): MarketEvent {
  const event = parseJson(text)
  if (isEvent(event)) return event
  throw unavailable(`the recorded event ${eventNo} cannot be read`)
}

/** Rows of one table in order of their numbers, one at a time. DuckDB makes the next ones meanwhile. */
class EventCursor {
  readonly #rows: ResultStream
  readonly #toEvent: (cell: Cell, head: Head) => RecordedEvent
  /** Kept while its rows are read: the texts of its columns lie in its memory, which goes with it. */
  #chunk: DuckDBDataChunk | null = null
  #columns: readonly { getItem(row: number): DuckDBValue }[] = []
  #row = 0
  #next: Promise<DuckDBDataChunk | null>
  readonly #cell: Cell = (column) => this.#columns[column]?.getItem(this.#row) ?? null
  /** Number of the row under the cursor; infinite at the end. */
  eventNo = 0

  constructor(rows: ResultStream, toEvent: (cell: Cell, head: Head) => RecordedEvent) {
    this.#rows = rows
    this.#toEvent = toEvent
    this.#next = this.#fetch()
  }

  /** Whether `advance` has to read. */
  get isAtEnd(): boolean {
    return this.#chunk === null || this.#row + 1 >= this.#chunk.rowCount
  }

  /** Moves to the next row of the chunk; only where `isAtEnd` is false. */
  advance(): void {
    this.#row++
    this.eventNo = Number(this.#cell(0))
  }

  /** Reads the next chunk and moves to its first row. */
  async read(): Promise<void> {
    const chunk = await this.#next
    this.#chunk = chunk
    this.#columns =
      chunk === null
        ? []
        : Array.from({ length: chunk.columnCount }, (_, column) => chunk.getColumnVector(column))
    this.#row = 0
    this.eventNo = chunk === null ? Number.POSITIVE_INFINITY : Number(this.#cell(0))
    if (chunk !== null) this.#next = this.#fetch()
  }

  /** The event under the cursor. */
  get current(): RecordedEvent {
    if (this.#chunk === null) throw new RangeError('the cursor is at the end')
    const cell = this.#cell
    return this.#toEvent(cell, {
      eventNo: this.eventNo,
      atMs: Number(cell(1)),
      receivedAtMs: Number(cell(2)),
    })
  }

  /** Resolves when nothing is read any more: only then may its connection be closed. */
  async close(): Promise<void> {
    await this.#next.catch(() => undefined)
  }

  #fetch(): Promise<DuckDBDataChunk | null> {
    const next = this.#rows.next()
    // Told to whoever reads it.
    next.catch(() => undefined)
    return next
  }
}

/** The events of a lake while its catalog is open. */
async function* readOpened(
  reader: LakeReader,
  files: readonly CatalogEntry[],
  { from, to }: NumberRange,
): AsyncGenerator<RecordedEvent[], void> {
  const connections = [reader.connection, await reader.connect()] as const
  const open = (table: LakeTable, columns: string, connection: DuckDBConnection) =>
    ResultStream.open(
      connection,
      `SELECT ${columns} FROM (${selectAllRows(table, filesOf(files, table, from, to))}) WHERE event_no BETWEEN ${from} AND ${to}`,
    )
  const trades = new EventCursor(await open(TABLES.trades, TRADE_COLUMNS, connections[0]), toTrade)
  try {
    const others = new EventCursor(await open(TABLES.events, EVENT_COLUMNS, connections[1]), toOtherEvent)
    try {
      yield* merge(trades, others)
    } finally {
      await others.close()
    }
  } finally {
    await trades.close()
  }
}

/** The rows of both in order of their numbers, in batches. A batch ends before numbers that are missing. */
async function* merge(trades: EventCursor, others: EventCursor): AsyncGenerator<RecordedEvent[], void> {
  await trades.read()
  await others.read()
  let batch: RecordedEvent[] = []
  for (;;) {
    const next = trades.eventNo < others.eventNo ? trades : others
    const isNext = batch.length === 0 || next.eventNo === batch[0].eventNo + batch.length
    if (batch.length === REPLAY_BATCH_EVENTS || !isNext) {
      yield batch
      batch = []
    }
    if (next.eventNo === Number.POSITIVE_INFINITY) return
    batch.push(next.current)
    if (next.isAtEnd) await next.read()
    else next.advance()
  }
}

/** The files of a table that may have numbers of a range, in order of their numbers. */
const filesOf = (files: readonly CatalogEntry[], { name }: LakeTable, from: number, to: number) =>
  files
    .filter((file) => file.table === name && file.first <= to && file.last >= from)
    .sort((a, b) => a.first - b.first)

/**
 * Compares files with what was written, each before its events are given away: what DuckDB reads from a changed byte may be another
 * price. @param files those that were not compared yet, in order of their numbers @throws Error of the first that differs
 */
async function checkFiles(files: CatalogEntry[], throughEventNo: number): Promise<void> {
  for (let [file] = files; file !== undefined && file.first <= throughEventNo; [file] = files) {
    const fault = await findHashFault(file, file.path)
    if (fault !== null) throw new Error(`${relativePath(file)} ${fault}; see mintlake lake verify`)
    files.shift()
  }
}

/** The numbers of a lake's recorded events. */
export interface RecordedSpan extends NumberRange {
  /** Ranges in which some are lost, those of one table or of both. They may overlap. */
  lost: readonly LostRange[]
}

export interface LostRange extends NumberRange {
  /** `lake repair` has acknowledged the loss. */
  isSettled: boolean
}

/** The numbers that the lake of a reader should have, by its catalog, lost ones at either end included; null: none. */
export async function readSpan(connection: DuckDBConnection): Promise<RecordedSpan | null> {
  const files = await readCatalogFiles(connection, 'lake')
  const { eventsFrom, lost } = await readEventMetadata(connection, 'lake')
  const lostFiles = await readKnownLosses(connection, 'lake')
  const ranges = [
    ...lostFiles
      .filter(({ table }) => isEventTable(table))
      .map(({ first, last, acknowledgedAtMs }) => ({ from: first, to: last, acknowledgedAtMs })),
    ...lost,
  ].map(({ from, to, acknowledgedAtMs }) => ({ from, to, isSettled: acknowledgedAtMs !== null }))
  const present = files
    .filter(({ table }) => isEventTable(table))
    .map(({ first, last }) => ({ from: first, to: last }))
  const all = [...present, ...ranges]
  if (all.length === 0) return null
  const from = Math.max(eventsFrom, Math.min(...all.map((range) => range.from)))
  return {
    from,
    to: Math.max(...all.map(({ to }) => to)),
    lost: ranges.filter(({ to }) => to >= from),
  }
}

/**
 * Recorded events of a range, both ends included, in order of their numbers and in batches of at most REPLAY_BATCH_EVENTS. Where files
 * are merged and deleted meanwhile it goes on with the new ones. Rejects with `not_found` where there is no lake, with `unavailable`
 * where numbers are missing, or where a file is not as it was written.
 * @param lost numbers that may be missing: they are passed over. No two ranges meet
 */
export async function* readRecordedEvents(
  dataDir: string,
  { from, to }: NumberRange,
  lost: readonly NumberRange[] = [],
): AsyncGenerator<RecordedEvent[], void> {
  let next = from
  for (let failures = 0; ; ) {
    // With one thread rows come in the order of the files.
    const reader = await openLakeReader({ dataDir, threads: 1, memoryLimit: REPLAY_MEMORY_LIMIT })
    try {
      const files = await readCatalogFiles(reader.connection, 'lake')
      const unchecked = [TABLES.trades, TABLES.events]
        .flatMap((table) => filesOf(files, table, next, to))
        .sort((a, b) => a.first - b.first)
      for await (const batch of readOpened(reader, files, { from: next, to })) {
        const [{ eventNo }] = batch
        await checkFiles(unchecked, eventNo + batch.length - 1)
        requireLost({ from: next, to: eventNo - 1 }, lost)
        next = eventNo + batch.length
        failures = 0
        yield batch
      }
      await checkFiles(unchecked, to)
      return requireLost({ from: next, to }, lost)
    } catch (error) {
      if (isMissingFileError(error) && ++failures <= LAKE_REOPENINGS_MAX) continue
      if (error instanceof StoreError) throw error
      throw unavailable(
        `the lake could not be read to its end, it stopped before the event ${next}: ${errorMessage(error)}`,
      )
    } finally {
      reader.close()
    }
  }
}

/** @throws StoreError `unavailable` where numbers are missing that are not known to be lost */
function requireLost(missing: NumberRange, lost: readonly NumberRange[]): void {
  const isKnown = lost.some(({ from, to }) => from <= missing.from && missing.to <= to)
  if (missing.from <= missing.to && !isKnown)
    throw unavailable(`the lake does not have the events ${missing.from} to ${missing.to}`)
}

const ALL_EVENTS = '(SELECT event_no, "at" FROM lake.trades UNION ALL SELECT event_no, "at" FROM lake.events)'

/**
 * The numbers of the events from one market time to another, Unix ms, both included, of those from number `fromNo` on; null: there are
 * none. Where market time went back between two runs, events in between belong to it too, and so do those that are lost next to them:
 * nobody knows their time.
 */
export async function findEvents(
  connection: DuckDBConnection,
  fromMs: number,
  toMs: number,
  fromNo = 0,
): Promise<NumberRange | null> {
  const sql = `SELECT min(event_no)::DOUBLE AS "from", max(event_no)::DOUBLE AS "to" FROM ${ALL_EVENTS}
    WHERE "at" BETWEEN epoch_ms(${Math.floor(fromMs)}) AND epoch_ms(${Math.floor(toMs)}) AND event_no >= ${fromNo}`
  const { from, to } = await queryOne(connection, sql, { from: 'number?', to: 'number?' })
  if (from === null || to === null) return null
  const span = await readSpan(connection)
  if (span === null || span.lost.length === 0) return { from, to }
  const around = `SELECT max(event_no) FILTER (event_no < ${from})::DOUBLE AS "before",
    min(event_no) FILTER (event_no > ${to})::DOUBLE AS "behind" FROM ${ALL_EVENTS}`
  const { before, behind } = await queryOne(connection, around, { before: 'number?', behind: 'number?' })
  return { from: (before ?? span.from - 1) + 1, to: (behind ?? span.to + 1) - 1 }
}

/** How many events of a range of numbers the lake has. */
export const countEvents = (connection: DuckDBConnection, { from, to }: NumberRange): Promise<number> =>
  queryValue(
    connection,
    `SELECT count(*)::DOUBLE FROM ${ALL_EVENTS} WHERE event_no BETWEEN ${from} AND ${to}`,
    'number',
  )

/** Market time of an event by its number, Unix ms, as it was when it was applied: that of the one before where it is missing. */
export function findTime(connection: DuckDBConnection, eventNo: number): Promise<number> {
  const sql = `SELECT coalesce(epoch_ms(arg_max("at", event_no)), 0)::DOUBLE FROM ${ALL_EVENTS} WHERE event_no <= ${eventNo}`
  return queryValue(connection, sql, 'number')
}

/** The runs that the lake of a reader has the beginning of, oldest first. */
export async function listRuns(connection: DuckDBConnection): Promise<RecordedRun[]> {
  const rows = await queryRows(
    connection,
    `SELECT event_no::DOUBLE AS "eventNo", epoch_ms("at")::DOUBLE AS "atMs", data FROM lake.events
     WHERE kind = 'run' ORDER BY event_no`,
    { eventNo: 'number', atMs: 'number', data: 'string' },
  )
  return rows.map(({ eventNo, atMs, data }) => {
    const event = parseEvent(data, eventNo)
    if (event.type !== 'run') throw unavailable(`the event ${eventNo} is no run`)
    return { eventNo, atMs, event }
  })
}
