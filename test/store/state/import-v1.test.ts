// Folders that versions with a store of format 1 wrote: opened by today's store with everything in them. How they were made:
// ../fixtures/make-v1.ts. The first is of lake schema version 1, the second of 2.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { duckdb } from '../../../src/store/duckdb/duckdb.ts'
import type { StoreOptions } from '../../../src/store/store.ts'
import type { Recovered, Store } from '../../../src/store/types.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { AgentRegistry } from '../../../src/submissions/accounts/agent-registry.ts'
import { clockOf } from '../../support/clock.ts'
import { openTestStore, readSql, removeFolder, submission, temporaryFolder } from '../support.ts'

const FIXTURES = ['v1-schema-1', 'v1-schema-2']
const folders: string[] = []
const stores: Store[] = []
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
  for (const folder of folders.splice(0)) removeFolder(folder)
})

interface Fixture {
  dataDir: string
  nowMs: number
  /** What the version that wrote the folder knew when it opened it again. */
  old: Recovered
}

function unpack(name: string): Fixture {
  const folder = temporaryFolder()
  folders.push(folder)
  execFileSync('tar', ['-xzf', new URL(`../fixtures/${name}.tar.gz`, import.meta.url).pathname, '-C', folder])
  const { nowMs, ...old } = JSON.parse(readFileSync(join(folder, 'recovered.json'), 'utf8'))
  return { dataDir: join(folder, 'data'), nowMs, old }
}

async function open({ dataDir, nowMs }: Fixture, options: Partial<StoreOptions> = {}): Promise<Store> {
  const store = await openTestStore(dataDir, { clock: clockOf(() => nowMs), cooldownMs: 0, ...options })
  stores.push(store)
  return store
}

async function close(store: Store): Promise<void> {
  stores.splice(stores.indexOf(store), 1)
  await store.close()
}

/** Changes a database of the old store, as only its own version would have. */
async function changeOld({ dataDir }: Fixture, file: string, ...statements: string[]): Promise<void> {
  const instance = await duckdb.DuckDBInstance.create(join(dataDir, file), { threads: '1' })
  const connection = await instance.connect()
  for (const statement of statements) await connection.run(statement)
  connection.closeSync()
  instance.closeSync()
}

const sorted = <Each>(rows: readonly Each[]): Each[] =>
  [...rows].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
const standingOf = (recovered: Recovered, { nowMs }: Fixture) =>
  new AgentRegistry({
    recovered,
    store: { commit: async () => {} },
    clock: clockOf(() => nowMs),
    random: () => 0.5,
    randomBytes: (count) => new Uint8Array(count),
    registrationOpen: true,
  }).list()
const verify = async ({ dataDir, nowMs }: Fixture) => (await verifyLake({ dataDir, nowMs })).findings

it.each(FIXTURES)(
  'a folder of format 1 (%s) is opened with its agents, keys, bans, strikes, XP, coverage, cooldowns and remembered answers',
  async (name) => {
    const fixture = unpack(name)
    const { recovered } = await open(fixture)
    const { old } = fixture
    expect(old.strikes.length).toBeGreaterThan(0)
    expect(old.cooldowns.length).toBeGreaterThan(0)
    expect(recovered.agents).toEqual(old.agents)
    expect(recovered.agentKeys).toEqual(old.agentKeys)
    expect(recovered.idempotency).toEqual(old.idempotency)
    expect(recovered.submitAttempts).toEqual(old.submitAttempts)
    expect(sorted(recovered.xpTotals)).toEqual(sorted(old.xpTotals))
    expect(sorted(recovered.coverage)).toEqual(sorted(old.coverage))
    expect(sorted(recovered.cooldowns)).toEqual(sorted(old.cooldowns))
    expect(sorted(recovered.strikes)).toEqual(sorted(old.strikes))
    const standing = standingOf(recovered, fixture)
    expect(standing).toEqual(standingOf(old, fixture))
    expect(standing.some(({ banned }) => banned)).toBe(true)
  },
)

