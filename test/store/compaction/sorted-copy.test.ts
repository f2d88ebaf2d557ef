// A sorted copy has every row of its files once, also where they do not fit in memory; and how the merge process fails.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { LAKE_SCHEMA_VERSION } from '../../../src/schema/tables.ts'
import { Merger } from '../../../src/store/compaction/merger.ts'
import { copySorted } from '../../../src/store/compaction/sorted-copy.ts'
import { LAKE_TABLES, sortOrderSql } from '../../../src/store/duckdb/sql.ts'
import { readSql, removeFolder, temporaryFolder } from '../support.ts'

const ROWS = 40_000
let folder: string
let merger: Merger
beforeEach(() => {
  folder = temporaryFolder()
  merger = new Merger()
})
afterEach(async () => {
  await merger.close()
  removeFolder(folder)
})

const tableOf = (name: string) => LAKE_TABLES.find((table) => table.name === name)!
const target = () => join(folder, 'sorted.parquet')
const file = (name: string) => ({ path: join(folder, name), schemaVersion: LAKE_SCHEMA_VERSION })

/** Writes rows of a table as unsorted files. Most columns have a single value. */
async function write(name: string, over: Record<string, string>, files: number, rows = ROWS): Promise<void> {
  const columns = tableOf(name).columns.map((column) => {
    const value = over[column.name] ?? (column.type === 'VARCHAR' ? `'text'` : 'NULL')
    return `(${value})::${column.type} AS ${column.name}`
  })
  for (let index = 0; index < files; index++) {
    await readSql(`COPY (SELECT ${columns.join(', ')} FROM range(${index * rows}, ${(index + 1) * rows}) AS r(i))
      TO '${file(`${index}.parquet`).path}' (FORMAT parquet, ROW_GROUP_SIZE 4096)`)
  }
}
const inputs = (count: number) => Array.from({ length: count }, (_, index) => file(`${index}.parquet`))
const work = (name: string, count: number, rows = count * ROWS) => ({
  table: tableOf(name),
  files: inputs(count),
  rows,
  target: target(),
  spillDir: join(folder, 'spill'),
})
const HASHED_TIME = `TIMESTAMP '2025-06-01' + to_seconds((hash(i) % 80000)::BIGINT)`
/** Checks that the sorted file has the rows of the inputs in order. */
async function expectSorted(name: string, count: number): Promise<void> {
  const files = inputs(count).map(({ path }) => `'${path}'`)
  const digest = (rows: string) =>
    readSql(
      `SELECT count(*)::INT AS rows, md5(string_agg(md5(row::VARCHAR))) AS digest FROM (${rows}) AS row`,
    )
  const found = await digest(`FROM '${target()}'`)
  expect(found).toEqual(
    await digest(`FROM read_parquet([${files.join(', ')}]) ORDER BY ${sortOrderSql(tableOf(name))}`),
  )
}

describe('a sorted copy has every row once', () => {
  test.each([
    ['at once', {}],
    ['in slices', { sliceRows: 4_096 }],
  ])('%s', async (_, slices) => {
    await write('bars', { mint: `'mint ' || hash(i) % 50`, t: HASHED_TIME, tf: `'1m'`, n: 'i' }, 2)
    // Bars of one token and time can be in any order.
    const copied = { ...work('bars', 2), ...slices }
    expect(await copySorted(copied)).toBe(2 * ROWS)
    const unordered = await readSql(
      `SELECT count(*)::INT AS n FROM (SELECT (mint, t) < lag((mint, t)) OVER () AS falls FROM '${target()}') WHERE falls`,
    )
    expect(unordered).toEqual([{ n: 0 }])
    expect(
      await readSql(`SELECT count(DISTINCT n)::INT AS n, min(n)::INT AS low FROM '${target()}'`),
    ).toEqual([{ n: 2 * ROWS, low: 0 }])
  })

  test('when it is sliced by time, for a table without mint', { tags: 'drill' }, async () => {
    await write('xp_ledger', { entry_id: `'entry ' || i`, awarded_at: HASHED_TIME }, 3)
    expect(await copySorted({ ...work('xp_ledger', 3), sliceRows: 10_000 })).toBe(3 * ROWS)
    await expectSorted('xp_ledger', 3)
  })

  test('when all rows have the same token and second', async () => {
    const at = `TIMESTAMP '2025-06-01 12:00:00'`
    await write('training', { analysis_id: `'an ' || i`, mint: `'one'`, submitted_at: at }, 2, 3_000)
    expect(await copySorted({ ...work('training', 2, 6_000), sliceRows: 1_000 })).toBe(6_000)
    await expectSorted('training', 2)
  })

  test('when the slices have to be made smaller to fit in memory', { tags: 'drill' }, async () => {
    const wide = { entry_id: `'entry ' || i`, awarded_at: HASHED_TIME, note: `repeat(md5(i::VARCHAR), 30)` }
    await write('xp_ledger', wide, 2)
    const tight = { ...work('xp_ledger', 2), memoryLimit: '60MB' }
    expect(await copySorted(tight)).toBe(2 * ROWS)
    await expectSorted('xp_ledger', 2)
    const groups = await readSql(
      `SELECT max(row_group_num_rows)::INT AS rows FROM parquet_metadata('${target()}')`,
    )
    expect(groups[0].rows).toBeLessThan(2 * ROWS)
  })

  test('but only the newest row of each outcome', async () => {
    const keys = { analysis_id: `'an ' || i % 10000`, mint: `'mint ' || i % 100`, known_at: HASHED_TIME }
    await write('outcomes', { ...keys, submitted_at: `TIMESTAMP '2025-06-01'` }, 2)
    expect(await copySorted({ ...work('outcomes', 2), sliceRows: 8_000 })).toBe(10_000)
  })
})

test('the files of slices are deleted', async () => {
  await write('bars', { mint: `'mint ' || i % 9`, t: HASHED_TIME }, 2)
  await copySorted({ ...work('bars', 2), sliceRows: 10_000 })
  expect(readdirSync(join(folder, 'spill'))).toEqual([])
})

describe('the merge process', () => {
  const ask = (count: number) => ({ ...work('bars', count), table: 'bars' })

  test('makes several copies and reports its peak memory', async () => {
    await write('bars', { mint: `'mint ' || i % 9`, t: HASHED_TIME }, 2)
    const first = await merger.copy(ask(1))
    const second = await merger.copy(ask(2))
    expect([first.rows, second.rows]).toEqual([ROWS, 2 * ROWS])
    expect(second.peakBytes).toBeGreaterThanOrEqual(first.peakBytes)
  })

  test('fails a copy when it ends, and is started again for the next one', async () => {
    await write('bars', { mint: `'mint ' || i % 9`, t: HASHED_TIME }, 1)
    const cut = expect(merger.copy(ask(1))).rejects.toThrow('was stopped')
    await merger.stop()
    await cut
    expect((await merger.copy(ask(1))).rows).toBe(ROWS)
  })

  test('reports which file it could not read', async () => {
    await expect(merger.copy(ask(1))).rejects.toThrow(/No files found.*0\.parquet/)
  })

  test('makes no copy after close', async () => {
    await merger.close()
    await expect(merger.copy(ask(1))).rejects.toThrow('closing')
  })
})
