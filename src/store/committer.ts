// In: batches of commits. Out: each batch durable, in one transaction, in the journal. Numbers the rows. Never keeps a
// row that its caller was told was refused.
import type { DuckDBConnection } from '@duckdb/node-api'
import { assert } from '../lib/assert.ts'
import { TABLES } from '../schema/tables.ts'
import { type JournalEntry, KNOWN_AT, rowsOf } from './cells.ts'
import { type Database, isDurableError, query } from './database.ts'
import { appendToJournal } from './journal.ts'
import { EVER_LISTED } from './manifest.ts'
import { ALL_TABLES, identifier, JOURNAL, JOURNAL_MARK, JOURNAL_REFUSED, MANIFEST, ROW_SEQ } from './sql.ts'

export interface CommitRequest {
  entries: JournalEntry[]
  nowMs: number
  /** The highest row number whose caller was answered; what lies beyond is taken back first. */
  ackedSeq: number
}

export interface Committer {
  /** Resolves when all of them are durable, with the number of the last; rejects when none is. */
  commit(request: CommitRequest): Promise<number>
  /** Takes back rows beyond `ackedSeq`: their callers were told that they were refused. */
  retract(ackedSeq: number): Promise<void>
  /** Numbers rows on from the highest number there is: files may have been put on the lake's list since the opening. */
  renumber(): Promise<void>
  /** The highest row number in the store. */
  readonly lastSeq: number
}

/** Tables whose rows callers wait for share one row of numbers. */
const CALLERS_TABLES = ALL_TABLES.filter(({ origin }) => origin === undefined)
const NUMBERED_TABLES = [...CALLERS_TABLES.map((table) => table.name), JOURNAL_MARK, JOURNAL_REFUSED]
const SHARED_NUMBERS = NUMBERED_TABLES.map((name) => `'${name}'`).join(', ')

async function highestSeq(connection: DuckDBConnection): Promise<number> {
  const tables = NUMBERED_TABLES.map((name) => `SELECT max(${ROW_SEQ}) AS seq FROM ${identifier(name)}`)
  const all = [
    ...tables,
    `SELECT max(${ROW_SEQ}) FROM ${JOURNAL}`,
    `SELECT max(seq_last) FROM (${EVER_LISTED}) WHERE table_name IN (${SHARED_NUMBERS})`,
  ].join(' UNION ALL ')
  const rows = await query<{ seq: number }>(
    connection,
    `SELECT coalesce(max(seq), 0)::DOUBLE AS seq FROM (${all})`,
  )
  return rows[0].seq
}

/** The youngest `known_at` that any of those rows can have. */
async function latestKnownAt(connection: DuckDBConnection): Promise<number> {
  const stamped = CALLERS_TABLES.filter(({ columns }) => columns.some(({ name }) => name === KNOWN_AT))
  const all = [
    ...stamped.map(({ name }) => `SELECT max(${KNOWN_AT}) AS latest FROM ${identifier(name)}`),
    `SELECT epoch_ms(max(known_at_ms)) FROM ${JOURNAL}`,
    `SELECT max(written_at) FROM ${MANIFEST} WHERE table_name IN (${SHARED_NUMBERS})`,
  ].join(' UNION ALL ')
  const rows = await query<{ ms: number }>(
    connection,
    `SELECT coalesce(epoch_ms(max(latest)), 0)::DOUBLE AS ms FROM (${all})`,
  )
  return rows[0].ms
}

/**
 * The writer of `database`. One at a time: the store's only source of row numbers.
 * @param onBroken called when rows are durable, but the database must be opened anew.
 */
export async function openCommitter(
  database: Database,
  onBroken: (error: unknown) => void,
): Promise<Committer> {
  let lastSeq = await database.writer.run(highestSeq)
  let lastKnownAtMs = await database.writer.run(latestKnownAt)

  async function takeBack(connection: DuckDBConnection, ackedSeq: number): Promise<void> {
    if (lastSeq <= ackedSeq) return
    // Only rows whose callers were answered leave the journal.
    await connection.run(`DELETE FROM ${JOURNAL} WHERE ${ROW_SEQ} > ${ackedSeq}`)
    lastSeq = ackedSeq
  }

  return {
    commit: ({ entries, nowMs, ackedSeq }) =>
      database.writer.run(async (connection) => {
        await takeBack(connection, ackedSeq)
        // Each commit is younger than the one before, even where the clock is set back: whoever has read all rows up to
        // one `known_at` goes on from there and misses none.
        const knownAtMs = Math.max(nowMs, lastKnownAtMs + 1)
        // One statement, so a transaction by itself: to begin and to commit one would cost as much again.
        await appendToJournal(connection, entries, lastSeq, knownAtMs).catch((error: unknown) => {
          if (!isDurableError(error)) throw error
          onBroken(error)
        })
        lastKnownAtMs = knownAtMs
        lastSeq += rowsOf(entries)
        return lastSeq
      }),
    retract: (ackedSeq) => database.writer.run((connection) => takeBack(connection, ackedSeq)),
    renumber: () =>
      database.writer.run(async (connection) => {
        lastSeq = Math.max(lastSeq, await highestSeq(connection))
        lastKnownAtMs = Math.max(lastKnownAtMs, await latestKnownAt(connection))
      }),
    get lastSeq() {
      return lastSeq
    },
  }
}

assert(Object.keys(TABLES).length === ALL_TABLES.length, 'each table has one name')
