// Each durable row is in the lake once, in the documented form.
import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { LAKE_SCHEMA_VERSION, TABLES } from '../../../src/schema/tables.ts'
import { relativePath } from '../../../src/store/lake/lake-files.ts'
import type { Store } from '../../../src/store/store.ts'
import { clockOf } from '../../support/clock.ts'
import {
  lakeGlob,
  NOON_MS,
  openTestStore,
  readSql,
  removeFolder,
  submission,
  temporaryFolder,
  writeOf,
} from '../support.ts'

const DAY_MS = 24 * 3_600_000
const CHILD = fileURLToPath(new URL('./reader.child.ts', import.meta.url))

let folder: string
let store: Store

beforeEach(async () => {
  folder = temporaryFolder()
  store = await openTestStore(folder)
})
afterEach(async () => {
  await store.close()
  removeFolder(folder)
})

const files = (table: string): string[] =>
  readdirSync(join(folder, 'lake', table), { recursive: true })
    .map(String)
    .filter((name) => name.includes('part-'))
    .sort()

const lakeIds = async (): Promise<string[]> =>
  (await readSql(`SELECT analysis_id AS id FROM ${lakeGlob(folder, 'training')} ORDER BY ALL`)).map((row) =>
    String(row.id),
  )

async function readElsewhere(sql: string): Promise<Record<string, unknown>[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [CHILD, sql], { timeout: 20_000 })
  return JSON.parse(stdout)
}

test('another process reads accepted submissions while the server runs', async () => {
  await store.commit(submission('an_1', { price_usd: 4.5e-9, liquidity: null }))
  await store.flushLake()
  await store.commit(submission('an_2'))
  const rows = await readElsewhere(
    `SELECT analysis_id, price_usd, liquidity, dt::VARCHAR AS dt, submitted_at::VARCHAR AS at, risk_factors, schema_version
     FROM ${lakeGlob(folder, 'training')}`,
  )
  expect(rows).toEqual([
    {
      analysis_id: 'an_1',
      price_usd: 4.5e-9,
      liquidity: null,
      dt: '2025-06-01',
      at: '2025-06-01 12:00:00',
      risk_factors: ['whale_dominance', 'new_deployer'],
      schema_version: LAKE_SCHEMA_VERSION,
    },
  ])
})

test('rows are partitioned by UTC date, sorted by mint and time, and no row is written twice', async () => {
  const midnight = NOON_MS + DAY_MS / 2
  await store.commit(submission('an_1', { mint: 'B', submitted_at: midnight - 1 }))
  await store.commit(submission('an_2', { mint: 'B', submitted_at: midnight }))
  await store.commit(submission('an_3', { mint: 'A', submitted_at: midnight + 1 }))
  await store.commit(submission('an_4', { mint: 'B', submitted_at: midnight - 2 }))
  await store.flushLake()
  await store.flushLake()
  await store.commit(submission('an_5'))
  await Promise.all([store.flushLake(), store.flushLake()])
  expect(files('training').map((name) => name.slice(0, 13))).toEqual([
    'dt=2025-06-01',
    'dt=2025-06-01',
    'dt=2025-06-02',
  ])
  const first = join(folder, 'lake/training', files('training')[0])
  expect((await readSql(`SELECT analysis_id AS id FROM '${first}'`)).map((row) => row.id)).toEqual([
    'an_4',
    'an_1',
  ])
  expect(await lakeIds()).toEqual(['an_1', 'an_2', 'an_3', 'an_4', 'an_5'])
})

test('every file of a table has the same schema, zstd pages and no column named dt', async () => {
  await store.commit([
    ...submission('an_1'),
    writeOf('rejections'),
    writeOf('xp_ledger', { awarded_at: NOON_MS + DAY_MS, analysis_id: null, note: null }),
  ])
  await store.flushLake()
  for (const table of [TABLES.training, TABLES.rejections, TABLES.xp_ledger]) {
    for (const file of files(table.name)) {
      const path = join(folder, 'lake', table.name, file)
      const columns = await readSql(`DESCRIBE SELECT * FROM read_parquet('${path}', hive_partitioning=false)`)
      expect(columns.map((column) => [column.column_name, column.column_type])).toEqual(
        table.columns.map((column) => [column.name, column.type]),
      )
      const pages = await readSql(`SELECT DISTINCT compression FROM parquet_metadata('${path}')`)
      expect(pages).toEqual([{ compression: 'ZSTD' }])
    }
  }
})

test('volatile and private tables never reach the lake', async () => {
  await store.commit([writeOf('agent_keys'), writeOf('idempotency'), ...submission('an_1')])
  await store.flushLake()
  const tables = Object.values(TABLES).filter(({ lakeDateColumn }) => lakeDateColumn !== null)
  expect(readdirSync(join(folder, 'lake')).sort()).toEqual(
    ['.files', 'catalog.duckdb', ...tables.map(({ name }) => name)].sort(),
  )
  expect(readdirSync(join(folder, 'lake'))).not.toContain('agent_keys')
})

test('rows are written to the lake after the flush interval and at close', async () => {
  await store.close()
  store = await openTestStore(folder, { lakeFlushMs: 20 })
  await store.commit(submission('an_1'))
  await expect.poll(async () => (await store.status()).lake[0].rows, { timeout: 10_000 }).toBe(1)
  await store.commit(submission('an_2'))
  await store.close()
  expect(await lakeIds()).toEqual(['an_1', 'an_2'])
})

test('commits go on while the lake is written', async () => {
  let now = NOON_MS
  await store.close()
  store = await openTestStore(folder, { clock: clockOf(() => now++) })
  for (let round = 0; round < 3; round++) {
    const flushing = store.flushLake()
    await Promise.all(Array.from({ length: 100 }, (_, i) => store.commit(submission(`an_${round}_${i}`))))
    await flushing
  }
  await store.flushLake()
  expect(new Set(await lakeIds()).size).toBe(300)
  expect(await lakeIds()).toHaveLength(300)
})

test('a file of an interrupted flush is deleted, and its rows are written again from the log', async () => {
  await store.commit(submission('an_1'))
  await store.flushLake()
  await store.commit(submission('an_2'))
  await store.close()
  const [first] = files('training')
  const unlisted = relativePath({ table: 'training', date: '2025-06-01', first: 900, last: 950 })
  const place = join(folder, 'lake/.files', unlisted)
  copyFileSync(join(folder, 'lake/training', first), place)
  store = await openTestStore(folder)
  expect(await lakeIds()).toEqual(['an_1', 'an_2'])
  expect(existsSync(place)).toBe(false)
})

test('half-written files are deleted at the start, files of others are kept', async () => {
  await store.commit(submission('an_1'))
  await store.flushLake()
  const date = join(folder, 'lake/training/dt=2025-06-01')
  const orphan = relativePath({ table: 'training', date: '2025-06-01', first: 900, last: 950 })
  await store.close()
  renameSync(join(folder, 'lake/training', files('training')[0]), join(folder, 'lake', orphan))
  writeFileSync(join(date, 'part-000000000000001-000000000000009.parquet.tmp'), 'half')
  writeFileSync(join(date, 'notes.parquet'), 'mine')
  store = await openTestStore(folder)
  expect(readdirSync(date).sort()).toEqual(['notes.parquet', 'part-000000000000001-000000000000001.parquet'])
})
