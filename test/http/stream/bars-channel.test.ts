// The bars of a token over a WebSocket of the real server, by a clock that the test sets: each follower is sent every bar that has
// changed, and no other.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { clockOf } from '../../support/clock.ts'
import { StreamReader } from '../../support/stream-reader.ts'
import { newMint } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

/** The start of a bar of every timeframe up to an hour. */
const START_MS = 1_800_000_000_000

let server: TestServer
let mint: string
let nowMs: number
const readers: StreamReader[] = []
const openServer = (follow: object) => openTestServer({}, { clock: clockOf(() => nowMs), tuning: { follow } })
beforeEach(async () => {
  nowMs = START_MS
  mint = newMint()
  server = await openServer({ heartbeatMs: 40 })
})
afterEach(async () => {
  for (const reader of readers.splice(0)) reader.close()
  await server.remove()
})

const trade = (ts: number, priceUsd = 1) => ({
  type: 'trade',
  mint,
  ts,
  side: 'buy',
  tokenAmount: 1,
  priceUsd,
})
const push = (...records: object[]) => server.client.push(...records)

/** A follower of the bars, once it has been sent the first ones. */
async function followed(more: object = {}) {
  const reader = new StreamReader(`${server.url.replace('http', 'ws')}/api/v1/stream`)
  readers.push(reader)
  await reader.send({ op: 'subscribe', topic: 'ohlc', mint, tf: '1s', ...more })
  const told = (message: Awaited<ReturnType<StreamReader['next']>>) => ({
    from: message.from - START_MS,
    bars: message.rows.map(({ t, n, closed }: { t: number; n: number; closed: boolean }) => [
      t - START_MS,
      n,
      closed,
    ]),
  })
  const snapshot = told(await reader.until('snapshot'))
  return { snapshot, changes: async () => told(await reader.until('changes')).bars }
}

it('a bar that a late trade opens between others is told, and no bar that is as it was', async () => {
  await push(trade(START_MS))
  const { snapshot, changes } = await followed()
  expect(snapshot).toEqual({ from: -5_000, bars: [[0, 1, false]] })
  await push(trade(START_MS - 3_000))
  expect(await changes()).toEqual([[-3_000, 1, false]])
  await push(trade(START_MS))
  expect(await changes()).toEqual([[0, 2, false]])
  nowMs += 20_000
  expect(await changes()).toEqual([
    [-3_000, 1, true],
    [0, 2, true],
  ])
})

it('each bar that a feed heals is told alone, and that all are closed once it has', async () => {
  await push(trade(START_MS))
  const { changes } = await followed()
  nowMs += 20_000
  expect(await changes()).toEqual([[0, 1, true]])
  await push({ type: 'disconnect', ts: nowMs, healUntilMs: nowMs + 60_000 })
  nowMs += 10_000
  await push(trade(nowMs))
  expect(await changes()).toEqual([[30_000, 1, false]])
  for (const atMs of [22_000, 25_000, 25_010]) {
    await push(trade(START_MS + atMs))
    expect(await changes()).toEqual([[Math.floor(atMs / 1_000) * 1_000, atMs === 25_010 ? 2 : 1, false]])
  }
  nowMs += 20_000
  await push({ type: 'reconnect', ts: nowMs, healed: true })
  expect(await changes()).toEqual([
    [22_000, 1, true],
    [25_000, 2, true],
    [30_000, 1, true],
  ])
})

it('bars are told that are open again, because a feed tells late that it heals', async () => {
  await push(trade(START_MS))
  const { changes } = await followed()
  nowMs += 20_000
  expect(await changes()).toEqual([[0, 1, true]])
  await push({ type: 'disconnect', ts: nowMs, sinceMs: START_MS, healUntilMs: nowMs + 60_000 })
  expect(await changes()).toEqual([[0, 1, false]])
})

it('that a bar has closed is told whatever the others asked for', async () => {
  await push(trade(START_MS))
  const first = await followed({ limit: 5 })
  const later = await followed({ from: START_MS + 1 })
  expect(later.snapshot).toEqual({ from: 1, bars: [] })
  await push(trade(START_MS))
  expect(await first.changes()).toEqual([[0, 2, false]])
  const same = await followed()
  expect(same.snapshot.bars).toEqual([[0, 2, false]])
  nowMs += 20_000
  expect(await first.changes()).toEqual([[0, 2, true]])
  expect(await same.changes()).toEqual([[0, 2, true]])
  // What starts before the time that it asked for was not told.
  await push(trade(nowMs))
  expect(await later.changes()).toEqual([[20_000, 1, false]])
})

it('that a bar has closed is told though another follower came just then', async () => {
  await server.remove()
  // Whether time alone has closed bars is looked at once a second: the other comes before.
  server = await openServer({})
  await push(trade(START_MS))
  const first = await followed()
  nowMs += 20_000
  await push({ type: 'token', mint: newMint(), ts: nowMs, name: 'N', symbol: 'S' })
  expect((await followed()).snapshot.bars).toEqual([[0, 1, true]])
  expect(await first.changes()).toEqual([[0, 1, true]])
})

it('who resumes with the time that the last message had has every bar that has changed since', async () => {
  await push(trade(START_MS))
  const { snapshot } = await followed()
  nowMs += 2_000
  await push(trade(START_MS - 4_000), trade(nowMs))
  const { bars } = (await followed({ from: START_MS + snapshot.from })).snapshot
  expect(bars).toEqual([
    [-4_000, 1, true],
    [0, 1, false],
    [2_000, 1, false],
  ])
})
