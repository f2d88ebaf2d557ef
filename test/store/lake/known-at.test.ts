// When rows came to the lake: never earlier than those before them, whatever the clock says and wherever the last time was kept.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { duckdb } from '../../../src/store/duckdb/duckdb.ts'
import type { Store } from '../../../src/store/store.ts'
import { clockOf } from '../../support/clock.ts'
import {
  closedBar,
  lakeGlob,
  NOON_MS,
  openTestStore,
  readSql,
  removeFolder,
  temporaryFolder,
} from '../support.ts'

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000

let folder: string
let store: Store
let nowMs: number
let bars: number
const open = async (): Promise<void> => {
  store = await openTestStore(folder, { clock: clockOf(() => nowMs) })
}
beforeEach(async () => {
  nowMs = NOON_MS
  bars = 0
  folder = temporaryFolder()
  await open()
})
afterEach(async () => {
  await store.close()
  removeFolder(folder)
})

/** Writes one more bar and one more profile. */
async function write(): Promise<void> {
  store.bars.add(closedBar({ t: NOON_MS + ++bars * MINUTE_MS }))
  await store.bars.flush()
  await store.profiles.write([
    { mint: 'mint', name: `${bars}`, symbol: 'N', graduated: false, updated_at: NOON_MS + bars },
  ])
  await store.flushLake()
}

/** The times of both tables, in the order in which their rows were written. */
async function expectAscending(): Promise<void> {
  for (const [table, order] of [
    ['bars', 't'],
    ['tokens', 'updated_at'],
  ]) {
    const rows = await readSql(
      `SELECT epoch_ms(known_at)::DOUBLE AS ms FROM ${lakeGlob(folder, table)} ORDER BY ${order}`,
    )
    const times = rows.map(({ ms }) => ms as number)
    expect(times).toHaveLength(bars)
    expect(times).toEqual([...new Set(times)].sort((a, b) => a - b))
  }
}

/** Changes the state of a store that is closed. */
async function changeState(sql: string): Promise<void> {
  const instance = await duckdb.DuckDBInstance.create(join(folder, 'state.duckdb'), { threads: '1' })
  const connection = await instance.connect()
  await connection.run(sql)
  connection.closeSync()
  instance.closeSync()
}

test('rows of later flushes have later times, of one millisecond and after the clock was set back', async () => {
  await write()
  await write()
  nowMs -= HOUR_MS
  await write()
  await write()
  nowMs += 2 * HOUR_MS
  await write()
  await expectAscending()
  const last = await readSql(`SELECT max(known_at) AS at FROM ${lakeGlob(folder, 'bars')}`)
  expect(last).toEqual([{ at: new Date(nowMs) }])
})

test('so have those after an upgrade, a restart, and the loss of the state', async () => {
  await write()
  const restarts = [
    () => changeState('ALTER TABLE state_position DROP COLUMN last_known_ms'),
    async () => {},
    async () => {
      for (const name of ['state.duckdb', 'state.duckdb.wal']) rmSync(join(folder, name), { force: true })
    },
  ]
  for (const change of restarts) {
    await store.close()
    nowMs -= HOUR_MS
    await change()
    await open()
    await write()
  }
  await expectAscending()
})
