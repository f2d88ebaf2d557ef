// Which dates expire from the lake, and when their files are deleted.

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { literal } from '../../../src/store/duckdb/sql.ts'
import { firstRetainedDate } from '../../../src/store/lake/retention.ts'
import { KEEP_FOR_EVER } from '../../../src/store/retention-setting.ts'
import type { Store } from '../../../src/store/store.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { SteppedClock } from '../../support/clock.ts'
import {
  lakeGlob,
  NOON_MS,
  openTestStore,
  readSql,
  removeFolder,
  submission,
  temporaryFolder,
} from '../support.ts'

const DAY_MS = 86_400_000
const GRACE_MS = 1_000

let folder: string
let store: Store
let clock: SteppedClock

const open = (unaskedPct = 100): Promise<Store> =>
  openTestStore(folder, {
    clock,
    lakeTidy: { everyMs: 0, graceMs: GRACE_MS },
    retain: { ...KEEP_FOR_EVER, days: { training: 2 }, unaskedPct },
  })

beforeEach(async () => {
  folder = temporaryFolder()
  clock = new SteppedClock(NOON_MS)
  store = await open()
})
afterEach(async () => {
  await store.close()
  removeFolder(folder)
})

const catalogued = async (table: string): Promise<string[]> =>
  (
    await readSql(
      `SELECT analysis_id AS id FROM lake.${table} ORDER BY 1`,
      `ATTACH ${literal(join(folder, 'lake', 'catalog.duckdb'))} AS lake (READ_ONLY)`,
    )
  ).map(({ id }) => String(id))

const shown = async (table: string): Promise<string[]> =>
  (await readSql(`SELECT analysis_id AS id FROM ${lakeGlob(folder, table)} ORDER BY 1`)).map(({ id }) =>
    String(id),
  )

