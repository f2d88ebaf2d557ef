// Files of bars that are lost or damaged while the store runs: outcomes that depend on them are unknown, not wrong, and
// merging and writing go on without them.
import { copyFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hashFile } from '../../../src/store/lake/lake-files.ts'
import { MERGE_FILES_MIN } from '../../../src/store/limits.ts'
import { KEEP_FOR_EVER } from '../../../src/store/retention-setting.ts'
import type { Store } from '../../../src/store/store.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import {
  closedBar,
  NOON_MS,
  openTestStore,
  quietLog,
  readSql,
  removeFolder,
  temporaryFolder,
  writeOf,
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

const read = (sql: string) =>
  readSql(sql, `ATTACH '${join(folder, 'lake/catalog.duckdb')}' AS lake (READ_ONLY)`)

async function addMinutes(from: number, to: number): Promise<void> {
  for (let minute = from; minute < to; minute++)
    store.bars.add(closedBar({ t: NOON_MS + minute * MINUTE_MS, c: 2 + minute }))
  store.bars.completeTo(NOON_MS + to * MINUTE_MS)
  await store.bars.flush()
  await store.flushLake()
}

const names = (): string[] =>
  ['lake/.files/bars', 'lake/bars'].flatMap((root) =>
    readdirSync(join(folder, root), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.parquet'))
      .sort()
      .map((name) => join(folder, root, name)),
  )

test('an outcome whose bars are lost is NULL, and one of another day is unchanged', async () => {
  await addMinutes(0, 3)
  for (const name of names()) rmSync(name)
  await store.commit([
    writeOf('training', { analysis_id: 'an_1', mint: 'mint-1', submitted_at: NOON_MS, price_usd: 1 }),
  ])
  await addMinutes(3, 10)
  await store.flushLake()
  expect(await read('SELECT analysis_id, fwd_ret_5m, labelled_to FROM lake.outcomes')).toEqual([
    { analysis_id: 'an_1', fwd_ret_5m: null, labelled_to: '5m' },
  ])
  expect((await store.status()).setAside).toMatchObject({ files: 1, rowsLost: 3 })
  expect(await read('SELECT count(*)::INT AS n FROM lake.bars')).toEqual([{ n: 7 }])
})

test('an outcome whose bars have left the lake is NULL: that nobody traded is not known', {
  tags: 'drill',
}, async () => {
  await store.close()
  let nowMs = NOON_MS
  const clock = { now: () => nowMs, monotonicMs: () => nowMs }
  store = await openTestStore(folder, {
    clock,
    retain: { ...KEEP_FOR_EVER, days: { bars: 2 }, unaskedPct: 100 },
  })
  await addMinutes(0, 3)
  await store.commit([
    writeOf('training', { analysis_id: 'an_1', mint: 'mint-1', submitted_at: NOON_MS, price_usd: 1 }),
  ])
  await store.flushLake()
  // The server stood still for three days, and the first round of upkeep comes before the first flush.
  nowMs += 3 * 86_400_000
  await store.retireLake()
  store.bars.completeTo(nowMs)
  await store.bars.flush()
  await store.flushLake()
  await store.flushLake()
  const unknown = { fwd_ret_5m: null, fwd_ret_24h: null, dead_24h: null }
  expect(
    await read(`SELECT fwd_ret_5m, fwd_ret_24h, dead_24h FROM lake.outcomes WHERE labelled_to = '24h'`),
  ).toEqual([unknown])
})

test('an outcome of a day is known, though bars that a wrong clock dated with it left before that day', async () => {
  const DAY_MS = 86_400_000
  await store.close()
  let nowMs = NOON_MS
  const clock = { now: () => nowMs, monotonicMs: () => nowMs }
  const retain = { ...KEEP_FOR_EVER, days: { bars: 2 }, unaskedPct: 100 }
  store = await openTestStore(folder, { clock, retain })
  store.bars.add(closedBar({ t: NOON_MS + 20 * DAY_MS }))
  await store.bars.flush()
  await store.flushLake()
  for (let day = 0; day <= 5; day++) store.bars.add(closedBar({ mint: 'mint-2', t: NOON_MS + day * DAY_MS }))
  await store.bars.flush()
  await store.flushLake()
  nowMs += 5 * DAY_MS
  await store.retireLake()
  expect(names().some((name) => name.includes('lake/bars/dt=2025-06-21'))).toBe(false)
  const submittedMs = NOON_MS + 20 * DAY_MS + 3_600_000
  nowMs = submittedMs + 12 * MINUTE_MS
  await store.commit([
    writeOf('training', { analysis_id: 'an_1', mint: 'mint-1', submitted_at: submittedMs, price_usd: 1 }),
  ])
  for (let minute = 0; minute < 12; minute++)
    store.bars.add(closedBar({ t: submittedMs + minute * MINUTE_MS, c: 2 + minute }))
  store.bars.completeTo(nowMs)
  await store.bars.flush()
  await store.flushLake()
  await store.flushLake()
  expect(await read('SELECT fwd_ret_5m FROM lake.outcomes')).toEqual([{ fwd_ret_5m: expect.any(Number) }])
})

test('a damaged file is left out of a merge of the others', { tags: 'drill' }, async () => {
  for (let i = 0; i <= MERGE_FILES_MIN; i++) await addMinutes(i, i + 1)
  const [first] = names()
  const { size } = statSync(first)
  writeFileSync(first, Buffer.alloc(size, 7))
  await store.compactLake()
  expect((await store.status()).setAside).toMatchObject({ files: 1, rowsLost: 1 })
  expect(
    await read(
      'SELECT count(*)::INT AS n, (SELECT count(*)::INT FROM lake.lake_files) AS files FROM lake.bars',
    ),
  ).toEqual([{ n: MERGE_FILES_MIN, files: 1 }])
  expect(await read('SELECT reason, rows_lost::INT AS lost FROM lake.lake_set_aside')).toEqual([
    { reason: expect.stringMatching(/^cannot be read: /), lost: 1 },
  ])
})

describe('bars that were written anew while their file was missing', () => {
  const bars = () => read(`SELECT epoch_ms(t)::DOUBLE AS t, c FROM lake.bars ORDER BY ALL`)
  const minutes = (count: number) =>
    Array.from({ length: count }, (_, minute) => ({ t: NOON_MS + minute * MINUTE_MS, c: 2 + minute }))

  /** Loses the file of minutes 0 to 3, of which the next start emits some again. @returns a copy, and where it was */
  async function loseAndEmitAgain(): Promise<{ copy: string; path: string }> {
    await addMinutes(0, 4)
    await store.close()
    const copy = join(folder, 'copy.parquet')
    const [path, link] = names()
    copyFileSync(path, copy)
    for (const name of [path, link]) rmSync(name)
    store = await openTestStore(folder)
    await addMinutes(2, 6)
    expect(await bars()).toEqual(minutes(6).slice(2))
    return { copy, path }
  }

  const verified = async () => (await verifyLake({ dataDir: folder, nowMs: NOON_MS })).findings

  test.each(['a repair', 'a start'])('are there once after %s, when the file is put back', async (by) => {
    const { copy, path } = await loseAndEmitAgain()
    copyFileSync(copy, path)
    if (by === 'a start') {
      await store.close()
      store = await openTestStore(folder)
    }
    const { restored } = await store.repairLake({ acknowledges: true })
    expect(restored).toHaveLength(by === 'a start' ? 0 : 1)
    expect(await bars()).toEqual(minutes(6))
    expect(await store.repairLake({ acknowledges: true })).toMatchObject({ restored: [], lost: [] })
    await addMinutes(6, 7)
    await store.compactLake()
    expect(await bars()).toEqual(minutes(7))
    await store.close()
    expect(await verified()).toEqual([])
  })

  test('a file that has nothing else is put back without a bar, and its row numbers are not free', async () => {
    const { copy, path } = await loseAndEmitAgain()
    await addMinutes(0, 2)
    copyFileSync(copy, path)
    await store.repairLake({ acknowledges: true })
    expect(await bars()).toEqual(minutes(6))
    await store.close()
    expect(await verified()).toEqual([])
  })

  /** As an earlier version has put the file back, whose bars the other file has too. @returns the bars of the day */
  async function putBackAsBefore(copy: string, path: string): Promise<number> {
    const other = names().find((name) => name !== path && name.includes('dt=2025-06-01'))
    if (other === undefined) throw new Error('no other file of the day')
    await store.close()
    copyFileSync(copy, other)
    rmSync(other.replace('lake/.files', 'lake'))
    const { size } = statSync(copy)
    const sha256 = await hashFile(copy)
    await readSql(
      `UPDATE state.lake_files SET replaced_at = NULL, set_aside_at = NULL, rows_lost = NULL, byte_count = ${size},
         row_count = 4, sha256 = '${sha256}' WHERE table_name = 'bars' AND dt = DATE '2025-06-01'`,
      `ATTACH '${join(folder, 'state.duckdb')}' AS state`,
    )
    copyFileSync(copy, path)
    store = await openTestStore(folder, { log: { ...quietLog, warn: (_, message) => logged(message) } })
    return (await bars()).length
  }
  let logged: (message?: string) => void = () => {}

  test('are taken out by a repair where an earlier version has put the file back', async () => {
    const { copy, path } = await loseAndEmitAgain()
    expect(await putBackAsBefore(copy, path)).toBe(8)
    await store.repairLake({ acknowledges: true })
    expect(await bars()).toEqual(minutes(4))
    await store.repairLake({ acknowledges: true })
    expect(await bars()).toEqual(minutes(4))
    await store.compactLake()
    expect(await bars()).toEqual(minutes(4))
  })

  test('are not missing for a flush during the repair, whose labels would be unknown for good', async () => {
    const { copy, path } = await loseAndEmitAgain()
    // Days that the repair reads after it has found the repeated bars.
    for (let day = 1; day <= 10; day++)
      store.bars.add(closedBar({ mint: 'mint-9', t: NOON_MS + day * 86_400_000 }))
    await store.bars.flush()
    await store.flushLake()
    expect(await putBackAsBefore(copy, path)).toBe(18)
    await store.commit([
      writeOf('training', { analysis_id: 'an_1', mint: 'mint-1', submitted_at: NOON_MS, price_usd: 1 }),
    ])
    await store.flushLake()
    store.bars.completeTo(NOON_MS + 11 * 86_400_000)
    await store.bars.flush()
    let flushed: Promise<void> | undefined
    logged = (message) => {
      if (message?.includes('bars that the lake has already')) flushed = store.flushLake()
    }
    await store.repairLake({ acknowledges: true })
    await flushed
    await store.flushLake()
    expect(flushed).toBeDefined()
    const labels = await read('SELECT fwd_ret_5m FROM lake.outcomes WHERE fwd_ret_5m IS NULL')
    expect([labels, (await bars()).length]).toEqual([[], 14])
  })
})
