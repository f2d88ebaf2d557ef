// Tests of replays: each recorded trade becomes one event, in order and not before its time.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ProgressReport } from '../../src/ingest/replay/progress-report.ts'
import { Replay } from '../../src/ingest/replay/replay.ts'
import type { TradeBatch } from '../../src/ingest/replay/trade-batch.ts'
import { openTradeFile } from '../../src/ingest/replay/trade-file.ts'
import { isMint, mintOfSymbol } from '../../src/schema/mint.ts'
import { MemoryLog, MemorySink, silentLog } from './memory-sink.ts'

const NOW = 1_772_000_000_000
const FIRST = 1_381_147_200_000

type Row = [offsetMs: number, symbol: string, price: number, size: number, side?: 'buy' | 'sell' | null]

/** All batches of a file share their symbols. */
const SYMBOLS = ['SPY', 'IBM', 'A', '', mintOfSymbol('already a mint')]

function batchOf(rows: Row[]): TradeBatch {
  return {
    rows: rows.length,
    tsMs: Float64Array.from(rows, ([offsetMs]) => FIRST + offsetMs),
    price: Float64Array.from(rows, (row) => row[2]),
    size: Float64Array.from(rows, (row) => row[3]),
    symbolCode: Uint32Array.from(rows, (row) => SYMBOLS.indexOf(row[1])),
    symbols: SYMBOLS,
    side: rows.some((row) => row[4] !== undefined) ? rows.map((row) => row[4] ?? null) : null,
    wallet: null,
    tx: null,
    faults: new Map(),
  }
}

async function* batches(...parts: Row[][]): AsyncGenerator<TradeBatch> {
  for (const part of parts) yield batchOf(part)
}

function fakeClock() {
  const clock = { timeMs: NOW, now: () => clock.timeMs, monotonicMs: () => clock.timeMs }
  return clock
}

