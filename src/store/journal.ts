// In: rows that must be durable now. Out: those rows in one narrow table, which costs a sixth of writing them to their
// wide ones; and, soon after and away from their callers, each in its own table. The journal is a database file of its
// own: a commit waits for nothing that is done to the tables. What was moved is told by a mark that the tables' file
// keeps in the same transaction: rows up to it count no more. Never loses a row that its table will not take.

import type { DuckDBConnection } from '@duckdb/node-api'
import { messageOf } from '../lib/messages.ts'
import { type Column, type Row, TABLES, type Table } from '../schema/tables.ts'
import { type JournalEntry, KNOWN_AT } from './cells.ts'
import { checkpointJournal, checkpointTables } from './checkpoint.ts'
import { appending, type Database, isWorldError, query, transaction } from './database.ts'
import { BATCH_ROWS_MAX, SPREAD_ROWS_MAX } from './limits.ts'
import type { CrashPoint, LogLine } from './messages.ts'
import { openOutcomes } from './outcome-sql.ts'
import {
  ALL_TABLES,
  CREATE_JOURNAL_ANEW,
  identifier,
  JOURNAL,
  JOURNAL_DATABASE,
  JOURNAL_MARK,
  JOURNAL_REFUSED,
  JOURNAL_TABLE,
  literal,
  ROW_SEQ,
} from './sql.ts'

export interface Journal {
  /** Moves every row up to `upToSeq` to its table, and writes logs that have grown long into their files. */
  spread(upToSeq: number): Promise<void>
}

/** Appends rows, numbered from the one after `lastSeq`; `known_at` is `nowMs` for all of them. */
export async function appendToJournal(
  connection: DuckDBConnection,
  entries: readonly JournalEntry[],
  lastSeq: number,
  nowMs: number,
): Promise<void> {
  const knownAtMs = BigInt(nowMs)
  let seq = lastSeq
  await appending(connection, JOURNAL_TABLE, JOURNAL_DATABASE, (appender) => {
    for (const { table, rows, lines } of entries) {
      seq += rows
      appender.appendBigInt(BigInt(seq))
      appender.appendVarchar(table)
      appender.appendBigInt(knownAtMs)
      appender.appendVarchar(lines)
      appender.endRow()
    }
  })
}

/** The type that JSON is read as: TIMESTAMP is a number there. */
function jsonType({ type }: Column): string {
  if (type === 'TIMESTAMP') return '"BIGINT"'
  return type === 'VARCHAR[]' ? '["VARCHAR"]' : `"${type}"`
}

function cellSql(column: Column): string {
  if (column.name === KNOWN_AT) return 'epoch_ms(known_at_ms)'
  const cell = `cells.${identifier(column.name)}`
  return column.type === 'TIMESTAMP' ? `epoch_ms(${cell})` : cell
}

/** Which rows of the journal: numbered beyond `after`, up to `upTo`; of entries that answer `entries`. */
export interface JournalSpan {
  after: number | string
  upTo?: number
  entries?: string
}

const inSpan = ({ after, upTo }: JournalSpan): string =>
  `${ROW_SEQ} > ${after}${upTo === undefined ? '' : ` AND ${ROW_SEQ} <= ${upTo}`}`

/** Entries that hold rows of a span: an entry has the number of its last row, and is of one commit. */
const entriesOf = ({ after, upTo, entries = 'true' }: JournalSpan): string =>
  `${inSpan({ after, upTo: upTo && upTo + BATCH_ROWS_MAX })} AND ${entries}`

/** SQL of rows of the journal, one by one: `row_seq`, `table_name`, `known_at_ms`, `json`. */
export const journalRows = (span: JournalSpan): string => `SELECT * FROM (
    SELECT ${ROW_SEQ} - len(lines) + generate_subscripts(lines, 1) AS ${ROW_SEQ}, table_name, known_at_ms,
      unnest(lines) AS json
    FROM (SELECT * EXCLUDE (json), string_split(json, chr(10)) AS lines FROM ${JOURNAL}
      WHERE ${entriesOf(span)} ORDER BY ${ROW_SEQ}))
  WHERE ${inSpan(span)}`

