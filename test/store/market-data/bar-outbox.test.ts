// Sending closed bars to a lake process that has no room, fails, answers late or is replaced: they keep their order, none is
// lost or taken twice, and adding never waits.
import { mkdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openDatabase } from '../../../src/store/duckdb/database.ts'
import { openLake } from '../../../src/store/lake/lake.ts'
import { BARS_BATCH_ROWS } from '../../../src/store/limits.ts'
import { BAR_NUMBER_COUNT, BAR_NUMBERS } from '../../../src/store/market-data/bar-batch.ts'
import { BarOutbox } from '../../../src/store/market-data/bar-outbox.ts'
import { type BarDelivery, openBarStore } from '../../../src/store/market-data/bar-store.ts'
import { lakeFolder } from '../../../src/store/paths.ts'
import { closedBar, NOON_MS, removeFolder, temporaryFolder } from '../support.ts'

/** A lake process that answers as the test decides: accepted, accepted but answered too late, no room, or a failure. */
function outboxWith(answers: ('taken' | 'late' | 'full' | 'fails')[]) {
  const arrived: BarDelivery[] = []
  const process = { starts: 1, inLakeBars: 0 }
  const lines: string[] = []
  const log = { info: () => {}, warn: (_: object, line: string) => void lines.push(line), error: () => {} }
  const outbox = new BarOutbox({
    log,
    async send(delivery) {
      const answer = answers.shift() ?? 'taken'
      if (answer === 'fails') throw new Error('away')
      if (answer === 'taken' || answer === 'late') arrived.push(delivery)
      if (answer === 'late') throw new Error('too late')
      return { taken: answer === 'taken', inLakeBars: process.inLakeBars }
    },
    starts: () => process.starts,
  })
  return { outbox, arrived, lines, process }
}
const TRADES = BAR_NUMBERS.indexOf('n')
const trades = (deliveries: readonly BarDelivery[]): number[] =>
  deliveries.flatMap(({ batch }) =>
    batch.mints.map((_, bar) => batch.numbers[bar * BAR_NUMBER_COUNT + TRADES]),
  )

test('bars that were refused or failed to arrive are sent later, in order, each once', async () => {
  const { outbox, arrived } = outboxWith(['taken', 'full', 'fails'])
  const count = 2 * BARS_BATCH_ROWS + 5
  for (let n = 0; n < count; n++) outbox.add(closedBar({ n }))
  await outbox.flush()
  expect(outbox.stats().waiting).toBe(count - BARS_BATCH_ROWS)
  await expect(outbox.flush()).rejects.toThrow('away')
  outbox.add(closedBar({ n: count }))
  await outbox.flush()
  expect(outbox.stats()).toEqual({ waiting: 0, dropped: 0 })
  expect(trades(arrived)).toEqual(Array.from({ length: count + 1 }, (_, n) => n))
  await outbox.close()
})

test('bars whose receipt was late are sent again with the same count before them', async () => {
  const { outbox, arrived } = outboxWith(['taken', 'late'])
  outbox.add(closedBar({ n: 1 }))
  await outbox.flush()
  outbox.add(closedBar({ n: 2 }))
  await expect(outbox.flush()).rejects.toThrow('too late')
  outbox.add(closedBar({ n: 3 }))
  await outbox.flush()
  expect(trades(arrived)).toEqual([1, 2, 2, 3])
  expect(arrived.map(({ first }) => first)).toEqual([0, 1, 1, 2])
  await outbox.close()
})

test('a flush sends the bars that came while another one ran, whatever became of that', async () => {
  for (const answer of ['taken', 'fails'] as const) {
    const { outbox, arrived } = outboxWith([answer])
    outbox.add(closedBar({ n: 1 }))
    const running = outbox.flush().catch(() => undefined)
    outbox.add(closedBar({ n: 2 }))
    await outbox.flush()
    expect(trades(arrived)).toEqual([1, 2])
    await running
    await outbox.close()
  }
})

test('the market time is reported complete only after all of its bars have arrived', async () => {
  const { outbox, arrived } = outboxWith(['taken', 'full'])
  for (let n = 0; n <= BARS_BATCH_ROWS; n++) outbox.add(closedBar({ n }))
  outbox.completeTo(700)
  await outbox.flush()
  expect(arrived.map(({ completeToMs }) => completeToMs)).toEqual([0])
  await outbox.flush()
  expect(arrived.map(({ completeToMs }) => completeToMs)).toEqual([0, 700])
  // Without a bar too, as the lake process then learns that there was none, or that market time went back.
  for (const timeMs of [800, 600]) {
    outbox.completeTo(timeMs)
    await outbox.flush()
  }
  expect(arrived.map(({ completeToMs }) => completeToMs)).toEqual([0, 700, 800, 600])
  for (let n = 0; n <= BARS_BATCH_ROWS; n++) outbox.add(closedBar({ n }))
  outbox.completeTo(500)
  await outbox.flush()
  expect(arrived.slice(4).map(({ completeToMs }) => completeToMs)).toEqual([500, 500])
  await outbox.close()
})