describe('a replay as fast as possible', () => {
  test('applies rows of one recorded time in one turn of the event loop', async () => {
    const perSecond = 3_000
    const rows = Array.from(
      { length: 4 * perSecond },
      (_, at): Row => [1_000 * Math.floor(at / perSecond), 'SPY', 1, 1],
    )
    const sink = new MemorySink()
    const replay = new Replay({ trades: batches(rows), speed: 'max' }, sink, fakeClock(), silentLog)
    const seen = new Set<number>()
    let isDone = false
    replay.done.then(() => {
      isDone = true
    })
    while (!isDone) {
      seen.add(sink.events.filter(({ type }) => type === 'trade').length)
      await new Promise(setImmediate)
    }
    expect([...seen].filter((count) => count % perSecond !== 0)).toEqual([])
    expect(seen.size).toBeGreaterThan(2)
  })

  test('makes a trade of each row in order, and names each symbol once, before its first trade', async () => {
    const sink = new MemorySink()
    const parts: Row[][] = [
      [
        [0, 'SPY', 168.5, 100],
        [0, 'IBM', 180, 5],
      ],
      [[7, 'SPY', 168.6, 0]],
    ]
    const replay = new Replay({ trades: batches(...parts), speed: 'max' }, sink, fakeClock(), silentLog)
    await replay.ready
    await replay.done
    const spy = mintOfSymbol('SPY')
    expect(isMint(spy)).toBe(true)
    expect(sink.events.map((event) => event.type)).toEqual(['token', 'trade', 'token', 'trade', 'trade'])
    expect(sink.events[0]).toEqual({ type: 'token', mint: spy, ts: FIRST, name: 'SPY', symbol: 'SPY' })
    expect(sink.events[1]).toEqual({
      type: 'trade',
      mint: spy,
      ts: FIRST,
      side: 'buy',
      tokenAmount: 100,
      priceUsd: 168.5,
    })
    expect(sink.events[4]).toMatchObject({ mint: spy, ts: FIRST + 7, tokenAmount: 0 })
    expect(sink.received.map(({ receivedAtMs }) => receivedAtMs - FIRST)).toEqual([0, 0, 0, 0, 7])
    expect(replay.describe()).toMatchObject({
      state: 'finished',
      rows: 3,
      symbols: 2,
      accepted: 5,
      rejected: {},
    })
  })

  test('keeps a symbol that is a mint and does not name it', async () => {
    const mint = mintOfSymbol('already a mint')
    const sink = new MemorySink()
    await new Replay({ trades: batches([[0, mint, 1, 1]]), speed: 'max' }, sink, fakeClock(), silentLog).done
    expect(sink.events).toMatchObject([{ type: 'trade', mint }])
  })

  test('takes the side from the file, or else from the change of price', async () => {
    const rows: Row[] = [
      [0, 'A', 10, 1],
      [1, 'A', 9, 1],
      [2, 'A', 9, 1],
      [3, 'A', 11, 1],
      [4, 'A', 12, 1, 'sell'],
      [5, 'A', 12, 1, null],
    ]
    const sink = new MemorySink()
    await new Replay({ trades: batches(rows), speed: 'max' }, sink, fakeClock(), silentLog).done
    const sides = sink.events.flatMap((event) => (event.type === 'trade' ? [event.side] : []))
    expect(sides).toEqual(['buy', 'sell', 'sell', 'buy', 'sell', 'sell'])
  })

  test('drops rows that are not trades and counts them by reason', async () => {
    const rows: Row[] = [
      [0, 'A', 0, 1],
      [0, 'A', Number.NaN, 1],
      [0, 'A', 1, -1],
      [0, '', 1, 1],
      [Number.NaN, 'A', 1, 1],
      [1, 'A', 1, 1],
    ]
    const sink = new MemorySink()
    const replay = new Replay({ trades: batches(rows), speed: 'max' }, sink, fakeClock(), silentLog)
    await replay.done
    expect(replay.describe().rejected).toEqual({
      price_invalid: 2,
      size_invalid: 1,
      symbol_missing: 1,
      time_invalid: 1,
    })
    expect(sink.events.map(({ type }) => type)).toEqual(['token', 'trade'])
  })

  test('says with its last word that it has refused much, with the first reasons and samples, however few rows', async () => {
    const log = new MemoryLog()
    const replay = new Replay(
      { trades: batches([[Number.NaN, 'A', 1, 1]], [[0, 'A', 1, 1]], [[1, 'A', -1, 1]]), speed: 'max' },
      new MemorySink(),
      fakeClock(),
      log,
    )
    await replay.done
    const last = log.lines.at(-1)
    expect(last?.level).toBe('warn')
    expect(last?.message).toBe(
      'the replay has finished: the feed replay has refused 2 of 4 records (time_invalid 1, price_invalid 1); ' +
        'the first of them: time_invalid: the time is NaN ms; price_invalid: the price is -1',
    )
    expect(replay.describe().refusals).toMatchObject({ isTooMuch: true, share: 0.5, windowMs: null })
  })

  test('a first row without a time does not decide when the others are due', async () => {
    const sink = new MemorySink()
    const rows: Row[] = [
      [Number.NaN, 'A', 1, 1],
      [0, 'A', 1, 1],
      [60_000, 'A', 2, 1],
    ]
    const clock = fakeClock()
    const replay = new Replay({ trades: batches(rows), speed: 1, time: 'now' }, sink, clock, silentLog)
    await replay.ready
    await expect.poll(() => sink.events.map(({ ts }) => ts)).toEqual([NOW, NOW])
    clock.timeMs += 60_000
    await replay.done
    expect(sink.events.at(-1)?.ts).toBe(NOW + 60_000)
  })

  test('lets the event loop run during a long file, and reports progress up to the end', async () => {
    const rows = Array.from({ length: 50_000 }, (_, i): Row => [i, 'A', 1 + i, 1])
    const clock = fakeClock()
    const texts: string[] = []
    const terminal = { write: (text: string) => void texts.push(text) }
    let turns = 0
    const sink = new MemorySink()
    const replay = new Replay(
      {
        ...{ trades: batches(rows), speed: 'max', rowsTotal: rows.length },
        report: new ProgressReport('rows', silentLog, terminal),
      },
      sink,
      clock,
      silentLog,
    )
    const timer = setInterval(() => {
      turns++
      clock.timeMs += 1_000
    }, 0)
    await replay.done
    clearInterval(timer)
    expect(turns).toBeGreaterThan(1)
    expect(texts.length).toBeGreaterThan(1)
    expect(texts[0]).toMatch(/ \d?\d %, \d+ of 50000 rows, \d+ a second, \d+ s left$/)
    expect(texts.at(-1)).toBe('\r\x1b[2K')
    expect(replay.progress()).toMatchObject({ rows: 50_000, percent: 100, etaMs: 0, atMs: FIRST + 49_999 })
  })
})

