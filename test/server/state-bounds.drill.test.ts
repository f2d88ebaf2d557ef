// @module-tag drill
// A server whose state is at every bound starts, loses its lake process, is killed and is backed up, within memory that does not depend on
// the size of a table; what its state remembers counts, also after the kill, and beyond a bound the oldest entry goes.
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DAY_MS } from '../../src/lib/time.ts'
import { IDEMPOTENCY_RESPONSES_MAX } from '../../src/schema/api/submissions.ts'
import { COOLDOWNS_MAX, LABELS_WITHHELD_MAX } from '../../src/schema/recovered.ts'
import * as limits from '../../src/store/limits.ts'
import { statePath } from '../../src/store/paths.ts'
import { openTestStore } from '../store/support.ts'
import { clockOf } from '../support/clock.ts'
import { seedToken, submission, submit } from '../support/submission.ts'
import { runCommand } from '../support/terminal.ts'
import { type ServerProcess, spawnServer, temporaryFolder } from '../support/test-server.ts'

/** Measured: 1.15 GB in the server, 0.75 GB in the lake process. */
const SERVER_MB_MAX = 1_800
const LAKE_PROCESS_MB_MAX = 1_200
const SETTINGS = {
  'submit-limits': `cooldown-ms=${DAY_MS}`,
  'labels-delay-ms': String(DAY_MS),
  'lake-flush-ms': '300',
}

let folder: string
let server: ServerProcess | null = null
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(async () => {
  await server?.kill()
  rmSync(folder, { recursive: true, force: true })
})

/** Adds entries to the saved state, in the form in which a flush saves them: as many as bring a table to its bound. */
async function fill(dataDir: string, atMs: number): Promise<void> {
  const { duckdb } = await import('../../src/store/duckdb/duckdb.ts')
  const instance = await duckdb.DuckDBInstance.create(statePath(dataDir), { threads: '1' })
  const connection = await instance.connect()
  const text = (name: string, width: number) => `'${name}' || lpad(i::VARCHAR, ${width}, '0')`
  const agent = "'ag_01M8148K' || lpad((i % 1000)::VARCHAR, 18, '0')"
  const add = (table: string, entry: string, bound: number, bytes: number) => {
    const perChunk = Math.floor(limits.STATE_CHUNK_BYTES / bytes)
    return connection.run(`INSERT INTO state_chunks
      SELECT '${table}', i // ${perChunk} - ${bound}, ${atMs}, count(*), string_agg(${entry}, ',' ORDER BY i)
      FROM range(${bound} - coalesce((SELECT sum(entry_count) FROM state_chunks WHERE table_name = '${table}'), 0)::BIGINT) numbers(i)
      GROUP BY i // ${perChunk} ORDER BY 2`)
  }
  const mint = text('', 44)
  const moment = `'","atMs":${atMs}}]'`
  const ofAgent = `'[${atMs},{"agentId":"' || ${agent} ||`
  await add('cooldowns', `${ofAgent} '","mint":"' || ${mint} || ${moment}`, COOLDOWNS_MAX, 150)
  await add('strikes', `${ofAgent} ${moment}`, limits.STRIKES_MAX, 100)
  await add('submitAttempts', `${ofAgent} ${moment}`, limits.SUBMIT_ATTEMPTS_MAX, 100)
  const labels = `'[${atMs},{"analysisId":"' || ${text('an_', 26)} || '","mint":"' || ${mint} ||
    '","sentiment":"bullish","score":7,"atMs":${atMs}}]'`
  await add('recentLabels', labels, LABELS_WITHHELD_MAX, 190)
  const answer = `'["' || ${agent} || ' ' || ${text('key-', 60)} || '",{"lsn":1,"index":0,"knownAtMs":${atMs},"row":{"agent_id":"' || ${agent} ||
    '","idempotency_key":"' || ${text('key-', 60)} || '","body_hash":"${'0'.repeat(64)}","status":201,"body":"${'x'.repeat(900)}","at":${atMs}}}]'`
  await add('idempotency', answer, IDEMPOTENCY_RESPONSES_MAX, 1_400)
  await connection.run('CHECKPOINT')
  connection.closeSync()
  instance.closeSync()
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
/** The most that a process has used, MB. */
const peakMegabytes = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1_024

test('a server with its state at every bound starts, is killed, and is backed up; what it remembered is there', async () => {
  const dataDir = join(folder, 'data')
  server = await spawnServer(SETTINGS, dataDir)
  const key = await server.client.register()
  await server.terminate()
  await fill(dataDir, Date.now() - 60_000)
  server = await spawnServer(SETTINGS, dataDir)
  const mint = await seedToken(server.client, Date.now())
  const first = await submit(server.client, key, submission(mint), { 'Idempotency-Key': 'first' })
  expect(first.status, first.text).toBe(201)

  const again = await submit(server.client, key, submission(mint), { 'Idempotency-Key': 'first' })
  expect([again.status, again.body.analysisId]).toEqual([201, first.body.analysisId])
  const other = await submit(server.client, key, submission(mint))
  expect([other.status, other.body.code]).toEqual([429, 'mint_cooldown'])
  const { body } = await server.client.get(`/api/v1/analysis/${first.body.analysisId}`)
  expect(body).not.toHaveProperty('sentiment')

  const expectWithinMemory = (): void => {
    expect(peakMegabytes(server!.process.pid!)).toBeLessThan(SERVER_MB_MAX)
    expect(peakMegabytes(childrenOf(server!.process.pid!)[0])).toBeLessThan(LAKE_PROCESS_MB_MAX)
  }
  expectWithinMemory()
  // The lake process comes back, and flushes.
  process.kill(childrenOf(server.process.pid!)[0], 'SIGKILL')
  const health = async () => (await server!.client.get('/health')).body.store
  await expect.poll(async () => (await health()).lakeProcess.starts, { timeout: 120_000 }).toBe(2)
  const seeded = await seedToken(server.client, Date.now())
  const second = await submit(server.client, key, submission(seeded), { 'Idempotency-Key': 'second' })
  expect(second.status, second.text).toBe(201)
  await expect.poll(async () => (await health()).log.unflushedCommits, { timeout: 120_000 }).toBe(0)
  expectWithinMemory()
  await server.kill()

  const backup = await runCommand(['backup', '--data-dir', dataDir, '--out', join(folder, 'backup')])
  expect(backup, backup.err).toMatchObject({ code: 0, out: expect.stringMatching(/every file verified\n$/) })

  // Everything is still there, but for the oldest entries of the tables that the two submissions have added to.
  const store = await openTestStore(dataDir, { clock: clockOf(() => Date.now()) })
  const { cooldowns, idempotency, recentLabels, strikes } = store.recovered
  expect([cooldowns, idempotency, recentLabels, strikes].map(({ length }) => length)).toEqual([
    COOLDOWNS_MAX,
    IDEMPOTENCY_RESPONSES_MAX,
    LABELS_WITHHELD_MAX,
    limits.STRIKES_MAX,
  ])
  expect(recentLabels.at(-1)).toMatchObject({ analysisId: second.body.analysisId })
  expect(cooldowns.slice(-2)).toMatchObject([{ mint }, { mint: seeded }])
  expect(JSON.stringify(idempotency.slice(-2))).toMatch(/"first".*"second"/)
  await store.close()
}, 600_000)