test('where market time went back is told until the lake process has taken it, and to a new one again', async () => {
  const { outbox, arrived, process } = outboxWith(['full', 'taken'])
  const span = { fromMs: 700, toMs: 900 }
  outbox.noteRewound(span)
  for (let flush = 0; flush < 3; flush++) await outbox.flush()
  Object.assign(process, { starts: 2 })
  outbox.noteRewound({ ...span, toMs: 800 })
  await outbox.flush()
  expect(arrived.map(({ rewound }) => rewound)).toEqual([[span], [span, { ...span, toMs: 800 }]])
  await outbox.close()
})

test('a new lake process first gets the bars that the old one did not write to files', async () => {
  const { outbox, arrived, process } = outboxWith([])
  const send = async (...numbers: number[]) => {
    for (const n of numbers) outbox.add(closedBar({ n }))
    await outbox.flush()
  }
  await send(1, 2)
  outbox.completeTo(500)
  await send(3)
  process.inLakeBars = 2
  await send(4)
  Object.assign(process, { starts: 2, inLakeBars: 0 })
  await send(5)
  expect(trades(arrived)).toEqual([1, 2, 3, 4, 3, 4, 5])
  expect(arrived.map(({ completeToMs }) => completeToMs)).toEqual([0, 500, 500, 0, 0, 500])
  process.inLakeBars = 3
  await send(6)
  process.starts = 3
  await send(7)
  expect(trades(arrived).slice(7)).toEqual([6, 6, 7])
  await outbox.close()
})

test('close sends the last bars and logs those it could not send', async () => {
  const well = outboxWith([])
  well.outbox.add(closedBar())
  await well.outbox.close()
  expect(well.arrived).toHaveLength(1)
  const badly = outboxWith(['fails', 'fails'])
  badly.outbox.add(closedBar())
  await badly.outbox.close()
  expect(badly.lines).toEqual([
    'closed bars could not be handed to the store; trying again',
    'the last closed bars are lost',
  ])
})

test('the lake process takes and counts a repeated batch once', async () => {
  const dataDir = temporaryFolder()
  mkdirSync(lakeFolder(dataDir), { recursive: true })
  const database = await openDatabase(dataDir)
  const nothing = () => {}
  const lake = await openLake(database, { failpoint: nothing, log: nothing, onTrouble: nothing })
  const bars = await openBarStore(lake, { provenance: null, runId: 'run' }, NOON_MS)
  const { outbox, arrived } = outboxWith(['late', 'taken'])
  outbox.add(closedBar({ n: 1 }))
  await expect(outbox.flush()).rejects.toThrow('too late')
  outbox.add(closedBar({ n: 2, t: NOON_MS + 60_000 }))
  await outbox.flush()
  for (const delivery of arrived) expect(bars.take(delivery)).toBe(true)
  expect(trades(arrived)).toEqual([1, 1, 2])
  expect((await bars.stage(NOON_MS)).bars).toBe(2)
  await outbox.close()
  await database.close()
  removeFolder(dataDir)
})

test('the earliest end of a bar that may be in no file is known until its lake process says that it is in one', async () => {
  const { outbox, process } = outboxWith(['fails', 'taken', 'taken', 'taken'])
  expect(outbox.firstEndMs).toBe(Number.POSITIVE_INFINITY)
  outbox.add(closedBar({ tf: '5m', t: NOON_MS + 600_000 }))
  // Of a late trade: it closes after bars that end later.
  outbox.add(closedBar({ tf: '1m', t: NOON_MS }))
  expect(outbox.firstEndMs).toBe(NOON_MS + 60_000)
  const failing = outbox.flush()
  expect(outbox.firstEndMs).toBe(NOON_MS + 60_000)
  await expect(failing).rejects.toThrow('away')
  await outbox.flush()
  expect(outbox.firstEndMs).toBe(NOON_MS + 60_000)
  // It ended without a flush: the next one is sent them again.
  process.starts++
  outbox.completeTo(NOON_MS + 1)
  await outbox.flush()
  expect(outbox.firstEndMs).toBe(NOON_MS + 60_000)
  process.inLakeBars = 2
  outbox.completeTo(NOON_MS + 2)
  await outbox.flush()
  expect(outbox.firstEndMs).toBe(Number.POSITIVE_INFINITY)
  await outbox.close()
})
