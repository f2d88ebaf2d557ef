// In: volatile rows of several ages. Out: proof that only what nobody asks for again is pruned.
import { expect, test } from 'vitest'
import { encodeWrite, journalEntries } from '../../src/store/cells.ts'
import { openCommitter } from '../../src/store/committer.ts'
import { openDatabase, query } from '../../src/store/database.ts'
import { openJournal } from '../../src/store/journal.ts'
import { prune } from '../../src/store/prune.ts'
import { NOON_MS, quietJournal, removeFolder, submission, temporaryFolder, writeOf } from './support.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

test('attempts older than ten minutes and answers older than a day are pruned, the lake’s tables never', async () => {
  const folder = temporaryFolder()
  const database = await openDatabase(folder)
  const committer = await openCommitter(database, () => {})
  const writes = [
    writeOf('submit_attempts', { at: NOON_MS - 10 * MINUTE_MS - 1, agent_id: 'old' }),
    writeOf('submit_attempts', { at: NOON_MS - 10 * MINUTE_MS, agent_id: 'young' }),
    writeOf('idempotency', { at: NOON_MS - DAY_MS - 1, idempotency_key: 'old' }),
    writeOf('idempotency', { at: NOON_MS - DAY_MS, idempotency_key: 'young' }),
    ...submission('an_1', { submitted_at: NOON_MS - 365 * DAY_MS }).slice(0, 2),
  ]
  const ackedSeq = await committer.commit({
    entries: journalEntries(writes.map(encodeWrite)),
    nowMs: NOON_MS,
    ackedSeq: 0,
  })
  await openJournal(database, quietJournal).spread(ackedSeq)
  await database.maintenance.run((connection) => prune(connection, NOON_MS, 10 * MINUTE_MS))
  const left = await database.reader.run((connection) =>
    query<{ id: string }>(
      connection,
      `SELECT agent_id AS id FROM submit_attempts UNION ALL SELECT idempotency_key FROM idempotency
       UNION ALL SELECT analysis_id FROM training UNION ALL SELECT analysis_id FROM xp_ledger`,
    ),
  )
  expect(left.map((row) => row.id).sort()).toEqual(['an_1', 'an_1', 'young', 'young'])
  await database.close()
  removeFolder(folder)
})