/** Rows that no table has yet. */
export const WAITING: JournalSpan = { after: `(SELECT ${ROW_SEQ} FROM ${JOURNAL_MARK})` }

/** Rows of one table in the journal, as that table would hold them. */
export function journalSelect(table: Table, span: JournalSpan): string {
  const spec = `{${table.columns.map((column) => `"${column.name}":${jsonType(column)}`).join(',')}}`
  const cells = table.columns.map((column) => `${cellSql(column)} AS ${identifier(column.name)}`).join(', ')
  const rows = journalRows({ ...span, entries: `table_name = ${literal(table.name)}` })
  return `SELECT ${ROW_SEQ}, ${cells}
    FROM (SELECT ${ROW_SEQ}, known_at_ms, from_json(json, ${literal(spec)}) AS cells FROM (${rows}))`
}

/** Copies the journal's rows of one table into it, by column name: the file's order of columns does not matter. */
function copySql(table: Table, span: JournalSpan): string {
  const names = table.columns.map((column) => identifier(column.name)).join(', ')
  return `INSERT INTO ${identifier(table.name)} (${ROW_SEQ}, ${names}) ${journalSelect(table, span)}`
}

/** The submission of that identity, accepted or rejected, as its table would hold it; null when it is not here. */
export async function submissionInJournal(
  connection: DuckDBConnection,
  analysisId: string,
): Promise<Row | null> {
  // Entries are long: a text is found in them before they are taken apart.
  const entries = `table_name IN ('training', 'rejections') AND contains(json, ${literal(analysisId)})`
  const [row] = await query<{ table_name: keyof typeof TABLES; known_at_ms: number; json: string }>(
    connection,
    `SELECT table_name, known_at_ms::DOUBLE AS known_at_ms, json FROM (${journalRows({ after: 0, entries })})
     WHERE json_extract_string(json, '$.analysis_id') = ${literal(analysisId)} LIMIT 1`,
  )
  if (row === undefined) return null
  const cells = JSON.parse(row.json)
  const columns: readonly Column[] = TABLES[row.table_name].columns
  return Object.fromEntries(
    columns.map(({ name }) => [name, name === KNOWN_AT ? row.known_at_ms : (cells[name] ?? null)]),
  )
}

const readMark = async (connection: DuckDBConnection): Promise<number> =>
  (await query<{ seq: number }>(connection, `SELECT ${ROW_SEQ}::DOUBLE AS seq FROM ${JOURNAL_MARK}`))[0].seq

async function holdsMoved(connection: DuckDBConnection, mark: number): Promise<boolean> {
  const moved = `SELECT 1 FROM ${JOURNAL} WHERE ${ROW_SEQ} <= ${mark} LIMIT 1`
  return (await query(connection, moved)).length > 0
}

/** A new table rather than deletions: what is deleted would be written out with the rest by the next checkpoint. */
const renewJournal = (mark: number): string[] => [
  `CREATE OR REPLACE TEMP TABLE waiting AS FROM ${JOURNAL} WHERE ${ROW_SEQ} > ${mark}`,
  CREATE_JOURNAL_ANEW,
  `INSERT INTO ${JOURNAL} FROM temp.waiting`,
  'DROP TABLE temp.waiting',
]

const setMark = (connection: DuckDBConnection, seq: number) =>
  connection.run(`UPDATE ${JOURNAL_MARK} SET ${ROW_SEQ} = ${seq}`)