/** Files of a table, including those kept until the end of the grace period. */
const held = (): string[] =>
  readdirSync(join(folder, 'lake/.files/training'), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.parquet'))
    .sort()

async function submitDaysAgo(...daysAgo: number[]): Promise<void> {
  await store.commit(
    daysAgo.flatMap((days) => submission(`an_${days}`, { submitted_at: clock.now() - days * DAY_MS })),
  )
  await store.flushLake()
}

test('older dates leave the catalog and folders at once, and the disk after the grace period', {
  tags: 'drill',
}, async () => {
  await submitDaysAgo(0, 1, 2, 3, 4)
  expect((await store.compactLake()).removed).toBe(0)
  expect(await catalogued('training')).toEqual(['an_0', 'an_1', 'an_2'])
  expect(await shown('training')).toEqual(['an_0', 'an_1', 'an_2'])
  expect(held()).toHaveLength(5)
  expect(await catalogued('xp_ledger')).toHaveLength(5)
  clock.pass(GRACE_MS)
  expect((await store.compactLake()).removed).toBe(2)
  expect(held().map((name) => name.slice(3, 13))).toEqual(['2025-05-30', '2025-05-31', '2025-06-01'])
})

test('expired rows do not return after a restart, and their row numbers are not used again', async () => {
  await submitDaysAgo(5)
  await store.compactLake()
  expect(await catalogued('training')).toEqual([])
  clock.pass(GRACE_MS)
  await store.compactLake()
  expect(held()).toEqual([])
  const { recovered } = store
  await store.close()
  store = await open()
  expect(recovered.coverage).toEqual([])
  expect(store.recovered.coverage).toMatchObject([{ count: 1 }])
  expect(store.recovered.xpTotals).toEqual([{ agentId: 'agent-1', xp: 17.5, analyses: 1 }])
  await submitDaysAgo(0)
  expect(await catalogued('training')).toEqual(['an_0'])
  await store.close()
  expect((await verifyLake({ dataDir: folder, nowMs: clock.now() })).findings).toEqual([])
  expect(held()[0]).toMatch(/part-0*2-0*2\.parquet$/)
})

test('when the clock jumps ahead nothing expires until an operator confirms it, also over a restart', {
  tags: 'drill',
}, async () => {
  const ids = ['an_0', 'an_1', 'an_2']
  const leap = 40 * DAY_MS
  await submitDaysAgo(0, 1, 2)
  await store.compactLake()
  clock.step(leap)
  await store.commit(submission('an_later', { submitted_at: clock.now() }))
  await store.flushLake()
  await store.compactLake()
  expect(await catalogued('training')).toEqual([...ids, 'an_later'])
  const held = /^no row leaves the lake for its age: the clock says 2025-07-11.* it is 2025-06-01/
  expect((await store.status()).reasons).toEqual([expect.stringMatching(held)])

  // Rows written with the wrong time do not confirm the clock.
  await store.close()
  store = await open()
  await store.compactLake()
  expect(await catalogued('training')).toEqual([...ids, 'an_later'])
  expect((await store.status()).reasons).toEqual([expect.stringMatching(held)])

  clock.step(-leap)
  await store.compactLake()
  expect((await store.status()).reasons).toEqual([])
  expect(await catalogued('training')).toEqual([...ids, 'an_later'])

  clock.step(leap)
  await store.compactLake()
  expect(await catalogued('training')).toHaveLength(4)
  expect(await store.retireLake()).toEqual({ files: 3 })
  expect(await catalogued('training')).toEqual(['an_later'])
  expect((await store.status()).reasons).toEqual([])
})

test('dates expire when the time has passed on the wall clock and the monotonic clock', async () => {
  await submitDaysAgo(0)
  await store.compactLake()
  clock.pass(3 * DAY_MS)
  await store.compactLake()
  expect(await catalogued('training')).toEqual([])
  expect((await store.status()).reasons).toEqual([])
})

test('after a month without a server dates are kept until an operator confirms the clock', {
  tags: 'drill',
}, async () => {
  await submitDaysAgo(0)
  await store.close()
  clock.step(30 * DAY_MS)
  store = await open()
  await store.compactLake()
  expect(await catalogued('training')).toEqual(['an_0'])
  await store.retireLake()
  expect(await catalogued('training')).toEqual([])
})

const DOUBT = /^no row leaves the lake for its age: (.+); if they are to be deleted: mintlake lake retire$/
const doubts = async () => (await store.status()).reasons.map((reason) => DOUBT.exec(reason)?.[1])

/** One submission on each of so many days, the last of which is today. */
async function submitDaily(days: number): Promise<string[]> {
  for (let day = days - 1; day >= 0; day--) await submitDaysAgo(day)
  return Array.from({ length: days }, (_, day) => `an_${day}`).sort()
}

test('more than a tenth of a table leaves on an operator’s word only', { tags: 'drill' }, async () => {
  await store.close()
  store = await open(10)
  await submitDaily(4)
  await store.compactLake()
  expect(await catalogued('training')).toHaveLength(4)
  expect(await doubts()).toEqual(['1 of 4 rows of training are over their time, more than 10 %'])
  expect(await store.retireLake()).toEqual({ files: 1 })
  expect(await catalogued('training')).toEqual(['an_0', 'an_1', 'an_2'])
  expect(await doubts()).toEqual([])
})

test('the newest day of a table leaves on an operator’s word only', { tags: 'drill' }, async () => {
  await store.close()
  store = await open(99)
  await submitDaysAgo(0)
  await store.compactLake()
  clock.pass(5 * DAY_MS)
  await store.compactLake()
  expect(await catalogued('training')).toEqual(['an_0'])
  expect(await doubts()).toEqual([
    'rows of training are among its newest, of 2025-06-01, and over their time',
  ])
  await store.retireLake()
  expect(await catalogued('training')).toEqual([])
})

test.each([
  ['40 days behind', -40 * DAY_MS],
  ['in 1970', -NOON_MS + DAY_MS],
])(
  'what was submitted while the clock was %s is as young as what came before it',
  { tags: 'drill' },
  async (_, stepMs) => {
    await store.close()
    store = await open(60)
    await submitDaysAgo(0)
    await store.commit(submission('an_behind', { submitted_at: clock.now() + stepMs }))
    await store.flushLake()
    clock.pass(DAY_MS)
    await submitDaysAgo(0)
    await store.compactLake()
    expect(await catalogued('training')).toContain('an_behind')
    expect(await doubts()).toEqual([])
  },
)

test('what was submitted while the clock was ahead is told where it holds later rows, and leaves with them', async () => {
  await submitDaysAgo(-200)
  for (let day = 0; day < 3; day++) {
    await submitDaysAgo(0)
    await store.compactLake()
    expect(await doubts()).toEqual([])
    clock.pass(DAY_MS)
  }
  await store.compactLake()
  expect(await doubts()).toEqual([
    'rows of training that are over their time come after rows of 2025-12-18, a date ahead of the clock',
  ])
  expect(await store.retireLake()).toEqual({ files: 2 })
  clock.pass(DAY_MS)
  await store.compactLake()
  expect(await doubts()).toEqual([])
  expect(await catalogued('training')).toHaveLength(1)
  await store.close()
  // The awards of what has left are there.
  const { findings } = await verifyLake({ dataDir: folder, nowMs: clock.now() })
  expect(findings.filter(({ message }) => message.includes('without an accepted submission'))).toEqual([])
})

test('the oldest date kept is the given number of full UTC days before today', () => {
  const lastMs = Date.UTC(2025, 0, 1, 23, 59, 59, 999)
  expect(firstRetainedDate(1, lastMs)).toBe('2024-12-31')
  expect(firstRetainedDate(1, lastMs + 1)).toBe('2025-01-01')
})
