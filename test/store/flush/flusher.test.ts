// Flushes that overlap: the server gives one up after a time and asks again, while the disk still holds up the first.

import { expect, test } from 'vitest'
import { openLog } from '../../../src/store/log/log.ts'
import { logFolder } from '../../../src/store/paths.ts'
import { openLakeStore } from '../../../src/store/process/open-lake-store.ts'
import type { LakeProcessOptions } from '../../../src/store/process/protocol.ts'
import { KEEP_FOR_EVER } from '../../../src/store/retention-setting.ts'
import { encodeWrite } from '../../../src/store/rows/row-encoder.ts'
import { clockOf } from '../../support/clock.ts'
import {
  lakeGlob,
  NOON_MS,
  quietLog,
  readSql,
  removeFolder,
  submission,
  temporaryFolder,
} from '../support.ts'

const LOG_ID = 'test'

async function openStore(dataDir: string, failpoint: (step: string) => void = () => {}) {
  const options: LakeProcessOptions = {
    ...{
      dataDir,
      logId: LOG_ID,
      runId: 'run',
      lakeGraceMs: 0,
      retain: KEEP_FOR_EVER,
      diskReserveMb: 0,
      provenance: null,
      crash: null,
    },
    ages: { cooldownKeptMs: 0, labelsDelayMs: 0 },
  }
  const { store } = await openLakeStore({ options, failpoint, log: () => {}, onTrouble: () => {} }, NOON_MS)
  return store
}

test('a flush that is asked for while another runs waits for it: each commit is in the lake once', async () => {
  const dataDir = temporaryFolder()
  const log = await openLog(
    {
      ...{ folder: logFolder(dataDir), logId: LOG_ID, clock: clockOf(() => NOON_MS), log: quietLog },
      flushed: { lsn: 0, knownAtMs: 0 },
    },
    () => {},
  )
  for (let i = 0; i < 100; i++)
    await log.append(submission(`an_${i}`).map((write) => encodeWrite(write, null)))
  await log.seal()
  const store = await openStore(dataDir)
  const ask = { nowMs: NOON_MS, throughLsn: 100 }
  await Promise.all([store.flusher.flush(ask), store.flusher.flush(ask)])
  await store.database.close()
  await log.close()
  expect(await readSql(`SELECT count(*)::INT AS rows FROM ${lakeGlob(dataDir, 'training')}`)).toEqual([
    { rows: 100 },
  ])
  removeFolder(dataDir)
})

test('a flush that had to wait says when it came to its turn: what came meanwhile was not known when it was asked for', async () => {
  const dataDir = temporaryFolder()
  const heldMs = 30
  let isHeld = true
  const store = await openStore(dataDir, (step) => {
    if (step === 'flush:read' && isHeld) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, heldMs)
    isHeld = false
  })
  const first = store.flusher.flush({ nowMs: NOON_MS, throughLsn: 0 })
  const second = store.flusher.flush({ nowMs: NOON_MS, throughLsn: 0 })
  await first
  const row = { mint: 'mint', name: 'name', symbol: 'N', graduated: false, updated_at: NOON_MS + heldMs }
  store.tokens.take({ first: 0, rows: [row] })
  await second
  await store.database.close()
  const sql = `SELECT count(*)::INT AS rows FROM ${lakeGlob(dataDir, 'tokens')} WHERE known_at >= updated_at`
  expect(await readSql(sql)).toEqual([{ rows: 1 }])
  removeFolder(dataDir)
})

test('of versions of a token that one flush writes the last one counts, be they of one time or of several', async () => {
  const dataDir = temporaryFolder()
  const store = await openStore(dataDir)
  const version = (mint: string, name: string, updatedAtMs: number) => ({
    ...{ mint, name, symbol: 'N', graduated: false, updated_at: updatedAtMs },
  })
  const mints = Array.from({ length: 50 }, (_, index) => `mint ${index}`)
  store.tokens.take({
    first: 0,
    rows: mints.flatMap((mint, index) => [
      version(mint, 'first', NOON_MS),
      version(mint, 'last', NOON_MS + (index % 2)),
    ]),
  })
  await store.flusher.flush({ nowMs: NOON_MS, throughLsn: 0 })
  await store.database.close()
  const attached = `ATTACH '${dataDir}/lake/catalog.duckdb' AS lake (READ_ONLY)`
  expect(
    await readSql('SELECT name, count(*)::INT AS count FROM lake.tokens GROUP BY name', attached),
  ).toEqual([{ name: 'last', count: mints.length }])
  expect(
    await readSql(`SELECT count(DISTINCT known_at)::INT AS times FROM ${lakeGlob(dataDir, 'tokens')}`),
  ).toEqual([{ times: 1 }])
  removeFolder(dataDir)
})

