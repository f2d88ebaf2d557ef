// In: batches of commits. Out: each batch durable, in one transaction, in the journal. Numbers the rows. Never keeps a
// row that its caller was told was refused.
import type { DuckDBConnection } from '@duckdb/node-api'
import { assert } from '../lib/assert.ts'
import { TABLES } from '../schema/tables.ts'
import type { EncodedWrite } from './cells.ts'
import { type Database, query, transaction } from './database.ts'
import { appendToJournal } from './journal.ts'
import { ALL_TABLES, identifier, JOURNAL, JOURNAL_REFUSED, MANIFEST, ROW_SEQ } from './sql.ts'

export interface CommitRequest {
  writes: EncodedWrite[]
  nowMs: number
  /** The highest row number whose caller was answered; what lies beyond is taken back first. */
  ackedSeq: number
}

export interface Committer {
  /** Resolves when all of them are durable, with the number of the last; rejects when none is. */
  commit(request: CommitRequest): Promise<number>
  /** Takes back rows beyond `ackedSeq`: their callers were told that they were refused. */
  retract(ackedSeq: number): Promise<void>
  /** The highest row number in the store. */
  readonly lastSeq: number
}

/** Tables whose rows callers wait for share one row of numbers. */
const NUMBERED_TABLES = [
  ...ALL_TABLES.filter(({ origin }) => origin === undefined).map((table) => table.name),
  JOURNAL,
  JOURNAL_REFUSED,
]
const SHARED_NUMBERS = NUMBERED_TABLES.map((name) => `'${name}'`).join(', ')

async function highestSeq(connection: DuckDBConnection): Promise<number> {
  const tables = NUMBERED_TABLES.map((name) => `SELECT max(${ROW_SEQ}) AS seq FROM ${identifier(name)}`)
  const all = [
    ...tables,
    `SELECT max(seq_last) FROM ${MANIFEST} WHERE table_name IN (${SHARED_NUMBERS})`,
  ].join(' UNION ALL ')
  const rows = await query<{ seq: number }>(
    connection,
    `SELECT coalesce(max(seq), 0)::DOUBLE AS seq FROM (${all})`,
  )
  return rows[0].seq
}

const deleteBeyond = async (connection: DuckDBConnection, ackedSeq: number): Promise<void> => {
  for (const name of NUMBERED_TABLES) {
    await connection.run(`DELETE FROM ${identifier(name)} WHERE ${ROW_SEQ} > ${ackedSeq}`)
  }
}

/** The writer of `database`. One at a time: the store's only source of row numbers. */
export async function openCommitter(database: Database): Promise<Committer> {
  let lastSeq = await database.writer.run(highestSeq)

  async function takeBack(connection: DuckDBConnection, ackedSeq: number): Promise<void> {
    if (lastSeq <= ackedSeq) return
    await transaction(connection, () => deleteBeyond(connection, ackedSeq))
    lastSeq = ackedSeq
  }

  return {
    commit: ({ writes, nowMs, ackedSeq }) =>
      database.writer.run(async (connection) => {
        await takeBack(connection, ackedSeq)
        await transaction(connection, () => appendToJournal(connection, writes, lastSeq + 1, nowMs))
        lastSeq += writes.length
        return lastSeq
      }),
    retract: (ackedSeq) => database.writer.run((connection) => takeBack(connection, ackedSeq)),
    get lastSeq() {
      return lastSeq
    },
  }
}

assert(Object.keys(TABLES).length === ALL_TABLES.length, 'each table has one name')
