// A lake with its database in a temporary folder, and a journal in memory, for tests of how the one gets to the other.

import { mkdirSync } from 'node:fs'
import { decodeBatch } from '../../../src/journal/batch/batch-decoder.ts'
import { BatchEncoder } from '../../../src/journal/batch/batch-encoder.ts'
import type { EventBatch, RecordedEvent } from '../../../src/journal/event-batch.ts'
import type { ReadJournal } from '../../../src/journal/types.ts'
import { assert } from '../../../src/lib/assert.ts'
import type { SegmentDamage } from '../../../src/lib/segments/types.ts'
import type { MarketEvent, TradeEvent } from '../../../src/schema/event.ts'
import { Compactor } from '../../../src/store/compaction/compactor.ts'
import { openDatabase } from '../../../src/store/duckdb/database.ts'
import { EventFlusher } from '../../../src/store/events/event-flusher.ts'
import { openLake } from '../../../src/store/lake/lake.ts'
import { lakeFolder } from '../../../src/store/paths.ts'
import { KEEP_FOR_EVER, type Retention } from '../../../src/store/retention-setting.ts'
import { beginState } from '../../../src/store/state/state-database.ts'
import type { LakeTrouble } from '../../../src/store/types.ts'
import { NOON_MS } from '../support.ts'

export const MINT = 'So11111111111111111111111111111111111111112'
export const SOL_PRICE_USD = 150

/** A trade of a token outside of the curve, at 1 SOL for 4 tokens. */
export const trade = (over: Partial<TradeEvent> = {}): TradeEvent => ({
  type: 'trade',
  mint: MINT,
  ts: NOON_MS,
  side: 'buy',
  tokenAmount: 4,
  solAmount: 1,
  ...over,
})

/** Events as the journal's files have them, and as its reader gives them. */
function batchOf(recorded: readonly RecordedEvent[]): EventBatch {
  const encoder = new BatchEncoder()
  for (const { event, atMs, receivedAtMs, feed } of recorded)
    encoder.add(event, atMs, receivedAtMs, feed, SOL_PRICE_USD)
  const batch = decodeBatch(encoder.encode(recorded[0].eventNo, 0))
  assert(batch !== null, 'a batch can be read')
  return batch
}

/** Events in batches, as a journal has them. */
export class MemoryJournal {
  readonly recorded: RecordedEvent[] = []
  readonly #batches: EventBatch[] = []
  /** Told with the next read. */
  damage: SegmentDamage[] = []
  #lastNo = 0

  /** Appends a batch of events, each at a market time. */
  append(events: readonly MarketEvent[], atMs: number | ((index: number) => number) = NOON_MS): void {
    const recorded = events.map((event, index): RecordedEvent => {
      const time = typeof atMs === 'number' ? atMs : atMs(index)
      return { eventNo: ++this.#lastNo, atMs: time, receivedAtMs: time - 3, feed: 'push', event }
    })
    this.recorded.push(...recorded)
    this.#batches.push(batchOf(recorded))
  }

  /** Numbers that no batch has. */
  skip(count: number): void {
    this.#lastNo += count
  }

  get throughEventNo(): number {
    return this.#lastNo
  }

  readonly read: ReadJournal = (_folder, afterEventNo, { throughEventNo = Infinity, onDamage } = {}) => {
    for (const found of this.damage) onDamage?.(found)
    return this.#readFrom(afterEventNo, throughEventNo)
  }

  async *#readFrom(afterEventNo: number, throughEventNo: number): AsyncGenerator<EventBatch> {
    for (const batch of this.#batches)
      if (batch.lastEventNo > afterEventNo && batch.firstEventNo <= throughEventNo) yield batch
  }
}

export interface World {
  journal: MemoryJournal
  trouble: LakeTrouble | null
  /** Brings all events to the lake. */
  flush(nowMs?: number): Promise<{ eventNo: number; retainedFrom: number; damage: readonly SegmentDamage[] }>
  /** Asks once, for all events. @returns the last that is in the lake */
  ask(): Promise<number>
  compact(nowMs?: number, quietMs?: number): Promise<void>
  /** Expires on an operator's word. @returns how many files */
  retire(nowMs: number): Promise<number>
  close(): Promise<void>
}

/** Opens the lake of `dataDir`, as a lake process does. */
export async function openWorld(
  dataDir: string,
  options: { journal?: MemoryJournal; retain?: Retention } = {},
): Promise<World> {
  const { journal = new MemoryJournal(), retain = KEEP_FOR_EVER } = options
  mkdirSync(lakeFolder(dataDir), { recursive: true })
  const database = await openDatabase(dataDir)
  const nothing = (): void => {}
  const onTrouble = (trouble: LakeTrouble): void => {
    world.trouble = trouble
  }
  const lake = await openLake(database, { failpoint: nothing, log: nothing, onTrouble })
  const flusher = new EventFlusher({
    ...{ logId: 'log', lake, readJournal: journal.read },
    monotonicMs: () => performance.now(),
  })
  const compactor = new Compactor(lake, {
    ...{ lakeGraceMs: 0, retain, diskReserveMb: 0 },
  })
  const world: World = {
    journal,
    trouble: null,
    flush: async (nowMs = NOON_MS) => {
      for (;;) {
        const throughEventNo = journal.throughEventNo
        const answer = await flusher.flush({ nowMs, throughEventNo })
        if (answer.eventNo >= throughEventNo) return answer
      }
    },
    ask: async () => {
      const { throughEventNo } = journal
      return (await flusher.flush({ nowMs: NOON_MS, throughEventNo })).eventNo
    },
    compact: async (nowMs = NOON_MS, quietMs = 0) =>
      void (await compactor.compact({ wallMs: nowMs, monotonicMs: 0 }, quietMs)),
    retire: (nowMs) => compactor.retire({ wallMs: nowMs, monotonicMs: 0 }),
    close: async () => {
      await compactor.close()
      await database.close()
    },
  }
  await lake.recover({ flushedLsn: 0, listFrom: 'manifest' }, NOON_MS)
  await database.maintenance.run(beginState)
  return world
}