/** The last row of the next step after `mark`; null when nothing waits. */
async function stepEnd(connection: DuckDBConnection, mark: number, upToSeq: number): Promise<number | null> {
  const rows = await query<{ last: number | null }>(
    connection,
    `SELECT coalesce(max(${ROW_SEQ}) FILTER (${ROW_SEQ} <= ${mark + SPREAD_ROWS_MAX}), min(${ROW_SEQ}))::DOUBLE AS last
     FROM ${JOURNAL} WHERE ${inSpan({ after: mark, upTo: upToSeq })}`,
  )
  return rows[0].last
}

export interface JournalOptions {
  /** A log of a database file that is so long is written into the file. */
  checkpointLogBytes: number
  log(line: LogLine): void
  reach(point: CrashPoint): void
}

type MovedSpan = JournalSpan & { upTo: number }

export function openJournal(database: Database, { log, reach, checkpointLogBytes }: JournalOptions): Journal {
  /** Copies the rows of a span, and sets the mark at its end. */
  async function move(connection: DuckDBConnection, span: MovedSpan): Promise<void> {
    const present = await query<{ name: string }>(
      connection,
      `SELECT DISTINCT table_name AS name FROM ${JOURNAL} WHERE ${entriesOf(span)}`,
    )
    const names = new Set(present.map(({ name }) => name))
    await transaction(connection, async () => {
      for (const table of ALL_TABLES) {
        if (names.has(table.name)) await connection.run(copySql(table, span))
      }
      if (names.has(TABLES.training.name)) await connection.run(openOutcomes(inSpan(span)))
      await setMark(connection, span.upTo)
      reach('spread:copied')
    })
    reach('spread:marked')
  }

  /** A row that its table will not take is a fault of ours: it is set aside, whole, and told of. */
  async function setAside(connection: DuckDBConnection, seq: number, reason: string): Promise<void> {
    log({ level: 'error', message: 'a row fits no table and is set aside', fields: { seq, reason } })
    await transaction(connection, async () => {
      await connection.run(
        `INSERT INTO ${JOURNAL_REFUSED} SELECT *, ${literal(reason)} FROM (${journalRows({ after: seq - 1, upTo: seq })})`,
      )
      await setMark(connection, seq)
    })
  }

  async function moveSingly(connection: DuckDBConnection, span: MovedSpan): Promise<void> {
    const rows = await query<{ seq: number }>(
      connection,
      `SELECT ${ROW_SEQ}::DOUBLE AS seq FROM (${journalRows(span)}) ORDER BY 1`,
    )
    for (const { seq } of rows) {
      try {
        await move(connection, { after: seq - 1, upTo: seq })
      } catch (error) {
        if (isWorldError(error)) throw error
        await setAside(connection, seq, messageOf(error))
      }
    }
  }

  async function moveStep(connection: DuckDBConnection, span: MovedSpan): Promise<void> {
    try {
      await move(connection, span)
    } catch (error) {
      if (isWorldError(error)) throw error
      await moveSingly(connection, span)
    }
  }

  /**
   * Begins the journal anew with what has not moved. In the lane of the commits: a checkpoint of the journal keeps them
   * waiting wherever it runs, and now it has next to nothing to write.
   */
  const renew = (mark: number): Promise<void> =>
    database.writer.run(async (connection) => {
      if (!(await holdsMoved(connection, mark))) return
      await transaction(connection, async () => {
        for (const statement of renewJournal(mark)) await connection.run(statement)
      })
      reach('spread:renewed')
      await checkpointJournal(connection, database.dataDir, checkpointLogBytes)
    })

  async function spread(upToSeq: number): Promise<void> {
    await database.spreader.run(async (connection) => {
      let mark = await readMark(connection)
      let last = await stepEnd(connection, mark, upToSeq)
      while (last !== null) {
        await moveStep(connection, { after: mark, upTo: last })
        mark = last
        last = await stepEnd(connection, mark, upToSeq)
      }
      await renew(mark)
      await checkpointTables(connection, database.dataDir, checkpointLogBytes)
    })
  }

  return { spread }
}
