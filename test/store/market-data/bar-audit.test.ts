// The engine's count of closed bars against what the lake has: they agree over restarts, kills, repetitions and merges, and each loss
// on the way is told by the running store, by its metric and by `lake verify`.
import type { ChildProcess } from 'node:child_process'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { makeBackup } from '../../../src/store/backup/backup.ts'
import { BAR_RUNS_MAX, BARS_WAITING_MAX } from '../../../src/store/limits.ts'
import { BAR_NUMBER_COUNT } from '../../../src/store/market-data/bar-batch.ts'
import { statePath } from '../../../src/store/paths.ts'
import type { Request } from '../../../src/store/process/protocol.ts'
import { openStore } from '../../../src/store/store.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { clockOf } from '../../support/clock.ts'
import { lendLakeProcess } from '../../support/lake/lend.ts'
import {
  closedBar,
  lakeGlob,
  NOON_MS,
  openTestStore,
  quietLog,
  readSql,
  removeFolder,
  temporaryFolder,
} from '../support.ts'

const MINUTE_MS = 60_000
let folder: string
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => removeFolder(folder))

/** SQL of the minute that a bar is of. */
const MINUTE = `((epoch_ms(t) - ${NOON_MS}) // ${MINUTE_MS})::INT`
const minute = (at: number, mint = 'mint-1') => closedBar({ mint, t: NOON_MS + at * MINUTE_MS })
const verify = () => verifyLake({ dataDir: folder, nowMs: NOON_MS, confirmMs: 1 })

/** Changes what the server sends to its lake process. @returns a function that ends it */
function tamper(lakeProcess: ChildProcess, change: (request: Request) => Request): () => void {
  const { send } = lakeProcess
  const sendChanged = (message: object, done: () => void): boolean =>
    Reflect.apply(send, lakeProcess, ['kind' in message ? change(message as Request) : message, done])
  lakeProcess.send = sendChanged as ChildProcess['send']
  return () => {
    lakeProcess.send = send
  }
}

/** Takes the last bar out of each batch. */
function loseBar(request: Request): Request {
  if (request.kind !== 'bars') return request
  const { ask } = request as Request<'bars'>
  if (ask.batch.mints.length === 0) return request
  const batch = {
    mints: ask.batch.mints.slice(0, -1),
    numbers: ask.batch.numbers.slice(0, -BAR_NUMBER_COUNT),
  }
  return { ...request, ask: { ...ask, batch } }
}

test('a bar that is lost on the way is told once in the log, by the status, by the figures and by lake verify', async () => {
  const error = vi.fn()
  const lakeProcess = lendLakeProcess()
  const stopLosing = tamper(lakeProcess, loseBar)
  const store = await openStore({
    ...{ dataDir: folder, lakeFlushMs: 0, clock: clockOf(() => NOON_MS), log: { ...quietLog, error } },
    lakeProcess,
  })
  store.bars.add(minute(0))
  await store.flushLake()
  expect(store.figures().barsMissing).toBe(1)
  store.bars.add(minute(1))
  store.bars.add(closedBar({ tf: '5m' }))
  await store.flushLake()
  expect(store.figures().barsMissing).toBe(2)
  expect(await store.status()).toMatchObject({
    reasons: ['closed bars of this run are missing in the lake: 1 of 1m, 1 of 5m'],
  })
  expect(error.mock.calls.map(([, line]) => line)).toEqual([
    'closed bars of this run are missing in the lake: 1 of 1m',
  ])
  stopLosing()
  store.bars.add(minute(2))
  store.bars.add(closedBar({ tf: '5m', t: NOON_MS + 5 * MINUTE_MS }))
  await store.close()
  const { runId } = store
  expect((await verify()).findings.map(({ message }) => message)).toEqual([
    `bars of 1m in run ${runId}: 3 were closed, and the lake got 2: 1 are missing; see mintlake lake repair`,
    `bars of 5m in run ${runId}: 2 were closed, and the lake got 1: 1 are missing; see mintlake lake repair`,
  ])
  const copy = `${folder}-copy`
  const options = { nowMs: NOON_MS, check: () => {}, log: quietLog }
  expect((await makeBackup({ path: folder, lsn: 0 }, copy, options)).findings).toHaveLength(2)
  removeFolder(copy)
  const next = await openTestStore(folder)
  await next.repairLake()
  await next.close()
  expect(await verify()).toMatchObject({
    findings: [],
    notes: [
      `bars of 1m in run ${runId}: 1 are missing; settled`,
      `bars of 5m in run ${runId}: 1 are missing; settled`,
    ],
  })
})