it.each(FIXTURES)(
  'rows of a folder of format 1 (%s) stay in the lake once each, new commits follow them, and lake verify finds nothing',
  { tags: 'drill' },
  async (name) => {
    const fixture = unpack(name)
    const lakeRows = (table: string, select: string) =>
      readSql(
        `FROM lake.${table} SELECT ${select}`,
        `ATTACH '${fixture.dataDir}/lake/catalog.duckdb' AS lake (READ_ONLY)`,
      )
    let store = await open(fixture)
    const analyses = fixture.old.xpTotals.reduce((sum, each) => sum + each.analyses, 0)
    const [training] = await lakeRows(
      'training',
      'count(*)::INT AS rows, count(DISTINCT analysis_id)::INT AS ids',
    )
    expect(training).toEqual({ rows: analyses, ids: analyses })
    const bars = await lakeRows('bars', 'count(*)::INT AS rows, count(feed)::INT AS told')
    expect(bars[0].rows).toBeGreaterThan(500)
    expect(bars[0].told).toBe(0)
    expect((await lakeRows('outcomes', 'count(*)::INT AS rows'))[0].rows).toBeGreaterThan(50)
    const [{ id }] = await lakeRows('training', 'min(analysis_id) AS id')
    expect(await store.analysis(id as string)).toMatchObject({ analysis_id: id, feed: null, simulated: null })

    expect(store.recovered.outcomeCounts).not.toEqual([])
    for (const { agentId, ...counts } of store.recovered.outcomeCounts) {
      const selects = ['training', 'rejections'].map((table) =>
        lakeRows(table, `analysis_id AS id, outcome, submitted_at AS at WHERE agent_id = '${agentId}'`),
      )
      const own = (await Promise.all(selects)).flat()
      for (const [outcome, count] of Object.entries(counts))
        expect(own.filter((row) => row.outcome === outcome)).toHaveLength(count)
      const { submissions } = await store.submissions({ agentId, mint: null, before: null, limit: 200 })
      expect(submissions.map(({ row }) => row.analysis_id).toSorted()).toEqual(
        own.map((row) => row.id).toSorted(),
      )
      expect(submissions.every(({ xp }) => xp !== null)).toBe(true)
      expect(submissions.some(({ outcomes }) => outcomes?.fwd_ret_5m != null)).toBe(true)
    }

    const [agent] = fixture.old.agents
    const over = { agent_id: agent.agent_id as string, submitted_at: fixture.nowMs }
    await store.commit(submission('an_after', over))
    await store.flushLake()
    expect(await store.analysis('an_after')).toMatchObject({ analysis_id: 'an_after' })
    await close(store)
    expect(await verify(fixture)).toEqual([])

    store = await open(fixture)
    const xpOf = (recovered: Recovered) =>
      recovered.xpTotals.find(({ agentId }) => agentId === agent.agent_id) ?? { xp: 0, analyses: 0 }
    expect(xpOf(store.recovered)).toMatchObject({
      xp: xpOf(fixture.old).xp + 17.5,
      analyses: xpOf(fixture.old).analyses + 1,
    })
    await store.compactLake()
    await close(store)
    expect(await verify(fixture)).toEqual([])

    // The version that wrote the folder would delete what it does not know of the lake.
    const opening = duckdb.DuckDBInstance.create(join(fixture.dataDir, 'mintlake.duckdb'))
    await expect(opening).rejects.toThrow(/not a valid DuckDB database/)
    expect(existsSync(join(fixture.dataDir, 'mintlake-0.1.duckdb'))).toBe(true)
  },
)

it.each([
  [
    'in its tables',
    'mintlake.duckdb',
    "INSERT INTO training BY NAME (SELECT * REPLACE ((SELECT max(row_seq) + 1 FROM training) AS row_seq, 'an_late' AS analysis_id) FROM training LIMIT 1)",
  ],
  ['in its journal', 'journal.duckdb', "INSERT INTO journal VALUES (1000000, 'training', 0, '{}')"],
])(
  'a folder of format 1 that has rows %s which its lake lacks is refused with what to do, and opens once they are there',
  { tags: 'drill' },
  async (_where, file, insert) => {
    const fixture = unpack('v1-schema-2')
    const [table, condition] =
      file === 'journal.duckdb' ? ['journal', 'row_seq = 1000000'] : ['training', "analysis_id = 'an_late'"]
    await changeOld(fixture, file, insert)
    for (let attempt = 0; attempt < 2; attempt++)
      await expect(open(fixture)).rejects.toMatchObject({
        code: 'invalid',
        message: expect.stringContaining(
          '1 rows that its lake does not hold yet: start and stop that version once more',
        ),
      })
    await changeOld(fixture, file, `DELETE FROM ${table} WHERE ${condition}`)
    const { recovered } = await open(fixture)
    expect(recovered.agents).toEqual(fixture.old.agents)
  },
)
