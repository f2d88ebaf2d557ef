// @module-tag drill
// A data folder whose lake has schema version 2 is used as before, and gets what version 3 has added.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readFolderInfo } from '../../../src/store/data-folder/folder-info.ts'
import { journalFolder } from '../../../src/store/paths.ts'
import { withLakeReader } from '../../../src/store/query/lake-reader.ts'
import type { Store } from '../../../src/store/store.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { appendNumbered, openTestJournal } from '../../journal/support.ts'
import { clockOf } from '../../support/clock.ts'
import { allEvents } from '../../support/lake/all-events.ts'
import { closedBar, openTestStore, removeFolder, temporaryFolder } from '../support.ts'

const END_MS = Date.UTC(2025, 10, 3, 14)
const FIXTURE = new URL('../fixtures/v2-schema-2.tar.gz', import.meta.url).pathname
let folder: string
let dataDir: string
let store: Store | null = null
beforeEach(() => {
  folder = temporaryFolder()
  dataDir = join(folder, 'data')
  execFileSync('tar', ['-xzf', FIXTURE, '-C', folder])
})
afterEach(async () => {
  await store?.close()
  removeFolder(folder)
})

/** A count of the rows of a query, by the catalog. */
const count = (sql: string): Promise<number> =>
  withLakeReader({ dataDir }, async ({ connection }) =>
    Number((await (await connection.run(`SELECT count(*) FROM ${sql}`)).getRowsJS())[0][0]),
  )

test('its bars have no word on whether they are complete, alone and merged with new ones', async () => {
  const before = await count('bars')
  expect(before).toBeGreaterThan(100)
  store = await openTestStore(dataDir, {
    lakeTidy: { everyMs: 0, graceMs: 0 },
    lakeQuietMs: 0,
    clock: clockOf(() => END_MS),
  })
  expect(await count('bars WHERE complete IS NULL AND schema_version = 2')).toBe(before)
  expect(await count('trades')).toBe(0)
  const newBars = [true, false].map((complete, index) =>
    closedBar({ t: END_MS + index * 60_000, complete, mint: 'new' }),
  )
  for (const bar of newBars) store.bars.add(bar)
  await store.bars.flush()
  await store.flushLake()
  await store.compactLake()
  expect(await count("lake_files WHERE table_name = 'bars' AND dt = DATE '2025-11-03'")).toBe(1)
  expect(await count('bars WHERE complete IS NULL AND schema_version = 2')).toBe(before)
  expect(await count("bars WHERE mint = 'new' AND complete AND schema_version = 5")).toBe(1)
  expect(await count("bars WHERE mint = 'new' AND NOT complete")).toBe(1)
  await store.close()
  store = null
  expect(await verifyLake({ dataDir, nowMs: END_MS })).toMatchObject({ scope: 'whole', findings: [] })
})

test('it takes recorded events', async () => {
  store = await openTestStore(dataDir, { clock: clockOf(() => END_MS) })
  expect(store.events.progress).toEqual({ eventNo: 0, retainedFrom: 1 })
  const journal = await openTestJournal(journalFolder(dataDir), { folderId: readFolderInfo(dataDir)!.logId })
  store.events.follow(journal, () => {})
  appendNumbered(journal, 25)
  await store.flushLake()
  const numbers: number[] = []
  for await (const batch of allEvents(dataDir)) numbers.push(...batch.map(({ eventNo }) => eventNo))
  expect(numbers).toEqual(Array.from({ length: 25 }, (_, index) => index + 1))
  await store.close()
  await journal.close()
  store = null
  expect(await verifyLake({ dataDir, nowMs: END_MS })).toMatchObject({ scope: 'whole', findings: [] })
})
