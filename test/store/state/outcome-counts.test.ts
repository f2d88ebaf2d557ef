// The counts of outcomes of folders whose state was written before there were any: they come from the lake, once.
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { duckdb } from '../../../src/store/duckdb/duckdb.ts'
import type { Store } from '../../../src/store/store.ts'
import { NOON_MS, openTestStore, removeFolder, submission, temporaryFolder, writeOf } from '../support.ts'

const folder = temporaryFolder()
let store: Store
afterEach(async () => {
  await store.close()
  removeFolder(folder)
})

async function changeState(...statements: string[]): Promise<void> {
  const instance = await duckdb.DuckDBInstance.create(join(folder, 'state.duckdb'), { threads: '1' })
  const connection = await instance.connect()
  for (const statement of statements) await connection.run(statement)
  connection.closeSync()
  instance.closeSync()
}

/** An accepted or rejected submission, with the awards and attempts that belong to it. */
const commit = (id: string, agentId: string, outcome: string) =>
  store.commit(
    outcome === 'rejected'
      ? [writeOf('rejections', { analysis_id: id, agent_id: agentId, outcome })]
      : submission(id, { agent_id: agentId, outcome }),
  )

it('are completed from the lake, and not counted again later', { tags: 'drill' }, async () => {
  store = await openTestStore(folder)
  for (const [id, agentId, outcome] of [
    ['an_1', 'ag_1', 'validated'],
    ['an_2', 'ag_1', 'validated'],
    ['an_3', 'ag_1', 'unvalidated'],
    ['an_4', 'ag_2', 'rejected'],
  ])
    await commit(id, agentId, outcome)
  await store.flushLake()
  const expected = [
    { agentId: 'ag_1', validated: 2, unvalidated: 1, rejected: 0 },
    { agentId: 'ag_2', validated: 0, unvalidated: 0, rejected: 1 },
  ]
  await store.close()
  await changeState(
    `DELETE FROM state_entries WHERE table_name IN ('marks', 'agentOutcomes', 'recentLabels')`,
    // As where a first start could not write, and a flush has counted since.
    `INSERT INTO state_entries VALUES ('agentOutcomes', 'ag_1', 0, '{"validated":1,"unvalidated":0,"rejected":0}')`,
  )
  for (let start = 0; start < 2; start++) {
    store = await openTestStore(folder)
    expect(store.recovered.outcomeCounts).toEqual(expected)
    await store.close()
  }
  store = await openTestStore(folder)
  await commit('an_5', 'ag_2', 'validated')
  await store.close()
  store = await openTestStore(folder)
  expect(store.recovered.outcomeCounts).toEqual([expected[0], { ...expected[1], validated: 1 }])
  expect(store.recovered.coverage).toMatchObject([{ mint: 'text', count: 4 }])
  expect(
    (await store.submissions({ agentId: 'ag_1', mint: null, before: null, limit: 5 })).submissions,
  ).toHaveLength(3)
})

it('are those of a lake whose state was lost', async () => {
  store = await openTestStore(folder, { labelsDelayMs: 600_000 })
  await commit('an_1', 'ag_1', 'validated')
  await store.flushLake()
  await store.close()
  removeFolder(join(folder, 'state.duckdb'))
  store = await openTestStore(folder, { labelsDelayMs: 600_000 })
  expect(store.recovered.outcomeCounts).toEqual([
    { agentId: 'ag_1', validated: 1, unvalidated: 0, rejected: 0 },
  ])
  // Its labels are as young as before.
  expect(store.recovered.coverage).toMatchObject([{ count: 1, lastSentiment: null, lastScore: null }])
  expect(store.recovered.recentLabels).toMatchObject([
    { analysisId: 'an_1', sentiment: 'text', atMs: NOON_MS },
  ])
})
