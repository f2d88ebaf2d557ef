// Closed bars that come twice, late, after restarts and in large numbers: the lake has each once.
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ClosedBar } from '../../../src/schema/bar.ts'
import { LAKE_SCHEMA_VERSION } from '../../../src/schema/tables.ts'
import { BARS_BATCH_ROWS } from '../../../src/store/limits.ts'
import { noBars } from '../../../src/store/market-data/bar-counts.ts'
import { BarStore } from '../../../src/store/market-data/bar-store.ts'
import type { Store } from '../../../src/store/store.ts'
import {
  closedBar as bar,
  lakeGlob,
  NOON_MS,
  openTestStore,
  readSql,
  removeFolder,
  temporaryFolder,
} from '../support.ts'

const MINUTE_MS = 60_000

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

async function write(...bars: ClosedBar[]): Promise<void> {
  for (const each of bars) store.bars.add(each)
  await store.bars.flush()
  await store.flushLake()
}

const inLake = (): Promise<Record<string, unknown>[]> =>
  readSql(
    `SELECT mint, tf, epoch_ms(t)::DOUBLE AS t, c, n::INT AS n FROM ${lakeGlob(folder, 'bars')} ORDER BY ALL`,
  )

test('a closed bar is in the lake after the next flush, with all of its values', async () => {
  await write(bar())
  const [row] = await readSql(
    `SELECT * REPLACE (n::INT AS n, buys::INT AS buys) FROM ${lakeGlob(folder, 'bars')}`,
  )
  expect(row).toMatchObject({ mint: 'mint-1', tf: '1m', o: 1, h: 4, l: 0.5, c: 2, v: 30, n: 3, buy_v: 20 })
  expect(row).toMatchObject({ buys: 2, schema_version: LAKE_SCHEMA_VERSION, t: new Date(NOON_MS) })
  expect(row).toMatchObject({
    closed_at: new Date(NOON_MS + 65_000),
    watched_since: new Date(NOON_MS - 5),
    known_at: new Date(NOON_MS),
  })
})

test('a bar that closes twice is written once, in one flush, in the next, and after a restart', async () => {
  const later = bar({ t: NOON_MS + MINUTE_MS, c: 3 })
  await write(bar(), bar({ c: 9 }))
  await write(bar({ c: 8 }), later)
  await store.close()
  store = await openTestStore(folder)
  await write(bar({ t: NOON_MS - MINUTE_MS, c: 5 }), bar({ c: 7 }), later)
  await write(bar({ mint: 'mint-2' }), bar({ tf: '5m' }), bar({ c: 6 }))
  expect(
    (await inLake()).map(({ mint, tf, t, c }) => [mint, tf, ((t as number) - NOON_MS) / MINUTE_MS, c]),
  ).toEqual([
    ['mint-1', '1m', -1, 5],
    ['mint-1', '1m', 0, 2],
    ['mint-1', '1m', 1, 3],
    ['mint-1', '5m', 0, 2],
    ['mint-2', '1m', 0, 2],
  ])
})

test('a flush without new bars writes no file, and close writes the bars that wait', async () => {
  await write(bar())
  await write(bar())
  expect((await store.status()).lake.find(({ table }) => table === 'bars')).toMatchObject({
    files: 1,
    rows: 1,
    backlog: 0,
  })
  store.bars.add(bar({ t: NOON_MS + MINUTE_MS }))
  await store.close()
  expect(await inLake()).toHaveLength(2)
})

test('all bars of several days and many batches are written to the lake', { tags: 'drill' }, async () => {
  const count = 2 * BARS_BATCH_ROWS + 10
  const all = Array.from({ length: count }, (_, i) =>
    bar({ mint: `mint-${i % 50}`, t: NOON_MS + Math.floor(i / 50) * 10 * MINUTE_MS, n: i }),
  )
  await write(...all)
  const [sums] = await readSql(
    `SELECT count(*)::INT AS rows, count(DISTINCT dt)::INT AS dates, sum(n)::DOUBLE AS n FROM ${lakeGlob(folder, 'bars')}`,
  )
  expect(sums).toEqual({ rows: count, dates: 3, n: (count * (count - 1)) / 2 })
})

test('bars that arrive while a flush is writing others are all in the lake after the next', {
  tags: 'drill',
}, async () => {
  let added = 0
  const addMinutes = (count: number): void => {
    for (let i = 0; i < count; i++, added++)
      store.bars.add(bar({ mint: `mint-${added % 50}`, t: NOON_MS + Math.floor(added / 50) * MINUTE_MS }))
  }
  for (let round = 0; round < 3; round++) {
    addMinutes(BARS_BATCH_ROWS)
    let isFlushing = true
    const flushed = store.flushLake().finally(() => {
      isFlushing = false
    })
    while (isFlushing) {
      addMinutes(20)
      await store.bars.flush()
    }
    await flushed
  }
  await store.flushLake()
  const [counts] = await readSql(
    `SELECT count(*)::INT AS rows, count(DISTINCT (mint, t))::INT AS bars FROM ${lakeGlob(folder, 'bars')}`,
  )
  expect(counts).toEqual({ rows: added, bars: added })
})

test('where market time goes back while a flush runs, the lake has bars up to there alone until the next', async () => {
  const connection = { run: async () => {} }
  const maintenance = { run: (work: (on: object) => unknown) => work(connection) }
  const account = {
    ...{ closed: noBars(), dropped: noBars(), repeated: noBars() },
    written: noBars(),
    settled: noBars(),
  }
  const [lake, run] = [{ database: { maintenance } }, { runId: 'run' }] as unknown as ConstructorParameters<
    typeof BarStore
  >
  const bars = new BarStore(lake, run, { youngestMs: new Map(), firstSeq: 1, account } as never)
  const tellComplete = (completeToMs: number) =>
    bars.take({
      first: 0,
      batch: { mints: [], numbers: new Float64Array(0) },
      completeToMs,
      rewound: [],
      dropped: noBars(),
    })
  tellComplete(NOON_MS + 60 * MINUTE_MS)
  const staged = await bars.stage(NOON_MS)
  tellComplete(NOON_MS)
  tellComplete(NOON_MS + MINUTE_MS)
  await bars.release(staged)
  expect(bars.inLakeToMs).toBe(NOON_MS)
  await bars.release(await bars.stage(NOON_MS))
  expect(bars.inLakeToMs).toBe(NOON_MS + MINUTE_MS)
})