test('the engine’s own count is what the lake is compared with', async () => {
  const store = await openTestStore(folder)
  let closed = [0, 0, 0, 1, 0, 0, 0, 0, 0]
  store.bars.compareWith(() => closed)
  store.bars.add(minute(0))
  await store.flushLake()
  expect(store.figures().barsMissing).toBe(0)
  closed = [0, 0, 0, 4, 0, 0, 0, 0, 2]
  await store.flushLake()
  expect((await store.status()).reasons).toEqual([
    'closed bars of this run are missing in the lake: 3 of 1m, 2 of 1d',
  ])
  await store.close()
})

test('rows that leave the files unnoticed are found, and bars of before they were counted are not missing', {
  tags: 'drill',
}, async () => {
  let store = await openTestStore(folder)
  for (let at = 0; at < 4; at++) store.bars.add(minute(at))
  await store.close()
  const run = async (sql: string) =>
    void (await readSql('SELECT 1', `ATTACH '${statePath(folder)}' AS state`, sql))
  await run('DROP TABLE state.bar_accounts')
  expect((await verify()).notes).toContain('closed bars were not counted yet: the next start begins to')
  store = await openTestStore(folder)
  store.bars.add(minute(9))
  await store.close()
  expect((await verify()).findings).toEqual([])
  await run(`UPDATE state.bar_accounts SET written = written + 1 WHERE run_id = ''`)
  expect((await verify()).findings).toEqual([
    { table: 'bars', file: null, message: '6 rows were written, and 5 found', isLoss: true },
  ])
})

test('the counts of old runs are added up', async () => {
  await (await openTestStore(folder)).close()
  await readSql(
    'SELECT 1',
    `ATTACH '${statePath(folder)}' AS state`,
    `INSERT INTO state.bar_accounts SELECT 'run' || lpad(i::VARCHAR, 6, '0'), '1m', 5, 1, 1, 3, 0, i
     FROM range(${BAR_RUNS_MAX + 20}) AS runs(i)`,
    `UPDATE state.bar_accounts SET written = -${3 * (BAR_RUNS_MAX + 20)} WHERE run_id = ''`,
  )
  await (await openTestStore(folder)).close()
  const rows = await readSql(
    `SELECT count(*)::INT AS rows, sum(closed)::INT AS closed, sum(written)::INT AS written,
       any_value(to_ms) FILTER (run_id = 'earlier')::INT AS "to" FROM state.bar_accounts`,
    `ATTACH '${statePath(folder)}' AS state (READ_ONLY)`,
  )
  const runs = BAR_RUNS_MAX + 20
  expect(rows).toEqual([{ rows: BAR_RUNS_MAX + 2, closed: 5 * runs, written: 0, to: 19 }])
  expect((await verify()).findings).toEqual([])
})

test('bars for which there was no room are told as dropped, and are not missing', {
  tags: 'drill',
  timeout: 120_000,
}, async () => {
  const store = await openTestStore(folder)
  for (let at = 0; at < BARS_WAITING_MAX + 7; at++)
    store.bars.add(minute(Math.floor(at / 1000), `m${at % 1000}`))
  await store.flushLake()
  // The reply tells what is in files: then there is room again.
  store.bars.completeTo(NOON_MS)
  await store.bars.flush()
  store.bars.add(minute(9_000))
  await store.flushLake()
  expect(store.figures().barsMissing).toBe(0)
  expect((await store.status()).reasons).toEqual([
    'closed bars were dropped, since the lake did not keep up: 7 of 1m',
  ])
  await store.close()
  expect(await verify()).toMatchObject({
    findings: [],
    notes: [`bars of 1m in run ${store.runId}: 7 were dropped, since the lake did not keep up`],
  })
})

test('a token that comes back with older bars has them in the lake, each once', async () => {
  const store = await openTestStore(folder)
  for (const at of [5, 6, 3, 3, 4, 6, 2]) store.bars.add(minute(at))
  await store.flushLake()
  for (const at of [3, 1, 7, 5]) store.bars.add(minute(at))
  await store.flushLake()
  const rows = await readSql(`SELECT ${MINUTE} AS minute FROM ${lakeGlob(folder, 'bars')} ORDER BY minute`)
  expect(rows.map(({ minute: at }) => at)).toEqual([1, 2, 3, 4, 5, 6, 7])
  expect(store.figures().barsMissing).toBe(0)
  await store.close()
  expect((await verify()).findings).toEqual([])
})
