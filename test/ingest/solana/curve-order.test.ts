// A trade whose predecessor is missing: how long it waits, by its age and by when its token last traded, so that the market still takes it.
import { describe, expect, it } from 'vitest'
import { CurveOrder } from '../../../src/ingest/solana/curve-order.ts'
import { MAINNET_GENESIS } from '../../../src/ingest/solana/programs.ts'
import { SolanaFeed } from '../../../src/ingest/solana/solana.ts'
import type { ChainSource } from '../../../src/ingest/solana/source.ts'
import type { SubscriptionHandlers } from '../../../src/ingest/solana/subscription.ts'
import type { CurveStep } from '../../../src/ingest/solana/translate.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { Market } from '../../../src/market/market.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { ChainWorld, SOL } from '../../support/chain/world.ts'
import { MemoryLog, MemorySink } from '../memory-sink.ts'

const START = 1_795_000_000_000
const TICK_MS = 500
const mint = mintOfSymbol('a token')

/** A market that a curve's trades reach through their order; time begins at 0. */
function curve() {
  const market = new Market({ tokensMax: 10 })
  market.apply({ type: 'solPrice', ts: START, usd: 150, source: 'pyth' }, START)
  let nowMs = 0
  const taken: number[] = []
  const order = new CurveOrder(({ events }) => {
    for (const event of events)
      if (market.apply(event, START + nowMs) === null) taken.push(START + nowMs - event.ts)
  })
  const passTo = (ms: number) => {
    for (; nowMs < ms; nowMs = Math.min(ms, nowMs + TICK_MS)) {
      market.advanceTo(START + nowMs)
      order.expire(nowMs)
    }
    market.advanceTo(START + ms)
  }
  /** A trade is told that is so old. @param reserves after it; the one before it has these less one */
  const tell = (reserves: bigint, ageMs: number) => {
    const ts = START + nowMs - ageMs
    const step: CurveStep = {
      ...{ mint, before: { quote: reserves - 1n, tokens: 5n }, after: { quote: reserves, tokens: 5n } },
      events: [
        { type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, solAmount: 1, tx: `transaction ${reserves}` },
      ],
    }
    order.add(step, 1, nowMs, ageMs)
    if (order.hasDue) order.expire(nowMs)
  }
  return { order, taken, passTo, tell }
}

describe('a trade whose predecessor is missing', () => {
  it.each([1_000, 2_000, 2_900, 3_100, 3_500, 4_000, 4_800])(
    'reaches the market in time when its token has been silent, known or not (%i ms old)',
    (ageMs) => {
      for (const isKnown of [true, false]) {
        const { order, taken, passTo, tell } = curve()
        tell(10n, 0)
        passTo(TICK_MS * 5)
        if (!isKnown) order.forget()
        passTo(60_000)
        tell(20n, ageMs)
        passTo(63_000)
        expect(taken).toHaveLength(2)
        expect(taken[1]).toBeLessThanOrEqual(5_000)
      }
    },
  )

  it.each([3_000, 6_900, 7_100, 9_000, 9_900])(
    'also when its token falls silent while it waits (%i ms after its latest)',
    (silentMs) => {
      const { taken, passTo, tell } = curve()
      tell(10n, 0)
      passTo(2_000 + silentMs)
      tell(20n, 4_000)
      passTo(2_000 + silentMs + 3_000)
      expect(taken).toHaveLength(2)
    },
  )

  it('waits for it all the same while its token is traded, however old it is', () => {
    const { order, taken, passTo, tell } = curve()
    tell(10n, 0)
    passTo(4_000)
    tell(12n, 4_500)
    passTo(5_000)
    expect(order.waiting).toBe(1)
    tell(11n, 5_500)
    expect(order.waiting).toBe(0)
    expect(order.unproven).toBe(0)
    expect(taken).toHaveLength(3)
  })

  it('goes on at once in the feed when it can wait no longer', async () => {
    const connected = Promise.withResolvers<SubscriptionHandlers>()
    const ended = Promise.withResolvers<{ reason: string }>()
    const call = () => Promise.resolve({ ok: false, fault: 'unreachable', message: '' } as const)
    const genesis = (method: string) =>
      method === 'getGenesisHash' ? Promise.resolve({ ok: true, result: MAINNET_GENESIS } as const) : call()
    // Its time passes with slots alone, and there is none.
    const source: ChainSource = {
      ...{ clock: systemClock, hasEnd: true, hasOwnTime: true, collectMs: 0, host: 'here' },
      rpc: {
        call: genesis,
        spare: { call },
        host: 'here',
        endpointCount: 1,
        describe: () => ({}),
        onMethodRefused: null,
      },
      connect: (handlers) => {
        handlers.onSubscribed()
        connected.resolve(handlers)
        return ended.promise
      },
      wait: () => Promise.resolve(),
      masked: (text) => text,
    }
    const sink = new MemorySink()
    const feed = new SolanaFeed(
      { source, commitment: 'confirmed', pools: 'migrated', holds: () => true, random: () => 0 },
      sink,
      new MemoryLog(),
    )
    const { onLogs } = await connected.promise
    const world = new ChainWorld(5, { startMs: Date.now() - 4_000 })
    world.launch(SOL, false)
    world.trade(world.tokens[0])
    const { slot, signature, logs: lines } = world.trade(world.tokens[0])
    onLogs({ slot, signature, failed: false, lines }, 'pump')
    expect(sink.data.flatMap((event) => (event.type === 'trade' ? [event.tx] : []))).toEqual([signature])
    ended.resolve({ reason: 'it is over' })
    await feed.stop()
  })
})
