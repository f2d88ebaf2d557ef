// A trade that is refused as too late while feeds heal stays missing: that is recorded, so that whoever has the record knows it too.
import { expect, test } from 'vitest'
import { Market } from '../../src/market/market.ts'
import { recordedSinks } from '../../src/recording/event-recorder.ts'
import { type MarketEvent, MISSING_PARTS_MAX } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'

const START_MS = 1_772_000_000_000
const [mint, other] = ['a token', 'another one'].map(mintOfSymbol)
const at = (second: number) => START_MS + 1_000 * second

/** A market whose feed has found late that it lacks data since second 90, with what is recorded of it. */
function healing() {
  const market = new Market({ tokensMax: 10 })
  const recorded: { event: MarketEvent; atMs: number }[] = []
  const append = (event: MarketEvent, atMs: number) => void recorded.push({ event, atMs })
  const sink = recordedSinks(market, { append, isLosing: false } as never)('push')
  const trade = (of: string, second: number, receivedSecond: number) =>
    sink.apply(
      { type: 'trade', mint: of, ts: at(second), side: 'buy', tokenAmount: 1, priceUsd: 1, wallet: 'w' },
      at(receivedSecond),
    )
  trade(mint, 0, 0)
  // Silent for a while, so that its bars close with its next trade.
  trade(other, 100, 100)
  trade(mint, 100, 100)
  trade(mint, 107, 107)
  const lost = { ts: at(110), sinceMs: at(90), healUntilMs: at(400) }
  sink.apply({ type: 'disconnect', feed: 'push', ...lost }, lost.ts)
  const end = () => sink.apply({ type: 'reconnect', feed: 'push', ts: at(120), healed: true }, at(120))
  const shown = (of: Market) => ({
    gaps: of.gaps(9),
    incomplete: of.bars({ mint, tf: '1m', limit: 9, fromMs: null, toMs: null, fill: 'none' })?.incomplete,
    own: of.enriched(mint),
  })
  /** A market that has the record alone. */
  const replayed = () => {
    const replay = new Market({ tokensMax: 10 })
    for (const { event, atMs } of recorded) replay.apply(event, atMs)
    return replay
  }
  return { market, recorded, trade, end, shown, replayed }
}

test('a market that has the record knows of it, while the gap is open and when it has healed', () => {
  const { market, trade, end, shown, replayed } = healing()
  expect(trade(mint, 95, 112)).toBe('late')
  expect(shown(replayed())).toEqual(shown(market))
  end()
  expect(market.gaps(9).ended).toMatchObject([{ feed: 'push', reason: 'refused', fromMs: at(95) }])
  expect(shown(replayed())).toEqual(shown(market))
})

test('refusals of the same time and of the next second are one part, and told no oftener than every second', () => {
  const { market, recorded, trade, end } = healing()
  const { length } = recorded
  for (const second of [95, 95.2, 95.9, 96.5, 93, 95.3]) expect(trade(mint, second, 112)).toBe('late')
  expect(recorded.length - length).toBe(3)
  end()
  const parts = market.gaps(9).ended.map(({ fromMs, toMs }) => [fromMs, toMs])
  expect(parts.sort()).toEqual([
    [at(93), at(94) - 1],
    [at(95), at(97) - 1],
  ])
})

test('of a gap with as many parts as there may be each second is told once too, and no more feeds are away', () => {
  const { market, recorded, trade, replayed, shown } = healing()
  const missing = Array.from({ length: MISSING_PARTS_MAX }, (_, index) => ({
    fromMs: at(90) + 10 * index,
    toMs: at(90) + 10 * index + 5,
    reason: index % 2 === 0 ? ('pruned' as const) : ('budget' as const),
  }))
  const told = {
    type: 'disconnect',
    feed: 'push',
    ts: at(110),
    sinceMs: at(90),
    healUntilMs: at(400),
  } as const
  market.apply({ ...told, missing }, at(110))
  recorded.push({ event: { ...told, missing }, atMs: at(110) })
  const { length } = recorded
  for (let count = 0; count < 100; count++) expect(trade(mint, 96, 112)).toBe('late')
  for (let count = 0; count < 100; count++) expect(trade(mint, 97 + count / 100, 112)).toBe('late')
  expect(recorded.length - length).toBeLessThanOrEqual(2)
  expect(market.gaps(9).open[0]?.missing).toHaveLength(MISSING_PARTS_MAX)
  expect(market.stats().disconnects).toBe(1)
  expect(shown(replayed())).toEqual(shown(market))
})
