// What readers of the catalog see while the lake is written, merged and expired.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { LAKE_SCHEMA_VERSION, TABLES } from '../../../src/schema/tables.ts'
import { mergeFiles } from '../../../src/store/compaction/merge-files.ts'
import { Merger } from '../../../src/store/compaction/merger.ts'
import { LAKE_TABLES, literal } from '../../../src/store/duckdb/sql.ts'
import { READER_VIEWS } from '../../../src/store/lake/catalog.ts'
import { selectNewestRows } from '../../../src/store/lake/parquet-sql.ts'
import { MERGE_FILES_MIN } from '../../../src/store/limits.ts'
import { stateLogPath, statePath } from '../../../src/store/paths.ts'
import type { Store } from '../../../src/store/store.ts'
import { clockOf } from '../../support/clock.ts'
import { NOON_MS, openTestStore, readSql, removeFolder, submission, temporaryFolder } from '../support.ts'

let folder: string
let store: Store
/** The store's clock, which decides when files are replaced and removed. */
let nowMs: number

const GRACE_MS = 1_000
/** Number of flushes while readers read. MINTLAKE_TEST_FLUSHES=360 corresponds to an hour, and takes minutes. */
const FLUSHES = Number(process.env.MINTLAKE_TEST_FLUSHES ?? 17)
const DAY_MS = 86_400_000
/** Tables of the catalog that tell about the lake. */
const INFORMATION = [
  'lake_events',
  'lake_events_lost',
  'lake_files',
  'lake_incomplete_bars',
  'lake_info',
  'lake_rewound_spans',
  'lake_set_aside',
]

beforeEach(async () => {
  folder = temporaryFolder()
  nowMs = NOON_MS
  store = await openTestStore(folder, {
    clock: clockOf(() => nowMs),
    lakeTidy: { everyMs: 0, graceMs: GRACE_MS },
  })
})
afterEach(async () => {
  await store.close()
  removeFolder(folder)
})

const catalogPath = () => join(folder, 'lake', 'catalog.duckdb')
const attach = () => `ATTACH ${literal(catalogPath())} AS lake (READ_ONLY)`
const read = (sql: string) => readSql(sql, attach())
const held = () =>
  readdirSync(join(folder, 'lake/.files/training'), { recursive: true }).filter((name) =>
    String(name).endsWith('.parquet'),
  )

async function flushEach(count: number, from = 0): Promise<void> {
  for (let i = from; i < from + count; i++) {
    await store.commit(submission(`an_${i}`, { submitted_at: NOON_MS - (i % 2) * DAY_MS }))
    await store.flushLake()
  }
}

test('an empty lake has a typed, commented view of every table', async () => {
  for (const table of LAKE_TABLES) {
    const columns = await read(`DESCRIBE lake.${table.name}`)
    expect(columns.map((column) => [column.column_name, column.column_type])).toEqual(
      table.columns.map((column) => [column.name, column.type]),
    )
    expect(await read(`FROM lake.${table.name}`)).toEqual([])
  }
  const comments = await read(
    `SELECT comment FROM duckdb_columns() WHERE table_name = 'training' ORDER BY column_index`,
  )
  expect(comments.map(({ comment }) => comment)).toEqual(
    TABLES.training.columns.map(({ comment }) => comment),
  )
})

test('labelled has the columns of training and outcomes once each, with comments, and rows without labels too', async () => {
  await flushEach(1)
  const columns = (await read('DESCRIBE lake.labelled')).map(({ column_name }) => String(column_name))
  const expected = [...TABLES.training.columns, ...TABLES.outcomes.columns].map(({ name }) => name)
  expect(columns.toSorted()).toEqual([...new Set([...expected, 'labels_known_at'])].toSorted())
  expect(await read('SELECT analysis_id, labelled_to, labels_known_at FROM lake.labelled')).toEqual([
    { analysis_id: 'an_0', labelled_to: null, labels_known_at: null },
  ])
  const [{ commented }] = await read(
    `SELECT count(comment)::INT AS commented FROM duckdb_columns() WHERE table_name = 'labelled'`,
  )
  expect(commented).toBe(columns.length)
})

