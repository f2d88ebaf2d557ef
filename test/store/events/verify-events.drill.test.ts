// @module-tag drill
// What `lake verify` finds in recorded events, and what repairs settle.
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { duckdb } from '../../../src/store/duckdb/duckdb.ts'
import { lakeFolder, statePath } from '../../../src/store/paths.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { ANY, allEvents } from '../../support/lake/all-events.ts'
import { NOON_MS, removeFolder, temporaryFolder } from '../support.ts'
import { openWorld, trade, type World } from './world.ts'

let dataDir: string
let world: World
beforeEach(async () => {
  dataDir = temporaryFolder()
  world = await openWorld(dataDir)
  world.journal.append([trade(), { type: 'solPrice', ts: NOON_MS, usd: 150 }, trade()])
  await world.flush()
  world.journal.append([trade(), trade()])
  await world.flush()
})
afterEach(() => removeFolder(dataDir))

const fileOf = (table: string, first: number, last: number): string =>
  join(
    lakeFolder(dataDir),
    '.files',
    table,
    'dt=2025-06-01',
    `part-${String(first).padStart(15, '0')}-${String(last).padStart(15, '0')}.parquet`,
  )

/** Replaces the rows of a file, and what the list says of it, as a bug of this program would. */
async function rewrite(path: string, select: string, rows: number): Promise<void> {
  const instance = await duckdb.DuckDBInstance.create(statePath(dataDir))
  const connection = await instance.connect()
  await connection.run(`CREATE TEMP TABLE kept AS FROM read_parquet('${path}', hive_partitioning = false)`)
  await connection.run(`COPY (${select}) TO '${path}' (FORMAT parquet)`)
  const bytes = statSync(path).size
  await connection.run(
    `UPDATE lake_files SET row_count = ${rows}, sha256 = NULL, byte_count = ${bytes} WHERE '${path}' LIKE '%' || path`,
  )
  connection.closeSync()
  instance.closeSync()
}

async function findings(): Promise<string[]> {
  const verified = await verifyLake({ dataDir, nowMs: NOON_MS })
  expect(verified.scope).toBe('whole')
  return verified.findings.map(({ message }) => message)
}

test('a number that is missing', async () => {
  await world.close()
  await rewrite(fileOf('trades', 1, 3), 'FROM kept WHERE event_no <> 3', 1)
  expect(await findings()).toContain('recorded events 1 to 5: 4 found of 5; 1 missing from 1 to 5')
})

test('a number that is there twice, in the other table', async () => {
  await world.close()
  await rewrite(
    fileOf('trades', 1, 3),
    'SELECT * REPLACE (CASE event_no WHEN 3 THEN 2 ELSE event_no END AS event_no) FROM kept',
    2,
  )
  expect(await findings()).toContain(
    'recorded events 1 to 5: 5 found of 5; 1 missing and 1 doubled from 1 to 5',
  )
})

test('rows that are not in order, or not of the file', async () => {
  await world.close()
  await rewrite(fileOf('trades', 4, 5), 'FROM kept ORDER BY event_no DESC', 2)
  await rewrite(fileOf('events', 1, 3), 'SELECT * REPLACE (9::BIGINT AS event_no) FROM kept', 1)
  const all = await findings()
  expect(all).toContain('has 1 row out of order')
  expect(all).toContain('has 1 row with numbers that its name does not cover')
})

test('a lost file is set aside as any other, told of once, and the rest is still a sequence', async () => {
  await world.close()
  rmSync(fileOf('trades', 4, 5))
  rmSync(join(lakeFolder(dataDir), 'trades/dt=2025-06-01/part-000000000000004-000000000000005.parquet'))
  world = await openWorld(dataDir, { journal: world.journal })
  expect(world.trouble?.setAside).toMatchObject([{ table: 'trades', rowsLost: 2 }])
  for await (const _ of allEvents(dataDir, ANY));
  await world.close()
  expect(await findings()).toEqual([
    expect.stringMatching(/^is listed and not there; set aside .* 2 rows missing: see mintlake lake repair$/),
  ])
})

test('with a server on the folder the files alone are compared', async () => {
  const verified = await verifyLake({ dataDir, nowMs: NOON_MS, confirmMs: 1 })
  expect(verified).toMatchObject({ findings: [] })
  await world.close()
})
