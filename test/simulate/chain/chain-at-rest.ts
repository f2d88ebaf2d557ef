// What must be so of a market from the chain at rest: each trade of the chain is recorded once, as it was, or lies in a gap that was told.

import type { RecordedEvent } from '../../../src/journal/event-batch.ts'
import type { TradeEvent } from '../../../src/schema/event.ts'
import type { LedgerTrade } from '../../support/chain/world.ts'
import type { Cast } from '../actors/cast.ts'
import { check, count, type World } from '../world.ts'
import type { ChainEndpoint } from './endpoint.ts'

/** A trade is recorded within this: it may wait for the one before it, for its pool or the rest of its log. */
const SETTLED_MS = 30_000
/** The chain tells times in whole seconds, and the last events before a loss may be told with it. */
const SLACK_MS = 1_000

const keyOf = (tx: unknown, index: unknown): string => `${tx}:${index}`
const isClose = (a: number | null | undefined, b: number): boolean =>
  a != null && Math.abs(a - b) <= 1e-9 * Math.abs(b)

export function checkChain(
  world: World,
  cast: Pick<Cast, 'hadBadDisk'>,
  chain: ChainEndpoint,
  events: readonly RecordedEvent[],
): void {
  const trades = events.flatMap(({ event }) => (event.type === 'trade' ? [event] : []))
  const recorded = new Map(trades.map((trade) => [keyOf(trade.tx, trade.eventIndex), trade]))
  check(
    world,
    'a trade of the chain is recorded once',
    recorded.size === trades.length,
    () => `${trades.length} trades of ${recorded.size} places`,
  )
  const happened = new Map(chain.ledger.map((trade) => [keyOf(trade.signature, trade.eventIndex), trade]))
  for (const [key, trade] of recorded) {
    const of = happened.get(key)
    check(
      world,
      'a recorded trade is one of the chain, as it was',
      of !== undefined && isSame(trade, of),
      () => `${JSON.stringify(trade)}, on the chain ${JSON.stringify(of)}`,
    )
  }
  // Of these the record itself may have lost some.
  if (world.hadWrongClock || world.hasDamagedJournal || cast.hadBadDisk) return
  checkMissing(world, chain, recorded, events[0]?.atMs ?? Number.POSITIVE_INFINITY)
}

const isSame = (trade: TradeEvent, of: LedgerTrade): boolean =>
  trade.mint === of.mint &&
  trade.side === of.side &&
  trade.ts === of.ts &&
  trade.wallet === of.wallet &&
  trade.quoteMint === of.quoteMint &&
  isClose(trade.tokenAmount, of.tokenAmount) &&
  isClose(trade.quoteAmount, of.quoteAmount)

function checkMissing(
  world: World,
  chain: ChainEndpoint,
  recorded: ReadonlyMap<string, TradeEvent>,
  beganMs: number,
): void {
  const { market } = world.server.app!
  const gaps = market.gaps(10_000)
  const told = [...gaps.ended, ...gaps.open.map((gap) => ({ ...gap, toMs: Number.POSITIVE_INFINITY }))]
  for (const { signature, eventIndex, ts, mint } of chain.ledger) {
    if (recorded.has(keyOf(signature, eventIndex)) || ts < beganMs) continue
    if (ts > world.machine.trueMs - SETTLED_MS) break
    // Of a token that the market does not know swaps are not its own.
    if (!market.has(mint)) continue
    count(world, 'trades of the chain that are missing')
    check(
      world,
      'a trade of the chain that is missing lies in a gap that was told',
      told.some((gap) => gap.fromMs - SLACK_MS <= ts && (gap.toMs ?? 0) + SLACK_MS >= ts),
      () => `${signature} ${eventIndex} of ${mint} at ${ts}; gaps ${JSON.stringify(told).slice(0, 900)}`,
    )
  }
}
