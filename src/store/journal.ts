// In: rows that must be durable now. Out: those rows in one narrow table, which costs a sixth of writing them to their
// wide ones; and, soon after and away from their callers, each in its own table. The journal is a database file of its
// own: a commit waits for nothing that is done to the tables. What was moved is told by a mark that the tables' file
// keeps in the same transaction: rows up to it count no more. Never loses a row that its table will not take.

import type { DuckDBConnection } from '@duckdb/node-api'
import { messageOf } from '../lib/messages.ts'
import { type Column, type Row, TABLES, type Table } from '../schema/tables.ts'
import { type EncodedWrite, KNOWN_AT } from './cells.ts'
import { checkpointJournal, checkpointTables } from './checkpoint.ts'
import { appending, type Database, isWorldError, query, transaction } from './database.ts'
import { SPREAD_ROWS_MAX } from './limits.ts'
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

/** Appends rows, numbered from `firstSeq` on; `known_at` is `nowMs` for all of them. */
export async function appendToJournal(
  connection: DuckDBConnection,
  writes: readonly EncodedWrite[],
  firstSeq: number,
  nowMs: number,
): Promise<void> {
  const knownAtMs = BigInt(nowMs)
  let seq = BigInt(firstSeq)
  await appending(connection, JOURNAL_TABLE, JOURNAL_DATABASE, (appender) => {
    for (const { table, json } of writes) {
      appender.appendBigInt(seq++)
      appender.appendVarchar(table)
      appender.appendBigInt(knownAtMs)
      appender.appendVarchar(json)
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

/** Of the journal's rows those that no table has yet. */
export const WAITING = `${ROW_SEQ} > (SELECT ${ROW_SEQ} FROM ${JOURNAL_MARK})`

/** Rows of one table that wait in the journal and answer `where`, as that table would hold them. */
export function journalSelect(table: Table, where: string): string {
  const spec = `{${table.columns.map((column) => `"${column.name}":${jsonType(column)}`).join(',')}}`
  const cells = table.columns.map((column) => `${cellSql(column)} AS ${identifier(column.name)}`).join(', ')
  return `SELECT ${ROW_SEQ}, ${cells}
    FROM (SELECT ${ROW_SEQ}, known_at_ms, from_json(json, ${literal(spec)}) AS cells FROM ${JOURNAL}
      WHERE table_name = ${literal(table.name)} AND ${where})`
}

/** Copies the journal's rows of one table into it, by column name: the file's order of columns does not matter. */
function copySql(table: Table, range: string): string {
  const names = table.columns.map((column) => identifier(column.name)).join(', ')
  return `INSERT INTO ${identifier(table.name)} (${ROW_SEQ}, ${names}) ${journalSelect(table, range)} ORDER BY ${ROW_SEQ}`
}

/** Rows of the journal that answer `where`, oldest first, as their tables would hold them. */
export async function journalRows(connection: DuckDBConnection, where: string): Promise<Row[]> {
  const rows = await query<{ table_name: keyof typeof TABLES; known_at_ms: number; json: string }>(
    connection,
    `SELECT table_name, known_at_ms::DOUBLE AS known_at_ms, json FROM ${JOURNAL} WHERE ${where} ORDER BY ${ROW_SEQ}`,
  )
  return rows.map(({ table_name, known_at_ms, json }) => {
    const cells = JSON.parse(json)
    const columns: readonly Column[] = TABLES[table_name].columns
    return Object.fromEntries(
      columns.map(({ name }) => [name, name === KNOWN_AT ? known_at_ms : (cells[name] ?? null)]),
    )
  })
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
    `SELECT max(${ROW_SEQ})::DOUBLE AS last FROM (SELECT ${ROW_SEQ} FROM ${JOURNAL}
     WHERE ${ROW_SEQ} > ${mark} AND ${ROW_SEQ} <= ${upToSeq} ORDER BY ${ROW_SEQ} LIMIT ${SPREAD_ROWS_MAX})`,
  )
  return rows[0].last
}

export interface JournalOptions {
  /** A log of a database file that is so long is written into the file. */
  checkpointLogBytes: number
  log(line: LogLine): void
  reach(point: CrashPoint): void
}

export function openJournal(database: Database, { log, reach, checkpointLogBytes }: JournalOptions): Journal {
  /** Copies the rows after the mark up to `last`, and sets the mark there. */
  async function move(connection: DuckDBConnection, range: string, last: number): Promise<void> {
    const present = await query<{ name: string }>(
      connection,
      `SELECT DISTINCT table_name AS name FROM ${JOURNAL} WHERE ${range}`,
    )
    const names = new Set(present.map(({ name }) => name))
    await transaction(connection, async () => {
      for (const table of ALL_TABLES) {
        if (names.has(table.name)) await connection.run(copySql(table, range))
      }
      if (names.has(TABLES.training.name)) await connection.run(openOutcomes(range))
      await setMark(connection, last)
      reach('spread:copied')
    })
    reach('spread:marked')
  }

  /** A row that its table will not take is a fault of ours: it is set aside, whole, and told of. */
  async function setAside(connection: DuckDBConnection, seq: number, reason: string): Promise<void> {
    log({ level: 'error', message: 'a row fits no table and is set aside', fields: { seq, reason } })
    await transaction(connection, async () => {
      await connection.run(
        `INSERT INTO ${JOURNAL_REFUSED} SELECT *, ${literal(reason)} FROM ${JOURNAL} WHERE ${ROW_SEQ} = ${seq}`,
      )
      await setMark(connection, seq)
    })
  }

  async function moveSingly(connection: DuckDBConnection, range: string): Promise<void> {
    const rows = await query<{ seq: number }>(
      connection,
      `SELECT ${ROW_SEQ}::DOUBLE AS seq FROM ${JOURNAL} WHERE ${range} ORDER BY 1`,
    )
    for (const { seq } of rows) {
      try {
        await move(connection, `${ROW_SEQ} = ${seq}`, seq)
      } catch (error) {
        if (isWorldError(error)) throw error
        await setAside(connection, seq, messageOf(error))
      }
    }
  }

  async function moveStep(connection: DuckDBConnection, mark: number, last: number): Promise<void> {
    const range = `${ROW_SEQ} > ${mark} AND ${ROW_SEQ} <= ${last}`
    try {
      await move(connection, range, last)
    } catch (error) {
      if (isWorldError(error)) throw error
      await moveSingly(connection, range)
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
        await moveStep(connection, mark, last)
        mark = last
        last = await stepEnd(connection, mark, upToSeq)
      }
      await renew(mark)
      await checkpointTables(connection, database.dataDir, checkpointLogBytes)
    })
  }

  return { spread }
}