test('a lake with rows has the same views, under whatever name it is attached', async () => {
  const described = (name: string) =>
    readSql(`DESCRIBE ${name}.training`, attach().replace('lake (', `${name} (`))
  const empty = await described('lake')
  await flushEach(2)
  expect(await described('research')).toEqual(empty)
  expect(await readSql('SHOW TABLES', `${attach()}; USE lake`)).toEqual(
    [...INFORMATION, ...READER_VIEWS].toSorted().map((name) => ({ name })),
  )
  const inMain = `FROM duckdb_columns() WHERE database_name = 'lake' AND schema_name = 'main' AND table_name NOT LIKE 'lake_%'`
  expect(await read(`SELECT column_name ${inMain} AND comment IS NULL`)).toEqual([])
})

test('readers in a loop see no error, no duplicate and no missing row while files are merged and deleted', {
  tags: 'drill',
  timeout: 3_600 * FLUSHES,
}, async () => {
  const rounds = FLUSHES
  const perRound = 5
  let flushed = 0
  let done = false
  let queries = 0
  async function readInLoop(): Promise<void> {
    let seen = 0
    while (!done) {
      const atLeast = flushed
      const [row] = await read(
        `SELECT count(*)::INT AS rows, count(DISTINCT analysis_id)::INT AS ids, (SELECT count(*)::INT FROM lake.xp_ledger) AS awards
         FROM lake.training`,
      )
      expect(row.ids).toBe(row.rows)
      expect(row.awards).toBe(row.rows)
      expect(row.rows).toBeGreaterThanOrEqual(Math.max(atLeast, seen))
      seen = Number(row.rows)
      queries++
    }
  }
  async function write(): Promise<void> {
    try {
      for (let round = 0; round < rounds; round++) {
        const at = NOON_MS - (round % 2) * DAY_MS
        await Promise.all(
          Array.from({ length: perRound }, (_, i) =>
            store.commit(submission(`an_${round}_${i}`, { submitted_at: at })),
          ),
        )
        await store.flushLake()
        flushed += perRound
        nowMs += GRACE_MS / 4
        await store.compactLake()
      }
    } finally {
      done = true
    }
  }
  await Promise.all([write(), readInLoop(), readInLoop()])
  expect(queries).toBeGreaterThan(rounds)
  expect(flushed).toBe(rounds * perRound)
})

test('a reader can use the files of its catalog until the grace period is over', {
  tags: 'drill',
  timeout: 30_000,
}, async () => {
  await flushEach(MERGE_FILES_MIN * 2)
  const instance = await DuckDBInstance.create(':memory:')
  const reader: DuckDBConnection = await instance.connect()
  try {
    await reader.run(attach())
    const count = async () =>
      (
        await (
          await reader.run('SELECT count(DISTINCT analysis_id)::INT AS n FROM lake.training')
        ).getRowObjectsJS()
      )[0].n
    expect(await store.compactLake()).toMatchObject({ merged: expect.any(Number), removed: 0 })
    expect(await count()).toBe(MERGE_FILES_MIN * 2)
    nowMs += GRACE_MS - 1
    expect(await store.compactLake()).toEqual({ merged: 0, removed: 0 })
    expect(await count()).toBe(MERGE_FILES_MIN * 2)
    nowMs += 1
    expect((await store.compactLake()).removed).toBe(MERGE_FILES_MIN * 4)
    await expect(count()).rejects.toThrow(/No files found|IO Error/)
  } finally {
    reader.closeSync()
    instance.closeSync()
  }
  expect(await read('SELECT count(*)::INT AS n FROM lake.training')).toEqual([{ n: MERGE_FILES_MIN * 2 }])
})

test('the glob matches merged files only, while replaced ones are kept elsewhere', {
  tags: 'drill',
  timeout: 30_000,
}, async () => {
  await flushEach(MERGE_FILES_MIN * 2)
  await store.compactLake()
  expect(held()).toHaveLength(MERGE_FILES_MIN * 2 + 2)
  const glob = await readSql(
    `SELECT count(*)::INT AS n, count(DISTINCT filename)::INT AS files
     FROM read_parquet('${folder}/lake/training/*/*.parquet', filename = true)`,
  )
  expect(glob).toEqual([{ n: MERGE_FILES_MIN * 2, files: 2 }])
  nowMs += GRACE_MS
  await store.compactLake()
  expect(held()).toHaveLength(2)
})

