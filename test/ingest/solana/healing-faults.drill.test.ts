// @module-tag drill
// What a feed that makes up for an outage may meet: too much that comes meanwhile, deadlines that pass, other feeds, logs that are lost.
import { beforeAll, describe, expect, it } from 'vitest'
import type { MarketEvent } from '../../../src/schema/event.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { Teller } from '../../support/chain/market-tape.ts'
import { slotAt } from '../../support/chain/world.ts'
import { differences, expectEqual, expectTold, missingSince, wrongBars } from './same-market.ts'
import { type RunOptions, runMarket, type SimulatedMarket, tradesOf } from './simulated-market.ts'

const START_MS = Date.UTC(2026, 10, 1, 11, 58, 31)
const MINUTES = 5
const END_MS = START_MS + MINUTES * 60_000 - 15_000
const TAPE = {
  ...{ seed: 53, startMs: START_MS, isSolConstant: true, minutes: MINUTES, perSecond: 12 },
  ...{ launches: 0.02, truncated: 0.02 },
}
const at = (seconds: number): number => START_MS + seconds * 1_000
const outage = (from: number, to: number) => ({ fromMs: at(from) + 300, toMs: at(to) + 100 })
const run = (more: Partial<RunOptions> = {}): Promise<SimulatedMarket> =>
  runMarket({ teller: new Teller(TAPE), requestsPerSecond: 100, endMs: END_MS, healMs: 600_000, ...more })

/** A feed beside the chain: one trade a second of each of its own tokens, which tells its own outage. */
const MINTS = ['pushed', 'pushed too'].map(mintOfSymbol)
const PUSH = 'push'
function pushed(away: { fromMs: number; toMs: number } | null): NonNullable<RunOptions['turns']> {
  const missed: MarketEvent[] = []
  let isAway = false
  return Array.from({ length: (END_MS - START_MS) / 1_000 - 1 }, (_, index) => ({
    atMs: at(index + 1),
    do: (market: SimulatedMarket) => {
      const nowMs = at(index + 1)
      const trades = MINTS.map(
        (mint, place): MarketEvent => ({
          ...{ type: 'trade', mint, ts: nowMs - 40 + place, side: index % 3 === place ? 'sell' : 'buy' },
          ...{
            tokenAmount: 10 + (index % 7),
            priceUsd: 1 + ((index * 13) % 29) / 10,
            wallet: `w${index % 5}`,
          },
          ...{ tx: `push-${index}-${place}` },
        }),
      )
      const isOut = away !== null && nowMs >= away.fromMs && nowMs < away.toMs
      if (isOut && !isAway)
        market.apply(
          { type: 'disconnect', ts: nowMs, feed: PUSH, sinceMs: nowMs - 1_000, healUntilMs: nowMs + 300_000 },
          nowMs,
        )
      if (isOut) missed.push(...trades)
      else for (const event of [...missed.splice(0), ...trades]) market.apply(event, nowMs)
      if (!isOut && isAway) market.apply({ type: 'reconnect', ts: nowMs, feed: PUSH, healed: true }, nowMs)
      isAway = isOut
    },
  }))
}

