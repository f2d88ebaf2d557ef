// Every query of the dataset card returns what the card shows, and files of every schema version can be read by the current code.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { outputOf, recipesOf } from '../scripts/cookbook.ts'
import { openSample } from '../scripts/sample/lake.ts'
import { runSample } from '../scripts/sample/run.ts'
import { LAKE_SCHEMA_VERSION } from '../src/schema/tables.ts'
import { HORIZON_NAMES } from '../src/schema/vocabulary.ts'
import { identifier, LAKE_TABLES, type LakeTable, literal } from '../src/store/duckdb/sql.ts'
import { selectNewestRows } from '../src/store/lake/parquet-sql.ts'
import { type LakeReader, withLakeReader } from '../src/store/query/lake-reader.ts'
import { sampleFolder } from '../src/store/query/sample-lake.ts'
import { verifyLake } from '../src/store/verify/verify.ts'
import { readSql, removeFolder, temporaryFolder } from './store/support.ts'

const ROOT = new URL('..', import.meta.url).pathname
const SAMPLE_BYTES_MAX = 3_500_000
const RECIPES_MIN = 12
const DAY_MS = 86_400_000
const card = readFileSync(join(ROOT, 'data/README.md'), 'utf8')
const recipes = recipesOf(card)

let sample: { dataDir: string; reader: LakeReader; close(): Promise<void> }
beforeAll(async () => {
  sample = await openSample()
})
afterAll(() => sample.close())

const VERSIONS = Array.from({ length: LAKE_SCHEMA_VERSION }, (_, index) => index + 1)
const tableOf = (name: string): LakeTable => LAKE_TABLES.find((table) => table.name === name)!
/** The Parquet files in a table's folder. */
const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.parquet'))
    .map((name) => join(folder, name))
/** The tables of a version with their files. Tables added later have none. */
const tablesOf = (version: number): [string, string[]][] =>
  readdirSync(sampleFolder(version), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => [name, filesIn(join(sampleFolder(version), name))])
const TABLES_OF_VERSIONS = VERSIONS.flatMap((version) =>
  tablesOf(version).map(([name, files]) => ({ version, name, files })),
)
const isNewest = ({ version }: { version: number }): boolean => version === LAKE_SCHEMA_VERSION
/** SQL that reads files as they are, without the code's schema. */
const rawOf = (files: readonly string[]): string =>
  `read_parquet([${files.map(literal).join(', ')}], hive_partitioning = false)`
const columnsOf = async (files: readonly string[]): Promise<[string, string][]> =>
  (await readSql(`DESCRIBE FROM ${rawOf(files)}`)).map(({ column_name, column_type }) => [
    String(column_name),
    String(column_type),
  ])

