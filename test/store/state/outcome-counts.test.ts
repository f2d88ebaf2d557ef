// The counts of outcomes of a folder whose state was lost: they come from the lake, once.
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Losses } from '../../../src/store/data-folder/losses.ts'
import type { Store } from '../../../src/store/store.ts'
import { NOON_MS, openTestStore, removeFolder, submission, temporaryFolder, writeOf } from '../support.ts'

let folder: string
let store: Store
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(async () => {
  await store.close()
  removeFolder(folder)
})

/** An accepted or rejected submission, with the awards and attempts that belong to it. */
const commit = (id: string, agentId: string, outcome: string) =>
  store.commit(
    outcome === 'rejected'
      ? [writeOf('rejections', { analysis_id: id, agent_id: agentId, outcome })]
      : submission(id, { agent_id: agentId, outcome }),
  )

it('are those of a lake whose state was lost, and go on from there', async () => {
  store = await openTestStore(folder, { labelsDelayMs: 600_000 })
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
  removeFolder(join(folder, 'state.duckdb'))
  store = await openTestStore(folder, { labelsDelayMs: 600_000 })
  expect(store.recovered.outcomeCounts).toEqual(expected)
  // Its labels are as young as before.
  expect(store.recovered.coverage).toMatchObject([{ count: 3, lastSentiment: null, lastScore: null }])
  expect(store.recovered.recentLabels).toMatchObject(
    ['an_1', 'an_2', 'an_3'].map((analysisId) => ({ analysisId, sentiment: 'text', atMs: NOON_MS })),
  )
  await commit('an_5', 'ag_2', 'validated')
  await store.close()
  store = await openTestStore(folder)
  expect(store.recovered.outcomeCounts).toEqual([expected[0], { ...expected[1], validated: 1 }])
  expect(store.recovered.coverage).toMatchObject([{ mint: 'text', count: 4 }])
  expect(
    (await store.submissions({ agentId: 'ag_1', mint: null, before: null, limit: 5 })).submissions,
  ).toHaveLength(3)
})

it('lack submissions of files that are lost too, which is told', async () => {
  store = await openTestStore(folder)
  await commit('an_1', 'ag_1', 'validated')
  await commit('an_2', 'ag_1', 'rejected')
  await store.flushLake()
  await store.close()
  for (const path of ['state.duckdb', 'lake/.files/rejections', 'lake/rejections'])
    removeFolder(join(folder, path))
  store = await openTestStore(folder)
  expect(store.recovered.outcomeCounts).toEqual([
    { agentId: 'ag_1', validated: 1, unvalidated: 0, rejected: 0 },
  ])
  const losses = new Losses(folder)
  await losses.load(NOON_MS)
  expect(losses.unacknowledged.map(({ sentence }) => sentence).join()).toContain(
    'since files of the lake are set aside, the strikes, counts of outcomes and cooldowns of 1 row of rejections',
  )
})