describe('a feed of the chain that makes up for an outage', () => {
  let whole: SimulatedMarket
  beforeAll(async () => {
    whole = await run()
  }, 60_000)

  it('and is told more meanwhile than it may hold back fetches that too', async () => {
    const outages = [outage(40, 85), outage(150, 160)]
    const market = await run({ outages, requestsPerSecond: 12, more: { heldBytesMax: 20_000 } })
    expectEqual(market, whole)
    const { held } = market.healing as unknown as { held: Record<string, number> }
    expect(held).toMatchObject({ notifications: 0, bytes: 0 })
    expect(held.dropped).toBeGreaterThan(50)
  })

  it.each([1_200, 10_000])(
    'from a node that is %i ms behind the one of its connection misses nothing',
    async (answersBehindMs) => {
      expectEqual(await run({ outages: [outage(40, 43), outage(90, 120)], answersBehindMs }), whole)
    },
  )

  describe('and is refused one block', () => {
    const bad = slotAt(at(60))
    const refused = {
      ok: false,
      fault: 'refused',
      message: 'Transaction version (1)',
      code: -32_015,
    } as const
    const refuseBlock = ({ chain: { rpc } }: SimulatedMarket): void => {
      const { call } = rpc
      const refusing: typeof call = (method, params, ...rest) =>
        method === 'getBlock' && params[0] === bad ? Promise.resolve(refused) : call(method, params, ...rest)
      Object.assign(rpc, { call: refusing })
    }
    const more = { outages: [outage(40, 85)], turns: [{ atMs: at(30), do: refuseBlock }] }

    it('has its transactions one after another, and all other blocks', async () => {
      const market = await run(more)
      expectEqual(market, whole)
      expect(market.chain.requests.getBlock).toBeGreaterThan(100)
      expect(market.chain.requests.getSignaturesForAddress).toBeLessThan(32)
    })

    it('and its transactions too tells it alone', async () => {
      const market = await run({ ...more, refusals: { getSignaturesForAddress: refused } })
      const { parts, isMissing } = missingSince(market, at(10))
      expect(parts).toMatchObject([{ reason: 'refused' }])
      const had = new Set(tradesOf(market).map(({ tx, eventIndex }) => `${tx}:${eventIndex}`))
      const lost = tradesOf(whole).filter(({ tx, eventIndex }) => !had.has(`${tx}:${eventIndex}`))
      expect(new Set(lost.map(({ slot }) => slot))).toEqual(new Set([bad]))
      expect(lost.every(({ ts }) => isMissing(ts, ts + 1))).toBe(true)
      expect(Number(parts[0].toMs) - parts[0].fromMs).toBeLessThan(5_000)
    })
  })

  it('says how far it is, and how long it takes yet', async () => {
    interface Progress {
      by: string
      percent: number
      fromSlot: number
      toSlot: number
      atSlot: number
      requests: number
      requestsLeft: number
      secondsLeft: number
    }
    const seen: (Progress & { atMs: number })[] = []
    const turns: RunOptions['turns'] = Array.from({ length: 200 }, (_, index) => ({
      atMs: at(85) + 100 * index,
      do: (market) => {
        const now = market.healing.now as Progress | null
        if (now?.by != null) seen.push({ ...now, atMs: at(85) + 100 * index })
      },
    }))
    const market = await run({ outages: [outage(40, 85)], requestsPerSecond: 20, turns })
    expectEqual(market, whole)
    expect(seen.length).toBeGreaterThan(20)
    const [first, last] = [seen[0], seen.at(-1)!]
    expect(first).toMatchObject({ by: 'blocks', percent: expect.closeTo(0, -1) })
    expect(last.percent).toBeGreaterThan(90)
    for (const [index, now] of seen.entries()) {
      expect(now.atSlot).toBeLessThanOrEqual(now.toSlot)
      if (index === 0) continue
      expect(now.percent).toBeGreaterThanOrEqual(seen[index - 1].percent)
      expect(now.requests).toBeGreaterThanOrEqual(seen[index - 1].requests)
    }
    // From the middle on it is known how fast it goes: 45 s of blocks at 20 requests a second.
    const middle = seen[seen.length >> 1]
    const tookS = (last.atMs - middle.atMs) / 1_000
    expect(Math.abs(middle.secondsLeft - tookS)).toBeLessThan(3)
  }, 60_000)

  it('and never catches up with what it may hold back tells so', async () => {
    const more = { heldBytesMax: 2_000 }
    const market = await run({ outages: [outage(40, 85)], requestsPerSecond: 2.5, healMs: 60_000, more })
    const { parts, isMissing } = missingSince(market, at(10))
    expect(new Set(parts.map(({ reason }) => reason))).toEqual(new Set(['budget']))
    expectTold(market, whole, isMissing)
    expect(wrongBars(market, whole, isMissing)).toEqual([])
  })

  it('that lasts beyond the deadline tells all of it, as too long ago', async () => {
    const market = await run({ outages: [outage(60, 140)], healMs: 8_000 })
    const { parts, isMissing } = missingSince(market, at(10))
    // Bars were held until the deadline: 8 s, and 30 s to take what is held back.
    expect(parts).toMatchObject([{ reason: 'too_long', feed: 'solana' }])
    expect(Math.abs(parts[0].fromMs - at(57))).toBeLessThan(3_000)
    expect(market.market.gaps(1).open).toEqual([])
    expectTold(market, whole, isMissing)
    expect(wrongBars(market, whole, isMissing)).toEqual([])
  })

  it.each([
    ['a block', ['getBlock']],
    ['a block, and the rest of a log', ['getBlock', 'getTransaction']],
  ])('whose deadline passes while %s does not come has all that came meanwhile', async (_, slow) => {
    const asked = new Set<unknown>()
    const slowDown = ({ chain }: SimulatedMarket): void => {
      const { call } = chain.rpc
      const never = new AbortController().signal
      // A call that waits behind others does not end with its signal.
      const slowly: typeof call = async (method, params, ...rest) => {
        asked.add(params[0])
        if (slow.includes(method) && chain.nowMs < at(80)) await chain.wait(60_000, never)
        return call(method, params, ...rest)
      }
      Object.assign(chain.rpc, { call: slowly })
    }
    const turns = [{ atMs: at(45), do: slowDown }]
    const market = await run({ outages: [outage(40, 46)], turns, healMs: 20_000 })
    const { parts, isMissing } = missingSince(market, at(10))
    expect(parts).toMatchObject([{ reason: 'budget' }])
    expect(market.healing.missing).toMatchObject(parts.map(({ fromMs, toMs }) => ({ fromMs, toMs })))
    expect(Number(parts[0].toMs)).toBeLessThan(at(50))
    const had = new Set(tradesOf(market).map(({ tx, eventIndex }) => `${tx}:${eventIndex}`))
    const lost = tradesOf(whole).filter(({ tx, eventIndex }) => !had.has(`${tx}:${eventIndex}`))
    expect(lost.filter(({ ts }) => isMissing(ts, ts + 1)).length).toBeGreaterThan(20)
    const untold = lost.filter(({ ts, tx }) => !isMissing(ts, ts + 1) && !asked.has(tx))
    expect(untold).toEqual([])
  })

  it('that could not tell what it has had by the deadline says that all of it is missing', async () => {
    let chain: SimulatedMarket['chain'] | null = null
    // The disk stands still.
    const room = () =>
      chain !== null && chain.nowMs < at(140) ? chain.wait(1_000, new AbortController().signal) : null
    const begin = (market: SimulatedMarket) => {
      chain = market.chain
    }
    const turns = [{ atMs: at(45), do: begin }]
    const market = await run({ outages: [outage(40, 46)], healMs: 10_000, more: { room }, turns })
    const { parts } = missingSince(market, at(10))
    expect(market.rejections).toContain('trade late')
    expect(parts).toHaveLength(1)
    const { missing } = market.healing
    expect(missing).toMatchObject([{ fromMs: parts[0].fromMs, toMs: parts[0].toMs, reason: 'budget' }])
  })

  it.each([2_000, -4_000])(
    'and whose clock is %i ms ahead of the chain’s loses nothing that is not told',
    async (aheadMs) => {
      const refused = { ok: false, fault: 'refused', message: 'no such method', code: -32_601 } as const
      const refusals = { getBlock: refused, getSignaturesForAddress: refused }
      const turns: RunOptions['turns'] = [{ atMs: at(200), do: (market) => market.kill(5_000, 0) }]
      const market = await run({ outages: [outage(40, 60), outage(120, 124)], refusals, turns, aheadMs })
      const { isMissing } = missingSince(market, at(10))
      const undisturbed = await run({ aheadMs })
      expectTold(market, undisturbed, isMissing)
      // What is told late by our clock cannot wait for its order as long.
      if (aheadMs < 0) expect(wrongBars(market, undisturbed, isMissing)).toEqual([])
    },
  )

  it('leaves the tokens of another feed as they are, also where that one is away itself meanwhile', async () => {
    const undisturbed = await run({ turns: pushed(null) })
    for (const [outages, away] of [
      [[outage(40, 70), outage(140, 150)], null],
      [[], { fromMs: at(50), toMs: at(90) }],
      [[outage(40, 70)], { fromMs: at(60), toMs: at(120) }],
    ] as const) {
      const market = await run({ outages, turns: pushed(away) })
      expectEqual(market, undisturbed)
      expect(differences(market, undisturbed, MINTS)).toEqual([])
    }
  })

  it('counts the transactions that no gap tells, each with however many trades', async () => {
    const refused = { ok: false, fault: 'refused', message: 'no such method', code: -32_601 } as const
    const market = await run({ refusals: { getTransaction: refused } })
    const had = new Set(tradesOf(market).map(({ tx, eventIndex }) => `${tx}:${eventIndex}`))
    const lost = tradesOf(whole).filter(({ tx, eventIndex }) => !had.has(`${tx}:${eventIndex}`))
    expect(lost.length).toBeGreaterThan(20)
    const { untold } = market.feed!.describe() as unknown as { untold: Record<string, number> }
    const lostTransactions = new Set(lost.map(({ tx }) => tx)).size
    expect(untold).toMatchObject({ late: 0, swapsDropped: 0, unreadable: 0 })
    expect(untold.transactionsLost).toBeGreaterThanOrEqual(lostTransactions)
    expect(untold.transactionsLost).toBeLessThanOrEqual(market.chain.counts.truncated)
    expect(untold.sum).toBe(untold.transactionsLost)
  })
})
