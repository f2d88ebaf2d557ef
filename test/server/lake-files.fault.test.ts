// A file of the lake is missing or damaged: the server starts and works, reports the file wherever it is asked, and
// `mintlake lake repair` resolves it.
import {
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { readSql } from '../store/support.ts'
import { clockOf } from '../support/clock.ts'
import { seedToken, submission, submit } from '../support/submission.ts'
import { runCommand } from '../support/terminal.ts'
import {
  ADMIN_KEY,
  openTestServer,
  spawnServer,
  type TestServer,
  temporaryFolder,
} from '../support/test-server.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
/** Noon two days ago, so that the next hours have the same date, and a day later is over too. */
const FIRST_DAY_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS - 1.5 * DAY_MS

let root: string
let whole: string
let folder: string
let nowMs: number
let server: TestServer | null = null
/** The accepted submissions of each day. */
const analyses: string[] = []
let key: string

const open = async (settings: Record<string, string> = {}): Promise<TestServer> => {
  server = await openTestServer(
    { 'submit-limits': 'cooldown-ms=0', ...settings },
    { clock: clockOf(() => nowMs) },
    folder,
  )
  return server
}
const close = async (): Promise<void> => {
  await server?.stop()
  server = null
}

/** Trades a token for some minutes and submits on it. */
async function fillDay({ client, market }: TestServer, sol: string): Promise<void> {
  const mint = await seedToken(client, nowMs)
  for (let minute = 0; minute < 5; minute++) {
    nowMs += 60_000
    const trade = {
      type: 'trade',
      mint,
      ts: nowMs,
      side: 'buy',
      tokenAmount: 10,
      priceUsd: 1,
    }
    await client.push({ ...trade, tx: `${sol}${minute}` })
  }
  nowMs += HOUR_MS / 2
  market.advanceTo(nowMs)
  const answer = await submit(client, key, submission(mint))
  expect(answer.status, answer.text).toBe(201)
  analyses.push(answer.body.analysisId)
}

beforeAll(async () => {
  root = temporaryFolder()
  whole = join(root, 'whole')
  folder = whole
  nowMs = FIRST_DAY_MS
  const first = await open()
  key = await first.client.register()
  await fillDay(first, 'a')
  await close()
  nowMs = FIRST_DAY_MS + DAY_MS
  await fillDay(await open(), 'b')
  await close()
})
afterAll(() => rmSync(root, { recursive: true, force: true }))
afterEach(async () => {
  await close()
  if (folder !== whole) rmSync(folder, { recursive: true, force: true })
})

/** A copy of the folder, with a new hard link for each file's second name. */
function freshFolder(): void {
  folder = join(root, `copy-${process.hrtime.bigint()}`)
  cpSync(whole, folder, { recursive: true })
  nowMs = FIRST_DAY_MS + DAY_MS + HOUR_MS
}

/** Both paths of a table's file of a day, by its index. */
function fileOf(table: string, index: number): { name: string; held: string; shown: string } {
  const names = readdirSync(join(folder, 'lake', table), { recursive: true, encoding: 'utf8' })
  const name = `${table}/${names
    .filter((each) => each.endsWith('.parquet'))
    .sort()
    .at(index)!}`
  return { name, held: join(folder, 'lake/.files', name), shown: join(folder, 'lake', name) }
}

/** Writes into a file without changing its length. */
function overwrite(path: string, at: number, bytes: Buffer): void {
  const file = openSync(path, 'r+')
  writeSync(file, bytes, 0, bytes.length, at)
  closeSync(file)
}

/** Flips a byte of the first page, which only reading the page shows. */
function flip(path: string): void {
  const at = 40
  overwrite(path, at, Buffer.from([readFileSync(path)[at] ^ 0x40]))
}

/** Where the first compressed page begins. */
const zstdFrameOf = (path: string): number => readFileSync(path).indexOf(Buffer.from('28b52ffd', 'hex'))

const DAMAGES: Readonly<Record<string, (path: string) => void>> = {
  gone: (path) => rmSync(path),
  'cut short': (path) => truncateSync(path, Math.floor(statSync(path).size / 2)),
  'with another column': (path) =>
    overwrite(path, readFileSync(path).indexOf('known_at'), Buffer.from('knowm_at')),
  'a folder': (path) => {
    rmSync(path)
    mkdirSync(path)
  },
}

function damage(table: string, index: number, how: string): string {
  const { name, held, shown } = fileOf(table, index)
  for (const path of [held, shown]) (DAMAGES[how] ?? flip)(path)
  return name
}

const catalogued = async (sql: string): Promise<Record<string, unknown>[]> =>
  readSql(sql, `ATTACH '${join(folder, 'lake/catalog.duckdb')}' AS lake (READ_ONLY)`)
const bars = async (): Promise<number> =>
  Number((await catalogued('SELECT count(*)::INT AS n FROM lake.bars'))[0].n)
const training = async (): Promise<string[]> =>
  (await catalogued('SELECT analysis_id AS id FROM lake.training ORDER BY known_at')).map(({ id }) =>
    String(id),
  )
const verify = () => runCommand(['lake', 'verify', '--data-dir', folder])
const repair = () => runCommand(['lake', 'repair', '--data-dir', folder])

/** Checks that everything but the lost rows works: submissions reach the lake, and look-ups, exports and queries are answered. */
async function expectService(running: TestServer): Promise<void> {
  const { client, store } = running
  const answer = await submit(client, key, submission(await seedToken(client, nowMs)))
  expect(answer.status, answer.text).toBe(201)
  await store.flushLake()
  await store.compactLake()
  expect(await training()).toContain(answer.body.analysisId)
  for (const id of analyses) expect((await client.get(`/api/v1/analysis/${id}`)).status).toBe(200)
  const exported = await client.get('/api/v1/training/export?format=arrow', {
    Authorization: `Bearer ${ADMIN_KEY}`,
  })
  expect(exported.status, exported.text.slice(0, 500)).toBe(200)
  const asked = await runCommand(['sql', 'SELECT count(*) AS n FROM bars', '--data-dir', folder])
  expect(asked.code, asked.err).toBe(0)
}

it.each([
  ['cut short', -1],
  ['with another column', 0],
  ['a folder', -1],
])(
  'the server starts and reports a file of bars that is %s (file %i)',
  { tags: 'drill' },
  async (how, index) => {
    freshFolder()
    const all = await bars()
    const name = damage('bars', index, how)
    const running = await open()
    expect((await running.client.get('/health')).body).toMatchObject({
      status: 'degraded',
      store: { healthy: true, setAside: { files: 1, first: [{ path: name }] } },
    })
    await running.store.flushLake()
    expect(await bars()).toBeLessThan(all)
  },
)

it('a missing file of bars is reported by health, metrics and verify, and resolved by a repair; all else works', {
  tags: 'drill',
}, async () => {
  freshFolder()
  const all = await bars()
  const name = damage('bars', 0, 'gone')
  const running = await open()
  await expectService(running)
  const lost = all - (await bars())
  expect(lost).toBeGreaterThan(0)
  const asked = await runCommand(['sql', 'SELECT 1', '--format', 'csv', '--data-dir', folder])
  expect(asked).toMatchObject({ code: 0, out: '1\n1\n' })
  expect(asked.err).toContain(
    `1 file of the lake missing or damaged, ${lost} rows left out, among them ${name}`,
  )
  expect((await running.client.get('/health')).body).toMatchObject({
    reasons: [expect.stringContaining('mintlake lake repair')],
    store: { setAside: { files: 1, rowsLost: lost, first: [{ path: name, rowsLost: lost }] } },
  })
  const metrics = (await running.client.get('/metrics')).text
  expect(metrics).toMatch(/^mintlake_lake_files_set_aside 1$/m)
  expect(metrics).toContain(`mintlake_lake_rows_lost ${lost}\n`)
  await close()
  const found = await verify()
  expect(found.code).toBe(1)
  expect(found.out).toMatch(
    new RegExp(`\n${name}: .* set aside since .* ${lost} rows missing.*\n1 finding; `),
  )

  const repaired = await repair()
  expect(repaired.code, repaired.err).toBe(0)
  expect(repaired.out).toContain(`lost: ${lost} rows of 1 file\n`)
  const settled = await verify()
  expect(settled.code, settled.out).toBe(0)
  expect(settled.out).toContain(`note: ${name}: `)
  expect((await runCommand(['sql', 'SELECT 1', '--data-dir', folder])).err).toBe('')
  const pinned = await runCommand(['lake', 'snapshot', 'paper', '--data-dir', folder])
  expect(pinned.out).toContain(`; ${lost} rows were lost with files before: see lake_set_aside`)
  expect((await (await open()).client.get('/health')).body).toMatchObject({ status: 'ready', reasons: [] })
})

it.each(['a folder', 'flipped'])(
  'files of submissions that are %s lose only their rows: XP stays, and later submissions reach the lake',
  { tags: 'drill' },
  async (how) => {
    freshFolder()
    const names = [damage('training', 0, how), damage('xp_ledger', -1, how)]
    const running = await open()
    // Damage that only reading a file shows is found and resolved by a repair.
    const isSettled = how === 'flipped'
    if (isSettled) expect((await running.store.repairLake()).lost).toHaveLength(2)
    expect(await training()).toEqual(analyses.slice(1))
    const ranks = await running.client.get('/api/v1/agents/leaderboard')
    expect(ranks.body.data).toMatchObject([{ analyses: 2 }])
    const { body } = await running.client.get('/health')
    expect(body).toMatchObject({
      status: isSettled ? 'ready' : 'degraded',
      store: { healthy: true, setAside: { files: isSettled ? 0 : 2, rowsLost: isSettled ? 0 : 2 } },
    })
    const [lost, kept] = await Promise.all(analyses.map((id) => running.client.get(`/api/v1/analysis/${id}`)))
    expect([lost.status, kept.status]).toEqual([isSettled ? 404 : 503, 200])
    const answer = await submit(running.client, key, submission(await seedToken(running.client, nowMs)))
    expect(answer.status, answer.text).toBe(201)
    await running.store.flushLake()
    expect(await training()).toEqual([...analyses.slice(1), answer.body.analysisId])
    await close()
    const { code, out } = await verify()
    expect(code, out).toBe(isSettled ? 0 : 1)
    for (const name of names) expect(out).toContain(name)
  },
)

it('while files are lost no answer over HTTP looks whole; once that is settled none tells of it', {
  tags: 'drill',
}, async () => {
  freshFolder()
  const running = await open()
  const asked = async (path: string, sent = key) =>
    running.client.get(`/api/v1/${path}`, { Authorization: `Bearer ${sent}` })
  const catalogOf = async (table: string) =>
    (await asked(`lake/catalog?table=${table}`, ADMIN_KEY)).body.data.tables[0]
  const [{ name: file }] = (await catalogOf('training')).files
  damage('training', 0, 'gone')
  // Before anybody has noticed.
  expect((await asked(`lake/files/${file}`, ADMIN_KEY)).status).toBe(503)
  damage('xp_ledger', 0, 'gone')
  damage('outcomes', 0, 'gone')
  await running.store.compactLake()
  expect(await catalogOf('training')).toMatchObject({ rows: 1, missingFiles: 1, rowsLost: 1 })
  expect(await catalogOf('xp_ledger')).toMatchObject({ missingFiles: 1, rowsLost: 1 })
  expect(await catalogOf('rejections')).toMatchObject({ missingFiles: 0, rowsLost: 0 })
  const answer = await asked(`lake/files/${file}`, ADMIN_KEY)
  expect(answer.body).toMatchObject({ code: 'store_unavailable', error: expect.stringContaining('is lost') })
  expect((await asked(`analysis/${analyses[0]}`)).body).toMatchObject({
    code: 'store_unavailable',
    error: expect.stringMatching(/^submissions of 20\d\d-\d\d-\d\d are missing with a file of the lake/),
  })
  expect((await asked(`analysis/${analyses[1]}`)).status).toBe(200)
  const missing = async () => {
    const answers = ['analysis?agentId=me', 'calibration', 'agents/record?agentId=me'].map((path) =>
      asked(path),
    )
    return (await Promise.all(answers)).map(({ headers }) => headers.get('x-missing-files'))
  }
  expect(await missing()).toEqual(['3', '2', '3'])
  expect((await running.store.repairLake()).lost).toHaveLength(3)
  await expect.poll(missing).toEqual([null, null, null])
  expect((await asked(`analysis/${analyses[0]}`)).status).toBe(404)
  // The server hears of what is settled a little later than the lake's readers.
  await expect
    .poll(async () => (await asked(`lake/files/${file}`, ADMIN_KEY)).body.error)
    .toContain('given up as lost')
})

it('a flipped byte is found by verify, and a repair sets the file aside while the server runs', {
  tags: 'drill',
}, async () => {
  freshFolder()
  const all = await bars()
  const name = damage('bars', 0, 'flipped')
  const spawned = await spawnServer({}, folder)
  try {
    const verified = await verify()
    expect(verified.code).toBe(1)
    expect(verified.out).toMatch(new RegExp(`the server runs .*\n(note: .*\n)?${name}: `))
    const words = ['lake', 'repair', '--data-dir', folder, '--url', spawned.client.url]
    expect((await runCommand(words)).err).toContain('MINTLAKE_ADMIN_KEY is not set')
    const admin = { MINTLAKE_ADMIN_KEY: ADMIN_KEY }
    const repaired = await runCommand(words, admin)
    expect(repaired.code, repaired.err).toBe(0)
    expect(repaired.out).toContain(`${name}: has other content than was written; `)
    expect(await bars()).toBeLessThan(all)
    const health = (await spawned.client.get('/health')).body
    expect(health.status, JSON.stringify(health.reasons)).toBe('ready')
    expect((await verify()).code).toBe(0)
  } finally {
    await spawned.kill()
  }
})

it('a file that is lost while the server runs is found when it is read, or in the next compaction at the latest', {
  tags: 'drill',
}, async () => {
  freshFolder()
  const running = await open()
  const all = await bars()
  damage('bars', 0, 'gone')
  damage('training', 0, 'gone')
  await running.store.compactLake()
  expect(await bars()).toBeLessThan(all)
  expect(await training()).toEqual(analyses.slice(1))
})

it('an export that reads a damaged file fails once: the file is identified, and the next export leaves it out', {
  tags: 'drill',
}, async () => {
  freshFolder()
  const running = await open()
  const { held } = fileOf('training', 0)
  overwrite(held, 4, Buffer.alloc(400))
  const exported = () =>
    running.client.get('/api/v1/training/export?format=arrow', { Authorization: `Bearer ${ADMIN_KEY}` })
  expect((await exported()).status).toBe(503)
  await expect.poll(async () => (await exported()).status, { timeout: 20_000 }).toBe(200)
  expect((await exported()).headers.get('x-missing-files')).toBe('1')
  expect(await training()).toEqual(analyses.slice(1))
})

it.each([
  ['a page that cannot be unpacked', (path: string) => overwrite(path, zstdFrameOf(path), Buffer.alloc(4))],
  ['a page without a head', (path: string) => overwrite(path, 4, Buffer.alloc(400))],
])(
  'a query over HTTP that reads %s fails, and is not told that it is wrong: the file is set aside',
  {
    tags: 'drill',
  },
  async (_, spoil) => {
    freshFolder()
    const running = await open()
    const { name, held } = fileOf('training', 0)
    const asked = (sql: string) => running.client.post('/api/v1/query', { sql }, ADMIN_KEY)
    // An error that names a whole file is the query's own.
    expect((await asked(`SELECT error('Failed to read file "${held}"')`)).body.code).toBe('query_failed')
    spoil(held)
    expect(await asked('FROM training')).toMatchObject({ status: 503, body: { code: 'store_unavailable' } })
    await expect
      .poll(async () => (await running.client.get('/health')).body, { timeout: 20_000 })
      .toMatchObject({ status: 'degraded', store: { setAside: { files: 1, first: [{ path: name }] } } })
    const { data, meta } = (await asked('SELECT analysis_id FROM training')).body
    expect([data.rows, meta.missingFiles]).toEqual([[[analyses[1]]], 1])
  },
)

it('a file that is restored from a copy is used again', { tags: 'drill' }, async () => {
  freshFolder()
  const all = await bars()
  const { name, held } = fileOf('bars', 0)
  damage('bars', 0, 'gone')
  await open()
  expect(await bars()).toBeLessThan(all)
  await close()
  cpSync(join(whole, 'lake/.files', name), held)
  const repaired = await repair()
  expect(repaired.out).toContain('nothing is lost')
  expect(await bars()).toBe(all)
  expect((await verify()).out).toMatch(/\nnothing is wrong\n$/)
})

it('files and folders with names that the store uses stop neither the start nor the lake', {
  tags: 'drill',
}, async () => {
  freshFolder()
  writeFileSync(join(folder, 'lake/training/dt=2026-01-01'), 'a file where a folder would be')
  mkdirSync(join(folder, 'lake/.files/probe'))
  mkdirSync(join(folder, 'lake/catalog.duckdb.tmp'))
  rmSync(join(folder, 'mintlake.tmp'), { recursive: true, force: true })
  writeFileSync(join(folder, 'mintlake.tmp'), 'a file where a folder would be')
  const { client } = await open()
  const answer = await submit(client, key, submission(await seedToken(client, nowMs)))
  expect(answer.status, answer.text).toBe(201)
  await close()
  expect(await training()).toEqual([...analyses, answer.body.analysisId])
})
