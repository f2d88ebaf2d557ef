// In: batches of commits. Out: each of them durable, or refused, in one transaction where all is well. Numbers the rows.
// Never lets one bad commit spoil its neighbours, and never keeps a row that its caller was told was refused.
import {
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBTimestampValue,
  LIST,
  listValue,
  VARCHAR,
} from '@duckdb/node-api'
import { assert } from '../lib/assert.ts'
import { type Cell, type ColumnType, TABLES, type Table } from '../schema/tables.ts'
import { type EncodedWrite, KNOWN_AT } from './cells.ts'
import { type Database, isWorldError, query, transaction } from './database.ts'
import { ALL_TABLES, identifier, MANIFEST, ROW_SEQ } from './sql.ts'

export interface CommitRequest {
  commits: EncodedWrite[][]
  nowMs: number
  /** The highest row number whose caller was answered; what lies beyond is taken back first. */
  ackedSeq: number
}

export interface Committer {
  commit(request: CommitRequest): Promise<{ refusals: (string | null)[]; ackedSeq: number }>
  /** Takes back rows beyond `ackedSeq`: their callers were told that they were refused. */
  retract(ackedSeq: number): Promise<void>
  /** The highest row number in the store. */
  readonly lastSeq: number
}

const MICROSECONDS_PER_MS = 1000n
const VARCHAR_LIST = LIST(VARCHAR)

type Append = (appender: DuckDBAppender, cell: NonNullable<Cell>) => void
const APPEND: Record<ColumnType, Append> = {
  VARCHAR: (appender, cell) => appender.appendVarchar(cell as string),
  DOUBLE: (appender, cell) => appender.appendDouble(cell as number),
  BIGINT: (appender, cell) => appender.appendBigInt(BigInt(cell as number)),
  INTEGER: (appender, cell) => appender.appendInteger(cell as number),
  BOOLEAN: (appender, cell) => appender.appendBoolean(cell as boolean),
  TIMESTAMP: (appender, cell) =>
    appender.appendTimestamp(new DuckDBTimestampValue(BigInt(cell as number) * MICROSECONDS_PER_MS)),
  'VARCHAR[]': (appender, cell) => appender.appendList(listValue([...(cell as string[])]), VARCHAR_LIST),
}

/** Where each stored column's cell comes from: its place in the row, or the number, or the moment of the commit. */
type Source = { from: 'seq' } | { from: 'now'; append: Append } | { from: 'cell'; at: number; append: Append }

function sources(table: Table, stored: readonly string[]): Source[] {
  return stored.map((name): Source => {
    if (name === ROW_SEQ) return { from: 'seq' }
    const at = table.columns.findIndex((column) => column.name === name)
    assert(at >= 0, `the store's ${table.name} has no column that the schema lacks, but ${name}`)
    const append = APPEND[table.columns[at].type]
    return name === KNOWN_AT ? { from: 'now', append } : { from: 'cell', at, append }
  })
}

function appendRow(
  appender: DuckDBAppender,
  plan: Source[],
  cells: Cell[],
  seq: number,
  nowMs: number,
): void {
  for (const source of plan) {
    if (source.from === 'seq') {
      appender.appendBigInt(BigInt(seq))
      continue
    }
    const cell = source.from === 'now' ? nowMs : cells[source.at]
    if (cell === null) appender.appendNull()
    else source.append(appender, cell)
  }
  appender.endRow()
}

const groupByTable = (writes: EncodedWrite[]): Map<string, Cell[][]> => {
  const groups = new Map<string, Cell[][]>()
  for (const { table, cells } of writes) {
    const rows = groups.get(table)
    if (rows === undefined) groups.set(table, [cells])
    else rows.push(cells)
  }
  return groups
}

async function highestSeq(connection: DuckDBConnection): Promise<number> {
  const tables = ALL_TABLES.map((table) => `SELECT max(${ROW_SEQ}) AS seq FROM ${identifier(table.name)}`)
  const all = [...tables, `SELECT max(seq_last) FROM ${MANIFEST}`].join(' UNION ALL ')
  const rows = await query<{ seq: number }>(
    connection,
    `SELECT coalesce(max(seq), 0)::DOUBLE AS seq FROM (${all})`,
  )
  return rows[0].seq
}

const deleteBeyond = async (connection: DuckDBConnection, ackedSeq: number): Promise<void> => {
  for (const table of ALL_TABLES) {
    await connection.run(`DELETE FROM ${identifier(table.name)} WHERE ${ROW_SEQ} > ${ackedSeq}`)
  }
}

/** The writer of `database`. One at a time: the store's only source of row numbers. */
export async function openCommitter(database: Database): Promise<Committer> {
  const plans = new Map(
    ALL_TABLES.map((table) => [table.name, sources(table, database.storedColumns(table.name))]),
  )
  let lastSeq = await database.writer.run(highestSeq)

  async function append(
    connection: DuckDBConnection,
    writes: EncodedWrite[],
    firstSeq: number,
    nowMs: number,
  ) {
    let seq = firstSeq
    for (const [table, rows] of groupByTable(writes)) {
      const appender = await connection.createAppender(table)
      const plan = plans.get(table)!
      try {
        for (const cells of rows) appendRow(appender, plan, cells, seq++, nowMs)
        appender.flushSync()
      } catch (error) {
        // Without this the appender would try again to write what it holds when it is closed.
        appender.clear()
        throw error
      } finally {
        appender.closeSync()
      }
    }
  }

  async function write(
    connection: DuckDBConnection,
    commits: EncodedWrite[][],
    nowMs: number,
  ): Promise<void> {
    const writes = commits.flat()
    await transaction(connection, () => append(connection, writes, lastSeq + 1, nowMs))
    lastSeq += writes.length
  }

  /** One bad commit among many: each is tried alone, so that only the bad one is refused. */
  async function writeSingly(connection: DuckDBConnection, commits: EncodedWrite[][], nowMs: number) {
    const refusals: (string | null)[] = []
    for (const commit of commits) {
      try {
        await write(connection, [commit], nowMs)
        refusals.push(null)
      } catch (error) {
        if (isWorldError(error)) throw error
        refusals.push(error instanceof Error ? error.message : String(error))
      }
    }
    return refusals
  }

  async function takeBack(connection: DuckDBConnection, ackedSeq: number): Promise<void> {
    if (lastSeq <= ackedSeq) return
    await transaction(connection, () => deleteBeyond(connection, ackedSeq))
    lastSeq = ackedSeq
  }

  async function commit({ commits, nowMs, ackedSeq }: CommitRequest) {
    return database.writer.run(async (connection) => {
      await takeBack(connection, ackedSeq)
      try {
        await write(connection, commits, nowMs)
        return { refusals: commits.map(() => null), ackedSeq: lastSeq }
      } catch (error) {
        if (isWorldError(error)) throw error
        return { refusals: await writeSingly(connection, commits, nowMs), ackedSeq: lastSeq }
      }
    })
  }

  return {
    commit,
    retract: (ackedSeq) => database.writer.run((connection) => takeBack(connection, ackedSeq)),
    get lastSeq() {
      return lastSeq
    },
  }
}

assert(Object.keys(TABLES).length === ALL_TABLES.length, 'each table has one name')
