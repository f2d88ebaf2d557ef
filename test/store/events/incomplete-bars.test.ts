// A gap that is noticed after bars of its time were written: the catalog tells, the files stay as they are.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { EventJournal } from '../../../src/journal/journal.ts'
import type { ClosedBar } from '../../../src/schema/bar.ts'
import { readFolderInfo } from '../../../src/store/data-folder/folder-info.ts'
import { journalFolder, lakeFolder, stateLogPath, statePath } from '../../../src/store/paths.ts'
import { rewriteCatalog } from '../../../src/store/query/lake-catalog.ts'
import { pinLake } from '../../../src/store/query/lake-pin.ts'
import { withLakeReader } from '../../../src/store/query/lake-reader.ts'
import type { Store } from '../../../src/store/store.ts'
import { openTestJournal } from '../../journal/support.ts'
import {
  closedBar,
  lakeGlob,
  NOON_MS,
  openTestStore,
  readSql,
  removeFolder,
  temporaryFolder,
} from '../support.ts'

const MINUTE_MS = 60_000
let dataDir: string
let store: Store
let journal: EventJournal
beforeEach(async () => {
  dataDir = temporaryFolder()
  store = await openTestStore(dataDir)
  journal = await openTestJournal(journalFolder(dataDir), { folderId: readFolderInfo(dataDir)!.logId })
  store.events.follow(journal, () => {})
})
afterEach(async () => {
  await store.close()
  await journal.close()
  removeFolder(dataDir)
})

async function writeBars(bars: readonly Partial<ClosedBar>[]): Promise<void> {
  for (const bar of bars) store.bars.add(closedBar(bar))
  await store.bars.flush()
  await store.flushLake()
}

const MINUTES = `tf || ' ' || ((epoch_ms(t) - ${NOON_MS}) // ${MINUTE_MS})::VARCHAR AS bar, complete`
type Bars = Record<string, boolean | null>
const byBar = (rows: readonly Record<string, unknown>[]): Bars =>
  Object.fromEntries(rows.map(({ bar, complete }) => [String(bar), complete as boolean | null]))
const inFiles = async (): Promise<Bars> =>
  byBar(await readSql(`SELECT ${MINUTES} FROM ${lakeGlob(dataDir, 'bars')}`))
const inCatalog = (folder = dataDir): Promise<Bars> =>
  withLakeReader({ dataDir: folder }, async ({ connection }) =>
    byBar(
      (await (await connection.run(`SELECT ${MINUTES} FROM lake.bars`)).getRowObjectsJS()) as Record<
        string,
        unknown
      >[],
    ),
  )
/** What a researcher sees who has a table of the same name as one of the catalog's, and does not USE the lake. */
const inAttached = async (): Promise<Bars> =>
  byBar(
    await readSql(
      `SELECT ${MINUTES} FROM research.bars`,
      `CREATE TABLE lake_incomplete_bars (x INTEGER);
       ATTACH '${join(lakeFolder(dataDir), 'catalog.duckdb')}' AS research (READ_ONLY)`,
    ),
  )

test('bars that a late gap touches are shown as incomplete, wherever their catalog is', {
  tags: 'drill',
}, async () => {
  const bars = [0, 1, 2, 3].map((minute) => ({ t: NOON_MS + minute * MINUTE_MS }))
  await writeBars([...bars, { tf: '5m', t: NOON_MS }, { t: NOON_MS + 4 * MINUTE_MS, complete: false }])
  const written = { '1m 0': true, '1m 1': true, '1m 2': true, '1m 3': true, '5m 0': true, '1m 4': false }
  expect(await inCatalog()).toEqual(written)
  const atMs = NOON_MS + 6 * MINUTE_MS
  journal.append(
    { type: 'disconnect', feed: 'push', ts: atMs, sinceMs: NOON_MS + 2 * MINUTE_MS + 1 },
    atMs,
    atMs,
    'push',
    Number.NaN,
  )
  await store.flushLake()
  const known = { ...written, '1m 2': false, '1m 3': false, '5m 0': false }
  expect(await inCatalog()).toEqual(known)
  expect(await inAttached()).toEqual(known)
  expect(await inFiles()).toEqual(written)
  // A later flush and a merge write the catalog again.
  await writeBars([{ t: NOON_MS + 9 * MINUTE_MS }])
  await store.compactLake()
  expect(await inCatalog()).toEqual({ ...known, '1m 9': true })
  expect(await inCatalog((await pinLake(dataDir, 'now', NOON_MS)).path)).toEqual({ ...known, '1m 9': true })
  await store.close()
  await rewriteCatalog(dataDir, NOON_MS)
  expect(await inCatalog()).toEqual({ ...known, '1m 9': true })
})

test('time that passed twice is noted once, though nothing else is new, and outlives the state', async () => {
  const [fromMs, toMs] = [NOON_MS + MINUTE_MS + 1, NOON_MS + 10 * MINUTE_MS]
  await writeBars([0, 1, 8, 9].map((minute) => ({ t: NOON_MS + minute * MINUTE_MS })))
  const inSpan = async () => ({
    bars: await inCatalog(),
    spans: await readSql(
      `SELECT epoch_ms(first_at)::DOUBLE AS "fromMs", epoch_ms(last_at)::DOUBLE AS "toMs" FROM lake.lake_rewound_spans`,
      `ATTACH '${join(lakeFolder(dataDir), 'catalog.duckdb')}' AS lake (READ_ONLY)`,
    ),
  })
  // That of the last minute was open until then.
  const bars = { '1m 0': true, '1m 1': false, '1m 8': false, '1m 9': true }
  for (let time = 0; time < 2; time++) {
    store.bars.noteRewound({ fromMs, toMs })
    await store.flushLake()
    expect(await inSpan()).toEqual({ bars, spans: [{ fromMs, toMs }] })
  }
  await store.close()
  for (const path of [statePath(dataDir), stateLogPath(dataDir)]) rmSync(path, { force: true })
  store = await openTestStore(dataDir)
  await writeBars([{ t: NOON_MS + 7_200 * MINUTE_MS }])
  expect(await inSpan()).toEqual({ bars: { ...bars, '1m 7200': true }, spans: [{ fromMs, toMs }] })
})
