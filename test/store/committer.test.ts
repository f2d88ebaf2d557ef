// In: batches, some with rows that no table takes. Out: proof of what is kept where, and of what is taken back.
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Write } from '../../src/schema/tables.ts'
import { type EncodedWrite, encodeWrite, journalEntries } from '../../src/store/cells.ts'
import { type Committer, openCommitter } from '../../src/store/committer.ts'
import { type Database, isWorldError, openDatabase, query } from '../../src/store/database.ts'
import { type Journal, journalRows, openJournal } from '../../src/store/journal.ts'
import { findAnalysis } from '../../src/store/recovery.ts'
import { NOON_MS, quietJournal, removeFolder, submission, temporaryFolder, writeOf } from './support.ts'

let folder: string
let database: Database
let committer: Committer
let journal: Journal
let logged: string[]

beforeEach(async () => {
  folder = temporaryFolder()
  database = await openDatabase(folder)
  committer = await openCommitter(database, () => {})
  logged = []
  journal = openJournal(database, { ...quietJournal, log: ({ message }) => void logged.push(message) })
})
afterEach(async () => {
  await database.close()
  removeFolder(folder)
})

const encoded = (writes: Write[]): EncodedWrite[] => writes.map(encodeWrite)

const commit = (writes: EncodedWrite[], ackedSeq: number): Promise<number> =>
  committer.commit({ entries: journalEntries(writes), nowMs: NOON_MS, ackedSeq })

/** A commit whose second row no table takes: the door's own check is passed by. */
function poisonous(id: string): EncodedWrite[] {
  const rows = encoded(submission(id))
  rows[1].json = rows[1].json.replace(/"entry_id":"[^"]*",/, '')
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

test('a row that no table takes is set aside, whole, and its neighbours are moved', async () => {
  const writes = [...encoded(submission('an_1')), ...poisonous('an_2'), ...encoded(submission('an_3'))]
  const ackedSeq = await commit(writes, 0)
  expect(ackedSeq).toBe(9)
  expect(await ids('journal_data.journal', 'table_name')).toHaveLength(3)
  expect(await ids(`(${journalRows({ after: 0 })})`, 'row_seq::INTEGER')).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
  await journal.spread(ackedSeq)
  expect(await ids('training', 'analysis_id')).toEqual(['an_1', 'an_2', 'an_3'])
  expect(await ids('xp_ledger', 'analysis_id')).toEqual(['an_1', 'an_3'])
  expect(await ids('journal_data.journal', 'table_name')).toEqual([])
  expect(await ids('journal_refused', 'json')).toEqual([writes[4].json])
  expect(logged).toEqual(['a row fits no table and is set aside'])
})

test('every cell comes back from the journal as it went in', async () => {
  const row = {
    summary: 'quote " backslash \\ newline \n null \u0000 pair \u{1f680} half \ud800 end',
    score: 5e-324,
    deviation_pct: 0.1 + 0.2,
    volume_24h: 1.7976931348623157e308,
    unique_wallet_24h: Number.MAX_SAFE_INTEGER,
    transfer_fee_enabled: null,
    risk_factors: ['a', 'b "c"'],
  }
  const ackedSeq = await commit(encoded(submission('an_1', row)), 0)
  const find = () => database.reader.run((connection) => findAnalysis(connection, 'an_1'))
  const waiting = await find()
  await journal.spread(ackedSeq)
  const moved = await find()
  expect(moved).toEqual(waiting)
  expect(moved).toMatchObject({ ...row, summary: row.summary.toWellFormed(), known_at: NOON_MS })
})

test('rows that nobody was told of are taken back before the next batch', async () => {
  const first = await commit(encoded(submission('an_1')), 0)
  await commit(encoded(submission('an_lost')), first)
  const second = await commit(encoded(submission('an_2')), first)
  await journal.spread(second)
  expect(await ids('training', 'analysis_id')).toEqual(['an_1', 'an_2'])
  expect(await ids('submit_attempts', 'agent_id')).toHaveLength(2)
})

test('a journal of an older server, each row by itself, is moved with the rows that follow', async () => {
  const [{ table, json }] = encoded(submission('an_old'))
  await database.writer.run(async (connection) => {
    await connection.run(`INSERT INTO journal_data.journal VALUES (1, '${table}', ${NOON_MS}, $json)`, {
      json,
    })
  })
  committer = await openCommitter(database, () => {})
  const ackedSeq = await commit([...encoded(submission('an_1')), ...encoded(submission('an_2'))], 1)
  await journal.spread(ackedSeq)
  expect(await ids('training', 'analysis_id')).toEqual(['an_old', 'an_1', 'an_2'])
  expect(await ids('training', 'row_seq::INTEGER')).toEqual([1, 2, 3])
})

test('a long journal is moved in steps, each row once, what nobody was told of left where it is', async () => {
  const attempts = (count: number) => encoded(Array.from({ length: count }, () => writeOf('submit_attempts')))
  let ackedSeq = 0
  for (const count of [1, 8_191, 5_000, 5_000]) ackedSeq = await commit(attempts(count), ackedSeq)
  await commit(attempts(3), ackedSeq)
  await journal.spread(ackedSeq)
  const numbers = await ids('submit_attempts', 'row_seq::INTEGER')
  expect(numbers).toEqual(Array.from({ length: 18_192 }, (_, index) => index + 1))
  expect(await ids('journal_data.journal', 'row_seq::INTEGER')).toEqual([18_195])
})

test('row numbers go on where the last opening stopped', async () => {
  await commit(encoded(submission('an_1')), 0)
  await database.close()
  database = await openDatabase(folder)
  committer = await openCommitter(database, () => {})
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
  committer = await openCommitter(database, () => {})
  const ackedSeq = await commit(encoded(submission('an_1')), 1)
  await openJournal(database, quietJournal).spread(ackedSeq)
  expect(await ids('xp_ledger', 'note')).toEqual([null, 'text'])
})

test.each([
  ['IO Error: Could not write file "x.wal": No space left on device', true],
  ['TransactionContext Error: Failed to commit: Could not write file', true],
  ['FATAL Error: Failed: database has been invalidated because of a previous fatal error', true],
  ['Out of Memory Error: could not allocate block', true],
  ['Failed to append: Failed to commit: Could not write file "x.wal": Input/output error', true],
  ['Constraint Error: NOT NULL constraint failed: training.mint', false],
  ['Conversion Error: Could not convert string', false],
])('%s is the world’s fault: %s', (message, expected) => {
  expect(isWorldError(new Error(message))).toBe(expected)
})
