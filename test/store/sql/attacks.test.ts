// SQL that tries to leave the lake: to read or write other files, to change the configuration, to reach another machine.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type LakeReader, openLakeReader } from '../../../src/store/query/lake-reader.ts'
import type { Plain } from '../../../src/store/query/plain-value.ts'
import { makeSampleFolder } from '../../../src/store/query/sample-lake.ts'
import { removeFolder, temporaryFolder } from '../support.ts'

const SECRET = 'the-secret-of-this-test'

let sample: Awaited<ReturnType<typeof makeSampleFolder>>
/** Outside of the lake. */
let outside: string
let reader: LakeReader
let lake: string
/** A file that the catalog lists. */
let file: string
let before: string[]

/** Every name of the lake with its size. */
const listLake = (): string[] =>
  readdirSync(lake, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .map((name) => `${name} ${statSync(join(lake, name)).size}`)

beforeAll(async () => {
  sample = await makeSampleFolder()
  outside = temporaryFolder()
  lake = join(sample.dataDir, 'lake')
  for (const folder of [outside, sample.dataDir]) writeFileSync(join(folder, 'secret.csv'), `a\n${SECRET}\n`)
  mkdirSync(join(sample.dataDir, 'lake-2'))
  writeFileSync(join(sample.dataDir, 'lake-2', 'secret.csv'), SECRET)
  symlinkSync(outside, join(lake, 'link'))
  symlinkSync(join(outside, 'secret.csv'), join(lake, 'link.csv'))
  before = listLake()
  reader = await openLakeReader({ dataDir: sample.dataDir })
  file = `${(await rowsOf('SELECT path FROM lake_files ORDER BY path LIMIT 1'))[0][0]}`
})
afterAll(async () => {
  reader.close()
  removeFolder(outside)
  await sample.remove()
})

async function rowsOf(sql: string): Promise<Plain[][]> {
  const rows: Plain[][] = []
  for await (const batch of (await reader.query(sql)).batches) rows.push(...batch)
  return rows
}

/** SQL with the names of folders and of a file of the lake in place of words in braces. */
const placed = (sql: string): string =>
  sql
    .replaceAll('{file}', file)
    .replaceAll('{lake}', lake)
    .replaceAll('{data}', sample.dataDir)
    .replaceAll('{out}', outside)

const READS = [
  `SELECT * FROM read_csv('{out}/secret.csv')`,
  `SELECT * FROM '{out}/secret.csv'`,
  `FROM read_text('{out}/secret.csv')`,
  `FROM read_blob('{out}/secret.csv')`,
  `FROM read_json('{out}/secret.csv')`,
  `FROM read_parquet('{out}/secret.csv')`,
  `FROM parquet_metadata('{out}/secret.csv')`,
  `FROM sniff_csv('{out}/secret.csv')`,
  `FROM read_duckdb('{data}/state.duckdb')`,
  `FROM query_table('{out}/secret.csv')`,
  `FROM query('FROM read_text(''{out}/secret.csv'')')`,
  `FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''{out}/secret.csv'')'))`,
  `SELECT (SELECT content FROM read_text('{out}/secret.csv')) FROM training`,
  `FROM read_text(['{lake}/README.md', '{out}/secret.csv'])`,
  `FROM read_text('{lake}/../secret.csv')`,
  `FROM read_text('{lake}/./../lake/../secret.csv')`,
  `FROM read_text('{data}/lake-2/secret.csv')`,
  `FROM read_text('{data}/lake-2/../secret.csv')`,
  `FROM read_text('{data}/secret.csv')`,
  `FROM read_text('file://{out}/secret.csv')`,
  `FROM read_text('secret.csv')`,
  `FROM read_text('{lake}/README.md')`,
  `FROM glob('{lake}/*')`,
  `FROM glob('{out}/*')`,
  `FROM glob('{lake}/../*')`,
  `FROM glob('/proc/self/*')`,
  `FROM read_text('/etc/passwd')`,
  `FROM read_text('/proc/self/environ')`,
  `FROM read_text('/proc/self/cwd/package.json')`,
  `FROM read_csv('http://127.0.0.1:9/x.csv')`,
  `FROM read_csv('s3://bucket/x.csv')`,
  `SELECT getenv('HOME')`,
  `FROM load_aws_credentials()`,
]

const WRITES = [
  `COPY (SELECT 1) TO '{out}/made.csv'`,
  `COPY (SELECT 1) TO '{lake}/made.csv'`,
  `COPY (SELECT 1) TO '{out}/made' (FORMAT parquet)`,
  `COPY training TO '{out}/made.parquet' (FORMAT parquet, PARTITION_BY mint)`,
  `EXPLAIN ANALYZE COPY (SELECT 1) TO '{lake}/made.csv'`,
  `EXPLAIN COPY (SELECT 1) TO '{lake}/made.csv'`,
  `SELECT 1; COPY (SELECT 1) TO '{lake}/made.csv'`,
  `SELECT 1; EXPLAIN ANALYZE COPY (SELECT 1) TO '{lake}/made.csv'`,
  `EXPORT DATABASE '{out}/made'`,
  `EXPORT DATABASE '{lake}/made'`,
  `EXPORT DATABASE '{lake}/training/made'`,
  `EXPORT DATABASE '{file}'`,
  `EXPORT DATABASE '{lake}/catalog.duckdb'`,
  `EXPORT DATABASE '{lake}/catalog.duckdb.wal'`,
  `COPY (SELECT 1) TO '{lake}/catalog.duckdb.wal'`,
  `COPY (SELECT 1) TO '{lake}/catalog.duckdb'`,
  `COPY (SELECT 1) TO '{file}'`,
  `COPY (SELECT 1) TO '{file}' (OVERWRITE_OR_IGNORE)`,
  `EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'`,
  `IMPORT DATABASE '{out}/made'`,
  `ATTACH '{out}/made.duckdb'`,
  `ATTACH '{lake}/made.duckdb'`,
  `ATTACH '{lake}/catalog.duckdb' AS again`,
  `ATTACH ':memory:' AS other`,
  `DETACH lake`,
  `CREATE TABLE lake.made AS SELECT 1`,
  `CREATE OR REPLACE VIEW lake.training AS SELECT 1`,
  `CREATE SECRET s (TYPE s3)`,
  `CREATE PERSISTENT SECRET s (TYPE s3)`,
  `INSERT INTO lake.lake_info SELECT * FROM lake.lake_info`,
  `WITH x AS (SELECT 1) INSERT INTO lake.lake_info SELECT * FROM lake.lake_info`,
  `DELETE FROM lake.lake_files`,
  `UPDATE lake.lake_files SET path = ''`,
  `DROP VIEW lake.training`,
  `ALTER VIEW lake.training RENAME TO made`,
  `INSTALL httpfs`,
  `LOAD httpfs`,
  `LOAD '{out}/secret.csv'`,
  `CHECKPOINT lake`,
  `VACUUM`,
  `BEGIN`,
  `PREPARE p AS SELECT 1`,
  `CALL pragma_version()`,
]

const SETTINGS = [
  `SET memory_limit = '100GB'`,
  `SET GLOBAL memory_limit = '100GB'`,
  `RESET memory_limit`,
  `SET threads = 64`,
  `SET enable_external_access = true`,
  `SET allowed_directories = ['/']`,
  `SET allowed_paths = ['/etc/passwd']`,
  `SET temp_directory = '{out}'`,
  `SET max_temp_directory_size = '100GB'`,
  `SET lock_configuration = false`,
  `SET autoload_known_extensions = true`,
  `SET custom_extension_repository = 'http://127.0.0.1:9'`,
  `SET log_query_path = '{out}/made.log'`,
  `SET secret_directory = '{out}'`,
  `PRAGMA memory_limit = '100GB'`,
  `PRAGMA enable_profiling; SET profiling_output = '{out}/made.json'`,
  `PRAGMA temp_directory = '{out}'`,
  `CALL enable_logging(storage = 'file', storage_path = '{out}')`,
]

describe('a query cannot', () => {
  it.each(READS)('read elsewhere: %s', async (sql) => {
    await expect(rowsOf(placed(sql))).rejects.toMatchObject({ code: 'invalid' })
  })

  it('read through a link out of the lake', async () => {
    for (const path of ['link/secret.csv', 'link.csv']) {
      const rows = await rowsOf(`FROM read_text('${lake}/${path}')`).catch(() => [])
      expect(JSON.stringify(rows)).not.toContain(SECRET)
    }
  })

  it.each(WRITES)('write: %s', async (sql) => {
    await expect(rowsOf(placed(sql))).rejects.toMatchObject({ code: 'invalid' })
  })

  it.each(SETTINGS)('change the configuration: %s', async (sql) => {
    await expect(rowsOf(placed(sql))).rejects.toMatchObject({ code: 'invalid' })
  })

  it('leave anything behind', async () => {
    expect(listLake()).toEqual(before)
    expect(readdirSync(outside)).toEqual(['secret.csv'])
    expect(existsSync('made.csv')).toBe(false)
    expect(readFileSync(join(outside, 'secret.csv'), 'utf8')).toContain(SECRET)
    // The reader still works, on the lake that it was opened on.
    expect(await rowsOf('SELECT count(*) > 0 FROM lake.training')).toEqual([[true]])
    expect(await rowsOf(`SELECT value FROM duckdb_settings() WHERE name = 'enable_external_access'`)).toEqual(
      [['false']],
    )
  })
})

it('a query with a NUL, behind which DuckDB would read nothing, is refused', async () => {
  await expect(rowsOf('SELECT 1 AS one -- \0\nWHERE false')).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining('NUL'),
  })
})

it('temporary tables, macros and variables stay within the reader', async () => {
  const sql = `SET VARIABLE least = 2; CREATE TEMP TABLE t AS SELECT unnest([1, 2, 3]) AS n;
    CREATE TEMP MACRO twice(x) AS 2 * x; SELECT twice(n) FROM t WHERE n >= getvariable('least')`
  expect(await rowsOf(sql)).toEqual([[4], [6]])
  expect(
    (await rowsOf('PIVOT (SELECT sentiment FROM training) ON sentiment USING count(*)')).length,
  ).toBeGreaterThan(0)
  expect(listLake()).toEqual(before)
})