test('of versions of a token the one that came last counts, also where the clock and the market went back before it, and after a restart', async () => {
  const dataDir = temporaryFolder()
  const HOUR_MS = 3_600_000
  const versions = [
    { name: 'first', atMs: NOON_MS },
    { name: 'after the clock went back', atMs: NOON_MS - HOUR_MS },
    { name: 'after a restart', atMs: NOON_MS - HOUR_MS - 1 },
  ]
  for (const { name, atMs } of versions) {
    const store = await openStore(dataDir)
    const row = { mint: 'mint', name, symbol: 'N', graduated: false, updated_at: atMs }
    store.tokens.take({ first: 0, rows: [row] })
    await store.flusher.flush({ nowMs: atMs, throughLsn: 0 })
    await store.database.close()
    const attached = `ATTACH '${dataDir}/lake/catalog.duckdb' AS lake (READ_ONLY)`
    expect(await readSql('SELECT name FROM lake.tokens', attached)).toEqual([{ name }])
  }
  removeFolder(dataDir)
})

test('of versions of a token that one flush writes the last one counts, also where market time went back between them', async () => {
  const dataDir = temporaryFolder()
  const store = await openStore(dataDir)
  const version = (name: string, atMs: number) => ({
    ...{ mint: 'mint', name, symbol: 'N', graduated: false, updated_at: atMs },
  })
  const HOUR_MS = 3_600_000
  store.tokens.take({
    first: 0,
    rows: [
      version('first', NOON_MS - 1),
      version('a clock that was ahead', NOON_MS + HOUR_MS),
      version('put right', NOON_MS),
    ],
  })
  await store.flusher.flush({ nowMs: NOON_MS, throughLsn: 0 })
  await store.database.close()
  const attached = `ATTACH '${dataDir}/lake/catalog.duckdb' AS lake (READ_ONLY)`
  expect(await readSql('SELECT name FROM lake.tokens', attached)).toEqual([{ name: 'put right' }])
  removeFolder(dataDir)
})

test('files have the time at which they were written, also after a profile was written by a clock that was ahead: those of a date that is over are merged', async () => {
  const dataDir = temporaryFolder()
  const DAY_MS = 86_400_000
  const store = await openStore(dataDir)
  const write = async (first: number, nowMs: number) => {
    const row = { mint: 'mint', name: `${first}`, symbol: 'N', graduated: false, updated_at: NOON_MS }
    store.tokens.take({ first, rows: [row] })
    await store.flusher.flush({ nowMs, throughLsn: 0 })
  }
  await write(0, NOON_MS + DAY_MS)
  await write(1, NOON_MS)
  await write(2, NOON_MS + 1)
  const attached = `ATTACH '${dataDir}/lake/catalog.duckdb' AS lake (READ_ONLY)`
  const files = () =>
    readSql('SELECT epoch_ms(written_at)::DOUBLE AS at FROM lake.lake_files ORDER BY row_seq_first', attached)
  expect(await files()).toEqual([{ at: NOON_MS + DAY_MS }, { at: NOON_MS }, { at: NOON_MS + 1 }])
  expect(await readSql('SELECT epoch_ms(written_at)::DOUBLE AS at FROM lake.lake_info', attached)).toEqual([
    { at: NOON_MS + 1 },
  ])
  const HOUR_MS = 3_600_000
  const instant = { wallMs: NOON_MS + HOUR_MS + 1, monotonicMs: 0 }
  expect(await store.compactor.compact(instant, HOUR_MS)).toMatchObject({ merged: 1 })
  expect(await files()).toHaveLength(1)
  expect(await readSql('SELECT name FROM lake.tokens', attached)).toEqual([{ name: '2' }])
  await store.compactor.close()
  await store.database.close()
  removeFolder(dataDir)
})

test('rows that are listed are told of once the catalog has them, not before: who reads of them can query them', async () => {
  const dataDir = temporaryFolder()
  const asked: Promise<number>[] = []
  const told = async () => (await store.lake.status({})).find(({ table }) => table === 'tokens')!.files
  const store = await openStore(dataDir, (step) => {
    if (step === 'flush:listed') asked.push(told())
  })
  store.tokens.take({
    first: 0,
    rows: [{ mint: 'mint', name: 'name', symbol: 'N', graduated: false, updated_at: NOON_MS }],
  })
  await store.flusher.flush({ nowMs: NOON_MS, throughLsn: 0 })
  asked.push(told())
  expect(await Promise.all(asked)).toEqual([0, 1])
  await store.database.close()
  removeFolder(dataDir)
})