describe('the cookbook', () => {
  it('has at least the minimum of recipes, each with its own query and its output', () => {
    expect(recipes.length).toBeGreaterThanOrEqual(RECIPES_MIN)
    expect(new Set(recipes.map(({ sql }) => sql)).size).toBe(recipes.length)
    const cookbook = card.slice(card.indexOf('## Cookbook'))
    expect(cookbook.match(/```sql/g)).toHaveLength(recipes.length)
    for (const { output } of recipes) expect(output).toMatch(/^┌[\s\S]*\d+ rows?\n$/)
  })

  it.each(recipes)('answers as the card shows: $title', async ({ sql, output }) => {
    expect(await outputOf(sample.reader, sql)).toBe(output)
  })

  it.each(recipes.filter(({ sql }) => sql.startsWith('SET VARIABLE horizon')))(
    'takes every horizon: $title',
    async ({ sql }) => {
      for (const name of HORIZON_NAMES) {
        const asked = sql.replace(/(?<=horizon = ')\w+/, name)
        expect(await outputOf(sample.reader, asked)).toMatch(/\n[1-9]\d* rows?\n$/)
      }
    },
  )

  it('gives the same answers over the views of the sample', async () => {
    const instance = await DuckDBInstance.create(':memory:', { threads: '2' })
    const connection = await instance.connect()
    const query = async (reader: typeof connection, sql: string) => {
      const statements = await reader.extractStatements(sql)
      for (let index = 0; index < statements.count - 1; index++) await (await statements.prepare(index)).run()
      return (await (await statements.prepare(statements.count - 1)).run()).getRowsJson()
    }
    try {
      await connection.run(
        readFileSync(join(sampleFolder(), 'views.sql'), 'utf8').replaceAll("['data/", `['${ROOT}data/`),
      )
      for (const { sql } of recipes)
        expect(await query(connection, sql)).toEqual(await query(sample.reader.connection, sql))
    } finally {
      connection.closeSync()
      instance.closeSync()
    }
  })
})

it.each(['README.md', 'data/README.md'])('the query of the lake that %s shows works', async (file) => {
  const text = readFileSync(join(ROOT, file), 'utf8')
  const [, sql] = /```sql\n((?:(?!```)[\s\S])*ATTACH(?:(?!```)[\s\S])*)```/.exec(text)!
  const rows = await readSql(sql.replace("'data/", `'${sample.dataDir}/`))
  expect(rows.length).toBeGreaterThan(0)
})

describe('the samples', () => {
  it.each(VERSIONS)('of schema version %i are unchanged and small', (version) => {
    const folder = sampleFolder(version)
    const sums = readFileSync(join(folder, 'SHA256SUMS'), 'utf8').trimEnd().split('\n')
    const paths = sums.map((line) => join(folder, line.slice(66)))
    expect(paths.sort()).toEqual(
      tablesOf(version)
        .flatMap(([, files]) => files)
        .sort(),
    )
    for (const line of sums) {
      const bytes = readFileSync(join(folder, line.slice(66)))
      expect(createHash('sha256').update(bytes).digest('hex')).toBe(line.slice(0, 64))
    }
    const bytes = paths.reduce((sum, path) => sum + statSync(path).size, 0)
    expect(bytes).toBeLessThan(SAMPLE_BYTES_MAX)
  })

  it.each(VERSIONS)('of schema version %i have tables that all still exist', (version) => {
    const names = tablesOf(version).map(([name]) => name)
    const recorded = version < 3 ? [] : ['events', 'trades']
    expect(names).toEqual(
      ['bars', 'outcomes', 'rejections', 'tokens', 'training', 'xp_ledger', ...recorded].sort(),
    )
    for (const name of names) expect(tableOf(name)).toBeDefined()
  })

  it.each(TABLES_OF_VERSIONS)(
    'of schema version $version have rows of $name, whose columns were not renamed, retyped or moved since',
    async ({ version, name, files }) => {
      const columns = await columnsOf(files)
      const known = new Set(columns.map(([column]) => column))
      const today = tableOf(name).columns.filter((column) => known.has(column.name))
      expect(today.map((column) => [column.name, column.type])).toEqual(columns)
      const versions = await readSql(`SELECT DISTINCT schema_version FROM ${rawOf(files)}`)
      expect(versions).toEqual([{ schema_version: version }])
    },
  )

  const showsNull =
    'of schema version $version show NULL in a column added to $name since, and everything else unchanged'
  async function expectNullShown({ name, files }: (typeof TABLES_OF_VERSIONS)[number]): Promise<void> {
    const table = tableOf(name)
    const added = { name: 'added_later', type: 'DOUBLE', nullable: true, comment: '' } as const
    const later: LakeTable = {
      ...table,
      columns: [...table.columns.slice(0, -1), added, table.columns.at(-1)!],
    }
    // Treated as files of the version before the current one, whichever that is.
    const older = files.map((path) => ({ path, schemaVersion: LAKE_SCHEMA_VERSION - 1 }))
    const columns = (await columnsOf(files)).map(([column]) => identifier(column)).join(', ')
    const [{ rows, unknown, same, keys }] = await readSql(
      `WITH later AS (${selectNewestRows(later, older)})
       SELECT count(*)::INT AS rows, count(*) FILTER (added_later IS NULL)::INT AS unknown,
         (SELECT count(*)::INT FROM (SELECT ${columns} FROM later INTERSECT ALL SELECT ${columns} FROM ${rawOf(files)})) AS same,
         (SELECT count(DISTINCT (${table.latestBy?.join(', ') ?? columns}))::INT FROM ${rawOf(files)}) AS keys FROM later`,
    )
    expect(rows).toBeGreaterThan(0)
    expect({ unknown, same, keys }).toEqual({ unknown: rows, same: rows, keys: rows })
  }
  it.each(TABLES_OF_VERSIONS.filter(isNewest))(showsNull, expectNullShown)
  // What lies between the first version and the newest has more columns than the one, and fewer than the other.
  it.each(TABLES_OF_VERSIONS.filter(({ version }) => version === 1))(
    showsNull,
    { tags: 'drill' },
    expectNullShown,
  )

  const isVerified = 'of schema version %i have no findings in lake verify'
  async function expectVerified(version: number): Promise<void> {
    const opened = await openSample(version)
    try {
      const { findings, files } = await verifyLake({ dataDir: opened.dataDir, nowMs: 0 })
      expect(findings).toEqual([])
      expect(files).toBe(tablesOf(version).flatMap(([, files]) => files).length)
    } finally {
      await opened.close()
    }
  }
  it.each(VERSIONS.slice(-1))(isVerified, expectVerified)
  it.each(VERSIONS.slice(0, -1))(isVerified, { tags: 'drill' }, expectVerified)

  it.each(VERSIONS)(
    'of schema version %i have every submission in labelled, with its own labels',
    async (version) => {
      const opened = await openSample(version)
      try {
        const counts = `count(*)::INT AS submissions, count(fwd_ret_1h)::INT AS hours, count(dead_24h)::INT AS days,
        sum(hash(analysis_id, score, fwd_ret_5m, fwd_ret_1h, dead_24h, labelled_to, t.known_at))::VARCHAR AS content`
        const read = async (from: string) =>
          (await opened.reader.connection.run(`SELECT ${counts} FROM ${from}`)).getRowObjectsJson()
        const [labelled] = await read('labelled t')
        expect(labelled).toEqual((await read('training t LEFT JOIN outcomes USING (analysis_id)'))[0])
        expect(Number(labelled.days)).toBeGreaterThan(0)
        expect(Number(labelled.submissions)).toBeGreaterThan(Number(labelled.days))
      } finally {
        await opened.close()
      }
    },
  )

  it('come from a run of the engine, the submission service and the store, which fills every table without findings', {
    tags: 'drill',
  }, async () => {
    const dataDir = temporaryFolder()
    const startMs = Date.UTC(2025, 10, 3, 6)
    try {
      const market = { seed: 5, tokens: 12, tradesPerSecond: 0.3, flushMs: DAY_MS }
      const { answers } = await runSample({ dataDir, startMs, hours: 2, agentHours: 1, ...market })
      expect(answers.validated).toBeGreaterThan(0)
      const { findings } = await verifyLake({ dataDir, nowMs: startMs + DAY_MS })
      expect(findings).toEqual([])
      const empty = await withLakeReader({ dataDir }, async ({ connection }) => {
        const counts = LAKE_TABLES.map(
          ({ name }) => `SELECT '${name}' AS name, count(*) AS rows FROM ${name}`,
        )
        const result = await connection.run(`SELECT name FROM (${counts.join(' UNION ALL ')}) WHERE rows = 0`)
        return result.getRowsJson()
      })
      expect(empty).toEqual([])
    } finally {
      removeFolder(dataDir)
    }
  })
})
