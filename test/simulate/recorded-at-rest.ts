// What must be so of recorded events at rest: the lake has them in their order, without a hole, and what is missing was told.

import { readTrade } from '../../src/journal/batch/read-trade.ts'
import type { RecordedEvent } from '../../src/journal/event-batch.ts'
import type { MarketEvent, TradeEvent } from '../../src/schema/event.ts'
import type { Cast } from './actors/cast.ts'
import { check, type World } from './world.ts'

/**
 * What the end of a life may take of market events: a kill a batch that is being filled, and the turns until it is written; a power cut what
 * was not synced yet.
 */
export const LOSES_MS = { crash: 400, cut: 1_600, stop: 0 } as const
/** Sentences of /health that tell of a damaged journal. */
const JOURNAL_DAMAGED = /journal|recorded events/

/** All that the lake ever had, in the order of their numbers. */
export function recordedEvents(world: World): RecordedEvent[] {
  const events: RecordedEvent[] = []
  for (const { events: others, trades } of world.lake.batches) {
    events.push(...others)
    for (let at = 0; at < trades.count; at++)
      events.push({
        ...{ eventNo: trades.eventNo[at], atMs: trades.atMs[at], receivedAtMs: trades.receivedAtMs[at] },
        ...{ feed: trades.feed[at], event: readTrade(trades, at, { type: 'trade' } as TradeEvent) },
      })
  }
  events.sort((a, b) => a.eventNo - b.eventNo)
  for (const [index, { eventNo }] of events.entries())
    check(
      world,
      'recorded events are numbered without a hole',
      index === 0 || eventNo === events[index - 1]!.eventNo + 1 || world.hasDamagedJournal,
      () => `event ${eventNo} comes behind ${events[index - 1]?.eventNo}`,
    )
  return events
}

function idOf(event: MarketEvent): number {
  if (event.type === 'trade') return Number(event.tx?.slice(1))
  if (event.type === 'token') return Number(event.description?.slice(1))
  if (event.type === 'patch') return Number(event.fields.viewerCount)
  return event.type === 'live' ? Number(event.viewerCount) : Number.NaN
}

/**
 * The event with which the market of now began: behind damage it may have begun empty again. One that goes on tells first of the time in
 * which nobody watched.
 */
function findBegin(world: World, events: readonly RecordedEvent[]): RecordedEvent | undefined {
  const begin = events.findLast(
    ({ event }, at) => event.type === 'run' && events[at + 1]?.event.type !== 'gap',
  )
  return (world.hasDamagedJournal ? begin : undefined) ?? events[0]
}

export interface Missing {
  mint: string
  tsMs: number
}

/**
 * The lake has what was pushed, in its order: what is missing was not acknowledged, or lies in a gap that was told and is no older than
 * the end of its life may take.
 */
export function checkRecorded(
  world: World,
  cast: Cast,
  events: readonly RecordedEvent[],
  health: { reasons: string[] },
): Missing[] {
  const { pushed } = cast.feed
  const recorded = events.filter(({ feed }) => feed === 'push')
  const found = new Set<number>()
  let at = 0
  for (const { event, eventNo } of recorded) {
    const id = idOf(event)
    while (at < pushed.length && pushed[at].id !== id) at++
    check(
      world,
      'the lake has no event that nobody pushed',
      at < pushed.length,
      () => `event ${eventNo} (record ${id}) is out of order or there twice`,
    )
    found.add(at++)
  }
  const gaps = world.server.app!.market.gaps(10_000)
  const told = [...gaps.ended, ...gaps.open.map((gap) => ({ ...gap, toMs: Number.POSITIVE_INFINITY }))]
  const missing = pushed.filter((_, index) => !found.has(index))
  // A market that began after them says since when it watches.
  const beganMs = findBegin(world, events)?.atMs ?? Number.POSITIVE_INFINITY
  const isLossTold = world.hasDamagedJournal && health.reasons.some((reason) => JOURNAL_DAMAGED.test(reason))
  for (const record of missing.filter(({ state }) => state === 'taken')) {
    const [fromMs, toMs] = [record.sentMs, record.answeredMs].map((ms) => world.machine.startMs + ms)
    check(
      world,
      'an event that is missing lies in a gap that was told',
      world.hadWrongClock ||
        isLossTold ||
        toMs < beganMs ||
        told.some((gap) => gap.fromMs <= toMs && (gap.toMs ?? 0) >= fromMs),
      () =>
        `record ${record.id} of life ${record.life}, taken ${fromMs}..${toMs}; gaps ${JSON.stringify(told).slice(0, 800)}`,
    )
    const end = cast.ends.get(record.life)
    const losesMs = end === undefined ? 0 : LOSES_MS[end.kind]
    check(
      world,
      'no more events are lost than a kill or a power cut may take',
      (end?.hadBadDisk ?? false) ||
        world.hasDamagedJournal ||
        cast.hasBadDisk ||
        (end !== undefined && record.answeredMs >= end.atMs - losesMs),
      () =>
        `record ${record.id} of life ${record.life} was taken ${(end?.atMs ?? 0) - record.answeredMs} ms before its ${end?.kind}`,
    )
  }
  return missing
}