test('a merged file is sorted by mint and time, zstd-compressed, with the schema of its table', {
  tags: 'drill',
  timeout: 30_000,
}, async () => {
  for (let i = 0; i < MERGE_FILES_MIN; i++) {
    await store.commit(submission(`an_${i}`, { mint: `M${(i * 5) % 8}`, submitted_at: NOON_MS + i }))
    await store.flushLake()
  }
  await store.compactLake()
  const [{ path }] = await read(`SELECT path FROM lake.lake_files WHERE table_name = 'training'`)
  const rows = await readSql(`SELECT mint FROM '${path}'`)
  expect(rows.map(({ mint }) => mint)).toEqual(rows.map(({ mint }) => mint).sort())
  const columns = await readSql(`DESCRIBE SELECT * FROM read_parquet('${path}', hive_partitioning=false)`)
  expect(columns.map((column) => column.column_name)).toEqual(TABLES.training.columns.map(({ name }) => name))
  expect(await readSql(`SELECT DISTINCT compression FROM parquet_metadata('${path}')`)).toEqual([
    { compression: 'ZSTD' },
  ])
})

test('the catalog of a moved folder is corrected when the server starts there', async () => {
  await flushEach(1)
  await store.close()
  const moved = temporaryFolder()
  removeFolder(moved)
  renameSync(folder, moved)
  folder = moved
  store = await openTestStore(folder)
  expect(await read('SELECT analysis_id FROM lake.training')).toEqual([{ analysis_id: 'an_0' }])
})

test('the catalog is replaced, not written in place: a process that holds it open for writing blocks nobody', async () => {
  await flushEach(1)
  const before = statSync(catalogPath()).ino
  const instance = await DuckDBInstance.create(catalogPath())
  try {
    await flushEach(1, 1)
    expect(statSync(catalogPath()).ino).not.toBe(before)
    expect(await read('SELECT count(*)::INT AS n FROM lake.training')).toEqual([{ n: 2 }])
  } finally {
    instance.closeSync()
  }
})

/** Opens the catalog as DuckDB does unless it is told READ_ONLY. What it leaves when it is closed is what a kill would leave. */
async function openForWriting(): Promise<{ run(sql: string): Promise<unknown>; leave(): void }> {
  const instance = await DuckDBInstance.create(catalogPath())
  const connection = await instance.connect()
  await connection.run('PRAGMA disable_checkpoint_on_shutdown')
  return {
    run: (sql) => connection.run(sql),
    leave: () => {
      connection.closeSync()
      instance.closeSync()
    },
  }
}
const outsideLog = () => `${catalogPath()}.wal`
const LIMITED = 'CREATE OR REPLACE VIEW training AS SELECT * FROM lake_rows.training_rows LIMIT 1'

test('what a killed process wrote to the catalog is gone with the next one', async () => {
  await flushEach(2)
  const outside = await openForWriting()
  await outside.run(LIMITED)
  outside.leave()
  expect(existsSync(outsideLog())).toBe(true)
  await flushEach(1, 2)
  expect(await read('SELECT count(*)::INT AS n FROM lake.training')).toEqual([{ n: 3 }])
  expect(existsSync(outsideLog())).toBe(false)
})

test('what a process writes to a catalog that was replaced spoils only the present one', async () => {
  await flushEach(1)
  const outside = await openForWriting()
  await outside.run('CREATE TABLE features AS SELECT range AS k FROM range(1000)')
  await flushEach(1, 1)
  await outside.run('CHECKPOINT')
  await outside.run('INSERT INTO features SELECT range FROM range(10)')
  await expect(read('FROM lake.training')).rejects.toThrow('replaying WAL')
  await flushEach(1, 2)
  expect(await read('SELECT count(*)::INT AS n FROM lake.training')).toEqual([{ n: 3 }])
  await outside.run('INSERT INTO features SELECT range FROM range(10)')
  outside.leave()
  expect(await read('SELECT count(*)::INT AS n FROM lake.training')).toEqual([{ n: 3 }])
})

