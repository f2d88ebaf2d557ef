// In: batches with a commit that DuckDB itself refuses. Out: proof that only that commit is refused.
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Write } from '../../src/schema/tables.ts'
import { type EncodedWrite, encodeWrite } from '../../src/store/cells.ts'
import { type Committer, openCommitter } from '../../src/store/committer.ts'
import { type Database, isWorldError, openDatabase, query } from '../../src/store/database.ts'
import { NOON_MS, removeFolder, submission, temporaryFolder } from './support.ts'

let folder: string
let database: Database
let committer: Committer

beforeEach(async () => {
  folder = temporaryFolder()
  database = await openDatabase(folder)
  committer = await openCommitter(database)
})
afterEach(async () => {
  await database.close()
  removeFolder(folder)
})

const encoded = (writes: Write[]): EncodedWrite[] => writes.map(encodeWrite)

/** A commit whose second row DuckDB refuses: the door's own check is passed by. */
function poisonous(id: string): EncodedWrite[] {
  const rows = encoded(submission(id))
  rows[1].cells[0] = null
  return rows
}

const ids = (table: string, column: string): Promise<string[]> =>
  database.reader.run(async (connection) => {
    const rows = await query<{ id: string }>(
      connection,
      `SELECT ${column} AS id FROM ${table} ORDER BY row_seq`,
    )
    return rows.map((row) => row.id)
  })

test('one poisonous commit is refused alone, whole, and its neighbours are durable', async () => {
  const commits = [encoded(submission('an_1')), poisonous('an_2'), encoded(submission('an_3'))]
  const { refusals, ackedSeq } = await committer.commit({ commits, nowMs: NOON_MS, ackedSeq: 0 })
  expect(refusals).toEqual([null, expect.stringContaining('NOT NULL'), null])
  expect(await ids('training', 'analysis_id')).toEqual(['an_1', 'an_3'])
  expect(await ids('xp_ledger', 'analysis_id')).toEqual(['an_1', 'an_3'])
  expect(ackedSeq).toBe(6)
})

test('a cell of the wrong kind spoils neither its batch nor the next one', async () => {
  const bad = encoded(submission('an_2'))
  bad[0].cells[0] = 5
  const first = await committer.commit({ commits: [bad], nowMs: NOON_MS, ackedSeq: 0 })
  expect(first.refusals[0]).toEqual(expect.any(String))
  const next = await committer.commit({
    commits: [encoded(submission('an_3'))],
    nowMs: NOON_MS,
    ackedSeq: first.ackedSeq,
  })
  expect(next.refusals).toEqual([null])
  expect(await ids('training', 'analysis_id')).toEqual(['an_3'])
})

test('rows that nobody was told of are taken back before the next batch', async () => {
  const first = await committer.commit({
    commits: [encoded(submission('an_1'))],
    nowMs: NOON_MS,
    ackedSeq: 0,
  })
  await committer.commit({
    commits: [encoded(submission('an_lost'))],
    nowMs: NOON_MS,
    ackedSeq: first.ackedSeq,
  })
  await committer.commit({ commits: [encoded(submission('an_2'))], nowMs: NOON_MS, ackedSeq: first.ackedSeq })
  expect(await ids('training', 'analysis_id')).toEqual(['an_1', 'an_2'])
  expect(await ids('submit_attempts', 'agent_id')).toHaveLength(2)
})

test('row numbers go on where the last opening stopped', async () => {
  await committer.commit({ commits: [encoded(submission('an_1'))], nowMs: NOON_MS, ackedSeq: 0 })
  await database.close()
  database = await openDatabase(folder)
  committer = await openCommitter(database)
  expect(committer.lastSeq).toBe(3)
})

test('an older store gets the columns that it lacks, NULL in its rows, and takes new rows', async () => {
  await database.writer.run(async (connection) => {
    await connection.run('ALTER TABLE xp_ledger DROP COLUMN note')
    await connection.run(
      `INSERT INTO xp_ledger VALUES (1, 'old', 'agent', now()::TIMESTAMP, 'trade', 1, NULL, 1)`,
    )
  })
  await database.close()
  database = await openDatabase(folder)
  committer = await openCommitter(database)
  const { refusals } = await committer.commit({
    commits: [encoded(submission('an_1'))],
    nowMs: NOON_MS,
    ackedSeq: 1,
  })
  expect(refusals).toEqual([null])
  expect(await ids('xp_ledger', 'note')).toEqual([null, 'text'])
})

test.each([
  ['IO Error: Could not write file "x.wal": No space left on device', true],
  ['TransactionContext Error: Failed to commit: Could not write file', true],
  ['FATAL Error: Failed: database has been invalidated because of a previous fatal error', true],
  ['Out of Memory Error: could not allocate block', true],
  ['Constraint Error: NOT NULL constraint failed: training.mint', false],
  ['Conversion Error: Could not convert string', false],
])('%s is the world’s fault: %s', (message, expected) => {
  expect(isWorldError(new Error(message))).toBe(expected)
})