describe('a replay by the clock', () => {
  const rows: Row[] = [
    [0, 'A', 1, 1],
    [100, 'A', 2, 1],
    [1_000, 'A', 3, 1],
    [60_000, 'A', 4, 1],
  ]

  /** Moves the clock and waits until the replay has had its turn. */
  async function tick(clock: { timeMs: number }, byMs: number, sink: MemorySink, trades: number) {
    clock.timeMs += byMs
    await expect.poll(() => sink.events.length - 1, { interval: 5 }).toBe(trades)
  }

  test('applies a trade at recorded speed when as much time has passed as in the file', async () => {
    const clock = fakeClock()
    const sink = new MemorySink()
    const replay = new Replay({ trades: batches(rows), speed: 1 }, sink, clock, silentLog)
    await replay.ready
    expect(sink.events).toHaveLength(2)
    await tick(clock, 999, sink, 2)
    await tick(clock, 1, sink, 3)
    await replay.stop()
    expect(sink.events).toHaveLength(4)
    expect(replay.describe()).toMatchObject({ state: 'stopped', rows: 3 })
  })

  test('applies it ten times sooner at ten times the speed', async () => {
    const clock = fakeClock()
    const sink = new MemorySink()
    const replay = new Replay({ trades: batches(rows), speed: 10 }, sink, clock, silentLog)
    await replay.ready
    await tick(clock, 100, sink, 3)
    await tick(clock, 5_900, sink, 4)
    await replay.done
    expect(replay.describe().state).toBe('finished')
  })

  test.each([-3_600_000, 3_600_000])('goes on as before where the clock is set by %i ms', async (byMs) => {
    const clock = { wallMs: NOW, timeMs: 0, now: () => clock.wallMs, monotonicMs: () => clock.timeMs }
    const sink = new MemorySink()
    const replay = new Replay({ trades: batches(rows), speed: 1, time: 'now' }, sink, clock, silentLog)
    await replay.ready
    clock.wallMs += byMs
    await tick(clock, 100, sink, 2)
    await tick(clock, 899, sink, 2)
    await tick(clock, 1, sink, 3)
    await replay.stop()
    expect(sink.events.map(({ ts }) => ts - NOW)).toEqual([0, 0, 100, 1_000])
  })

  test('moves the first trade to the start with time now, and keeps the distances', async () => {
    const clock = fakeClock()
    const sink = new MemorySink()
    const replay = new Replay({ trades: batches(rows), speed: 'max', time: 'now' }, sink, clock, silentLog)
    await replay.done
    const times = sink.received.flatMap(({ event }) => (event.type === 'trade' ? [event.ts - NOW] : []))
    expect(times).toEqual([0, 100, 1_000, 60_000])
    expect(sink.received.at(-1)?.receivedAtMs).toBe(NOW + 60_000)
  })
})

describe('a replay whose source fails', () => {
  async function* broken(rows: Row[]): AsyncGenerator<TradeBatch> {
    if (rows.length > 0) yield batchOf(rows)
    throw new Error('no such file')
  }

  test('at once never becomes ready and says why', async () => {
    const replay = new Replay({ trades: broken([]), speed: 'max' }, new MemorySink(), fakeClock(), silentLog)
    await expect(replay.ready).rejects.toThrow('no such file')
    await replay.done
    expect(replay.describe()).toMatchObject({ state: 'failed', error: 'no such file' })
  })

  test('in the middle keeps what came before and sends a disconnect event', async () => {
    const sink = new MemorySink()
    const replay = new Replay(
      { trades: broken([[5, 'A', 1, 1]]), speed: 'max' },
      sink,
      fakeClock(),
      silentLog,
    )
    await replay.done
    expect(sink.events.map(({ type }) => type)).toEqual(['token', 'trade', 'disconnect'])
    const lastMs = FIRST + 5
    expect(sink.links).toEqual([{ type: 'disconnect', ts: lastMs, feed: 'replay', sinceMs: lastMs }])
  })
})

test('batches of the trade file reader can be replayed directly', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'mintlake-replay-'))
  try {
    const path = join(folder, 'trades.csv')
    await writeFile(
      path,
      `ts,symbol,price,size,side\n${FIRST},SPY,168.5,100,buy\n${FIRST + 5},IBM,180,7,sell\n`,
    )
    const file = await openTradeFile({ path })
    const sink = new MemorySink()
    const replay = new Replay({ trades: file.batches, speed: 'max' }, sink, fakeClock(), silentLog)
    await replay.done
    expect(sink.events).toMatchObject([
      { type: 'token', symbol: 'SPY' },
      { type: 'trade', ts: FIRST, side: 'buy', priceUsd: 168.5, tokenAmount: 100 },
      { type: 'token', symbol: 'IBM' },
      { type: 'trade', ts: FIRST + 5, side: 'sell', priceUsd: 180, tokenAmount: 7 },
    ])
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('a stopped replay closes its source', async () => {
  let isClosed = false
  async function* endless(): AsyncGenerator<TradeBatch> {
    try {
      for (let offset = 0; ; offset++) yield batchOf([[offset, 'A', 1, 1]])
    } finally {
      isClosed = true
    }
  }
  const replay = new Replay({ trades: endless(), speed: 'max' }, new MemorySink(), fakeClock(), silentLog)
  await replay.ready
  await replay.stop()
  expect(isClosed).toBe(true)
})