test('a lost state is made anew from the catalog, whatever a process has left beside it', async () => {
  await flushEach(2)
  await store.close()
  const outside = await openForWriting()
  await outside.run(`DELETE FROM lake_files WHERE table_name = 'training'`)
  outside.leave()
  for (const path of [statePath(folder), stateLogPath(folder)]) rmSync(path, { force: true })
  store = await openTestStore(folder)
  expect(await read('SELECT count(*)::INT AS n FROM lake.training')).toEqual([{ n: 2 }])
})

test('nobody but an administrator can open the catalog for writing', async () => {
  await flushEach(1)
  expect(statSync(catalogPath()).mode & 0o222).toBe(0)
})

test('files of an older schema read as NULL in the columns they lack, alone, with others and after a merge', async () => {
  const table = LAKE_TABLES.find(({ name }) => name === 'xp_ledger')!
  const old = join(folder, 'old.parquet')
  const young = join(folder, 'young.parquet')
  const row = `'x' AS entry_id, 'a' AS agent_id, TIMESTAMP '2025-06-01' AS awarded_at, 'trade' AS kind, 1.5 AS xp`
  await readSql(
    `COPY (SELECT ${row}, NULL::VARCHAR AS analysis_id, 1 AS schema_version) TO '${old}' (FORMAT parquet)`,
  )
  await readSql(
    `COPY (SELECT ${row}, NULL::VARCHAR AS analysis_id, 'word' AS note, 2 AS schema_version) TO '${young}' (FORMAT parquet)`,
  )
  const older = { path: old, schemaVersion: LAKE_SCHEMA_VERSION - 1 }
  const newer = { path: young, schemaVersion: LAKE_SCHEMA_VERSION }
  expect(await readSql(selectNewestRows(table, [older]))).toMatchObject([{ note: null }])
  expect(await readSql(`${selectNewestRows(table, [older, newer])} ORDER BY schema_version`)).toMatchObject([
    { note: null },
    { note: 'word' },
  ])
  const part = (first: number, { schemaVersion }: typeof older) => ({
    ...{
      table: 'xp_ledger',
      date: '2025-06-01',
      first,
      last: first,
      rows: 1,
      bytes: 1,
      sha256: null,
      writtenAtMs: 0,
    },
    schemaVersion,
  })
  const paths = new Map([
    [1, old],
    [2, young],
  ])
  const merger = new Merger()
  const lake = {
    dataDir: folder,
    failpoint: () => {},
    pathOf: ({ first, last }: { first: number; last: number }) =>
      first === last ? paths.get(first)! : join(folder, 'merged', 'both.parquet'),
  }
  const merged = await mergeFiles(lake, merger, table, [part(1, older), part(2, newer)])
  await merger.close()
  expect(merged.rows).toBe(2)
  expect(await readSql(`SELECT note FROM '${folder}/merged/both.parquet' ORDER BY schema_version`)).toEqual([
    { note: null },
    { note: 'word' },
  ])
})

test('a table whose merge fails does not keep the others from being merged', { tags: 'drill' }, async () => {
  await flushEach(MERGE_FILES_MIN * 2)
  // A folder with the name of the merged file of the first date.
  const ofDate = held().map(String).sort().slice(0, MERGE_FILES_MIN)
  const last = ofDate.at(-1)!.slice(-'000000000000001.parquet'.length)
  mkdirSync(join(folder, 'lake/.files/training', `${ofDate[0].slice(0, -last.length)}${last}.tmp`))
  await expect(store.compactLake()).rejects.toThrow(/directory/i)
  const [ledger] = await read(
    'SELECT count(*)::INT AS rows, (SELECT count(*)::INT FROM lake.lake_files ' +
      `WHERE table_name = 'xp_ledger') AS files FROM lake.xp_ledger`,
  )
  expect(ledger).toEqual({ rows: MERGE_FILES_MIN * 2, files: 2 })
})
