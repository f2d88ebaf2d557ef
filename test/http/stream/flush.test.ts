// When followers are sent changes: at once when nothing was sent for a while, together when much changes, and
// with pauses when sending is much work.
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, it, vi } from 'vitest'
import { Broadcaster } from '../../../src/http/stream/broadcaster.ts'
import type { StreamWriter } from '../../../src/http/stream/follower.ts'
import { MarketChannel } from '../../../src/http/stream/market-channel.ts'
import { Market } from '../../../src/market/market.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'

const FLUSH_MS = 50
const LONG_WRITE_MS = 40
const MINTS = ['one', 'two'].map(mintOfSymbol)

/** Followers of a market, the writes they received, and a way to change the market. `onWrite` runs inside each write. */
function followed(flushMs: number, onWrite = () => {}, followers = 1) {
  const market = new Market({ tokensMax: MINTS.length })
  const broadcaster = new Broadcaster(market, { flushMs })
  const writes: string[] = []
  const writer: StreamWriter = {
    write(bytes) {
      writes.push(bytes.toString())
      onWrite()
      return true
    },
    end() {},
    onWritable() {},
    onClosed() {},
  }
  for (let count = 0; count < followers; count++)
    broadcaster.subscribe(broadcaster.connect(writer, 'ndjson'), new MarketChannel(market, 'all'), market.seq)
  let ts = 1_000_000
  const change = (...mints: string[]) => {
    for (const mint of mints) market.apply({ type: 'token', mint, ts: ++ts, name: `${ts}`, symbol: 'S' }, ts)
  }
  return { broadcaster, writes, change }
}

afterEach(() => void vi.useRealTimers())

it('a single change is sent at once; later changes are sent together when the flush interval is over', () => {
  vi.useFakeTimers()
  const { broadcaster, writes, change } = followed(FLUSH_MS)
  change(MINTS[0])
  vi.advanceTimersByTime(0)
  expect(writes).toHaveLength(1)

  vi.advanceTimersByTime(10)
  change(...MINTS)
  vi.advanceTimersByTime(FLUSH_MS - 10 - 2)
  expect(writes, 'not before its time').toHaveLength(1)
  vi.advanceTimersByTime(4)
  expect(writes, 'nor later').toHaveLength(2)
  expect(writes[1].trimEnd().split('\n')).toHaveLength(2)

  vi.advanceTimersByTime(10 * FLUSH_MS)
  change(MINTS[0])
  vi.advanceTimersByTime(0)
  expect(writes).toHaveLength(3)
  broadcaster.close('draining')
})

function work(): void {
  const before = process.threadCpuUsage().user
  while (process.threadCpuUsage().user - before < LONG_WRITE_MS * 1_000);
}

it('a flush that takes much CPU time lets others run, and sends all followers the same', async () => {
  const { broadcaster, writes, change } = followed(0, work, 3)
  change(MINTS[0])
  for (const written of [1, 2, 3]) {
    await turn()
    expect(writes).toHaveLength(written)
    change(MINTS[1])
  }
  expect(new Set(writes).size).toBe(1)
  await expect.poll(() => writes.length, { timeout: 10_000 }).toBe(6)
  expect(new Set(writes.slice(3)).size).toBe(1)
  broadcaster.close('draining')
})

it('a flush that took much CPU time is followed by a pause', async () => {
  const { broadcaster, writes, change } = followed(0, work)
  change(MINTS[0])
  await turn()
  change(MINTS[1])
  await turn()
  expect(writes).toHaveLength(1)
  await expect.poll(() => writes.length).toBe(2)
  broadcaster.close('draining')
})

it('a flush that only waited is not followed by a pause', async () => {
  const cell = new Int32Array(new SharedArrayBuffer(4))
  const { broadcaster, writes, change } = followed(0, () => void Atomics.wait(cell, 0, 0, LONG_WRITE_MS))
  change(MINTS[0])
  await turn()
  change(MINTS[1])
  await turn()
  expect(writes).toHaveLength(2)
  broadcaster.close('draining')
})

it('of an overloaded server a tenth of the streams ends, those that began last', () => {
  const { broadcaster } = followed(0)
  const ended: { number: number; last: string; reason: string }[] = []
  for (let number = 0; number < 24; number++)
    broadcaster.connect(
      {
        write: () => true,
        end: (bytes, reason) => void ended.push({ number, last: bytes.toString(), reason }),
        onWritable() {},
        onClosed() {},
      },
      'ndjson',
    )
  broadcaster.endLatest()
  expect(ended.map(({ number, reason }) => [number, reason])).toEqual(
    [21, 22, 23].map((number) => [number, 'overloaded']),
  )
  const waits = ended.map(({ last }) => JSON.parse(last).retryAfterMs)
  expect(new Set(waits).size, 'they come back apart').toBe(3)
  expect(broadcaster.size).toBe(22)
  for (let step = 0; step < 30; step++) broadcaster.endLatest()
  expect(broadcaster.size).toBe(0)
  expect(broadcaster.disconnects.overloaded).toBe(25)
})
