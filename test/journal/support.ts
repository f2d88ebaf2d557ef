// Events, batches and journals for tests.

import fc from 'fast-check'
import { readTrade } from '../../src/journal/batch/read-trade.ts'
import type { EventBatch, RecordedEvent } from '../../src/journal/event-batch.ts'
import { type EventJournal, openJournal } from '../../src/journal/journal.ts'
import { type DiskReadOptions, readJournal } from '../../src/journal/reader.ts'
import type { JournalOptions } from '../../src/journal/types.ts'
import type { SegmentDamage } from '../../src/lib/segments/types.ts'
import type { MarketEvent, TradeEvent } from '../../src/schema/event.ts'
import { anyCharacter } from '../support/any-character.ts'
import { clockOf } from '../support/clock.ts'
import { SimulatedDisk } from '../support/disk/simulated-disk.ts'

export const NOON_MS = Date.UTC(2025, 5, 1, 12)
export const FOLDER_ID = 'folder-1'
export const SETTINGS = {
  tokensMax: 10,
  newWindowMs: 1,
  solPriceMaxAgeMs: 0,
  barsPerTokenMax: 8,
  versionsMax: 9,
}
export const quietLog = { info: () => {}, warn: () => {}, error: () => {} }

export const journalOptions = (folder: string, over: Partial<JournalOptions> = {}): JournalOptions => ({
  ...{
    folder,
    folderId: FOLDER_ID,
    runId: 'run-1',
    settings: SETTINGS,
    originEventNo: 1,
    simulated: false,
    afterEventNo: 0,
  },
  ...{ clock: clockOf(() => performance.now()), log: quietLog, lakeEventNo: () => 0, mayRecord: () => true },
  onLost: () => {},
  ...over,
})

export const openTestJournal = (folder: string, over: Partial<JournalOptions> = {}): Promise<EventJournal> =>
  openJournal(journalOptions(folder, over))

/** A trade whose numbers all follow from `index`, so that a test can tell that it is whole. */
export const tradeAt = (index: number): TradeEvent => ({
  ...{
    type: 'trade',
    mint: `mint${index % 7}`.padEnd(44, 'x'),
    ts: NOON_MS + index,
    side: index % 3 ? 'buy' : 'sell',
  },
  ...{
    tokenAmount: index / 3,
    solAmount: index / 7,
    wallet: `w${index}`,
    tx: index % 5 ? `t${index}` : null,
  },
})

/** Appends events number by number: a trade, or now and then another event. */
export function appendNumbered(journal: EventJournal, count: number): void {
  for (let appended = 0; appended < count; appended++) {
    const index = journal.lastEventNo + 1
    const atMs = NOON_MS + index
    const event: MarketEvent = index % 10 ? tradeAt(index) : { type: 'solPrice', ts: atMs, usd: index }
    journal.append(event, atMs, atMs - 1, `feed${index % 2}`, 100 + index)
  }
}

/**
 * A disk after a power cut that has kept what was durable: events 21 to 30. Those before them are in the lake and deleted, and all that is
 * left was written during a long sync, when only those up to 10 were known to be durable.
 */
export async function cutAfterLongSync(
  folder: string,
  markPath: string,
  append: typeof appendNumbered = appendNumbered,
): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk()
  const journal = await openTestJournal(folder, { disk, markPath })
  const record = async (): Promise<void> => {
    append(journal, 10)
    await journal.written(1_000)
  }
  await record()
  await journal.seal()
  await record()
  const release = disk.hold('sync')
  const sealed = journal.seal()
  await record()
  release()
  await sealed
  await journal.seal()
  await journal.removeThrough(20)
  return disk.afterPowerCut('nothing kept', () => 0)
}

/** All events of a batch as values, in order. */
export function eventsOf(batch: EventBatch): RecordedEvent[] {
  const { trades } = batch
  const events = Array.from(
    { length: trades.count },
    (_, at): RecordedEvent => ({
      ...{ eventNo: trades.eventNo[at], atMs: trades.atMs[at], receivedAtMs: trades.receivedAtMs[at] },
      feed: trades.feed[at],
      event: readTrade(trades, at, tradeAt(0)),
    }),
  )
  return [...events, ...batch.events].sort((a, b) => a.eventNo - b.eventNo)
}

export interface ReadResult {
  numbers: number[]
  damage: SegmentDamage[]
  /** Numbers that damage says are missing. */
  missing: number[]
}

/** Reads a journal that `appendNumbered` wrote, and checks that every event is the one of its number. */
export async function readNumbered(
  folder: string,
  afterEventNo = 0,
  options: DiskReadOptions = {},
): Promise<ReadResult> {
  const result: ReadResult = { numbers: [], damage: [], missing: [] }
  const onDamage = (damage: SegmentDamage): void => {
    result.damage.push(damage)
    const { from, to } = damage.missing ?? { from: 1, to: 0 }
    for (let eventNo = from; eventNo <= to; eventNo++) result.missing.push(eventNo)
  }
  for await (const batch of readJournal(folder, afterEventNo, {
    folderId: FOLDER_ID,
    onDamage,
    ...options,
  })) {
    for (const { eventNo, atMs, event } of eventsOf(batch)) {
      const isRight =
        atMs === NOON_MS + eventNo &&
        (event.type === 'solPrice'
          ? event.usd === eventNo
          : 'tokenAmount' in event && event.tokenAmount === eventNo / 3)
      if (!isRight) throw new Error(`event ${eventNo} is not the one that was written`)
      result.numbers.push(eventNo)
    }
  }
  return result
}

export const numbersFrom = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index)

const text = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.string({ unit: anyCharacter, maxLength: 20 }),
  fc.constant('\ud800x'),
)
const optionalText = fc.option(text, { nil: null })
const amount = fc.double({ min: 0, max: 1e30, noNaN: true })
const optionalAmount = fc.option(amount, { nil: null })

/** Every member of a trade: the compiler misses one that is left out. */
export const trades: fc.Arbitrary<TradeEvent> = fc.record({
  ...{ type: fc.constant('trade' as const), mint: text, ts: fc.integer({ min: 1_000, max: 8e15 }) },
  ...{ side: fc.constantFrom('buy' as const, 'sell' as const), tokenAmount: amount },
  ...{ solAmount: optionalAmount, priceUsd: optionalAmount, vSol: optionalAmount, vTokens: optionalAmount },
  ...{ wallet: optionalText, tx: optionalText, quoteMint: optionalText, quoteAmount: optionalAmount },
  ...{ vQuote: optionalAmount, quoteReserve: optionalAmount, curveTokens: optionalAmount },
  ...{ slot: optionalAmount, eventIndex: optionalAmount },
} satisfies { [Member in keyof Required<TradeEvent>]: fc.Arbitrary<TradeEvent[Member]> })

export const events: fc.Arbitrary<MarketEvent> = fc.oneof(
  { arbitrary: trades, weight: 5 },
  fc.record({
    type: fc.constant('token' as const),
    mint: text,
    ts: fc.nat(),
    name: text,
    symbol: text,
    creator: optionalText,
  }),
  fc.record({
    type: fc.constant('gap' as const),
    ts: fc.nat(),
    fromMs: fc.nat(),
    toMs: fc.nat(),
    reason: fc.constant('lost' as const),
  }),
  fc.record({
    type: fc.constant('patch' as const),
    mint: text,
    ts: fc.nat(),
    fields: fc.record({ holderCount: fc.nat(), website: optionalText }),
  }),
)
