// A lake process that is full, fails or is slow: closed bars keep their order and completeness, and adding one never waits.
import { mkdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openDatabase } from '../../../src/store/duckdb/database.ts'
import { openLake } from '../../../src/store/lake/lake.ts'
import { BARS_BATCH_ROWS } from '../../../src/store/limits.ts'
import { BAR_NUMBER_COUNT, BAR_NUMBERS } from '../../../src/store/market-data/bar-batch.ts'
import { type BarOutbox, openBarOutbox } from '../../../src/store/market-data/bar-outbox.ts'
import { type BarDelivery, openBarStore } from '../../../src/store/market-data/bars.ts'
import { lakeFolder } from '../../../src/store/paths.ts'
import { closedBar, NOON_MS, removeFolder, temporaryFolder } from '../support.ts'

/** A lake process that answers as told: taken, taken but told too late, no room, or a failure. */
function laneWith(answers: ('taken' | 'late' | 'full' | 'fails')[]) {
  const arrived: BarDelivery[] = []
  const process = { starts: 1, inLakeBars: 0 }
  const lines: string[] = []
  const log = { info: () => {}, warn: (_: object, line: string) => void lines.push(line), error: () => {} }
  const lane: BarOutbox = openBarOutbox({
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
  return { lane, arrived, lines, process }
}
const TRADES = BAR_NUMBERS.indexOf('n')
const trades = (deliveries: readonly BarDelivery[]): number[] =>
  deliveries.flatMap(({ batch }) =>
    batch.mints.map((_, bar) => batch.numbers[bar * BAR_NUMBER_COUNT + TRADES]),
  )

test('bars that found no room or met a failure arrive later, in order, none twice', async () => {
  const { lane, arrived } = laneWith(['taken', 'full', 'fails'])
  const count = 2 * BARS_BATCH_ROWS + 5
  for (let n = 0; n < count; n++) lane.add(closedBar({ n }))
  await lane.flush()
  expect(lane.stats().waiting).toBe(count - BARS_BATCH_ROWS)
  await expect(lane.flush()).rejects.toThrow('away')
  lane.add(closedBar({ n: count }))
  await lane.flush()
  expect(lane.stats()).toEqual({ waiting: 0, dropped: 0 })
  expect(trades(arrived)).toEqual(Array.from({ length: count + 1 }, (_, n) => n))
  await lane.close()
})

test('bars whose receipt came too late are sent again, as the same ones', async () => {
  const { lane, arrived } = laneWith(['taken', 'late'])
  lane.add(closedBar({ n: 1 }))
  await lane.flush()
  lane.add(closedBar({ n: 2 }))
  await expect(lane.flush()).rejects.toThrow('too late')
  lane.add(closedBar({ n: 3 }))
  await lane.flush()
  expect(trades(arrived)).toEqual([1, 2, 2, 3])
  expect(arrived.map(({ first }) => first)).toEqual([0, 1, 1, 2])
  await lane.close()
})

test('bars are said to be complete up to a time only once all of them have arrived', async () => {
  const { lane, arrived } = laneWith(['taken', 'full'])
  for (let n = 0; n <= BARS_BATCH_ROWS; n++) lane.add(closedBar({ n }))
  lane.completeTo(700)
  await lane.flush()
  expect(arrived.map(({ completeToMs }) => completeToMs)).toEqual([0])
  await lane.flush()
  expect(arrived.map(({ completeToMs }) => completeToMs)).toEqual([0, 700])
  lane.completeTo(600)
  await lane.flush()
  lane.completeTo(800)
  await lane.flush()
  // Without a bar too: silence is news.
  expect(arrived.map(({ completeToMs }) => completeToMs)).toEqual([0, 700, 800])
  await lane.close()
})

test('a new lake process is sent again what the old one did not bring to the lake, before anything younger', async () => {
  const { lane, arrived, process } = laneWith([])
  const send = async (...numbers: number[]) => {
    for (const n of numbers) lane.add(closedBar({ n }))
    await lane.flush()
  }
  await send(1, 2)
  lane.completeTo(500)
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
  await lane.close()
})

test('closing sends the last bars, and says what it could not send', async () => {
  const well = laneWith([])
  well.lane.add(closedBar())
  await well.lane.close()
  expect(well.arrived).toHaveLength(1)
  const badly = laneWith(['fails', 'fails'])
  badly.lane.add(closedBar())
  await badly.lane.close()
  expect(badly.lines).toEqual([
    'closed bars could not be handed to the store; trying again',
    'the last closed bars are lost',
  ])
})

test('the lake process takes a batch that comes again once, and counts it once', async () => {
  const dataDir = temporaryFolder()
  mkdirSync(lakeFolder(dataDir), { recursive: true })
  const database = await openDatabase(dataDir)
  const nothing = () => {}
  const lake = await openLake(database, { dataDir, failpoint: nothing, log: nothing, onTrouble: nothing })
  const bars = await openBarStore(database, lake.files, null, NOON_MS)
  const { lane, arrived } = laneWith(['late', 'taken'])
  lane.add(closedBar({ n: 1 }))
  await expect(lane.flush()).rejects.toThrow('too late')
  lane.add(closedBar({ n: 2, t: NOON_MS + 60_000 }))
  await lane.flush()
  for (const delivery of arrived) expect(bars.take(delivery)).toBe(true)
  expect(trades(arrived)).toEqual([1, 1, 2])
  expect((await bars.stage(NOON_MS)).bars).toBe(2)
  await lane.close()
  await database.close()
  removeFolder(dataDir)
})
