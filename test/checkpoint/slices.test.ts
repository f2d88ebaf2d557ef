import { expect, it } from 'vitest'
import { Market } from '../../src/market/market.ts'
import { settingsOf } from '../../src/market/market-parts.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { answersOf, NOON_MS } from './support.ts'

const TOKENS = 10_000

it('a market is restored and ranked in slices, to the same answers', { tags: 'drill' }, () => {
  const settings = settingsOf({ tokensMax: TOKENS })
  const market = new Market(settings)
  for (let index = 0; index < TOKENS; index++) {
    const mint = mintOfSymbol(`slice ${index}`)
    market.apply({ type: 'token', mint, ts: NOON_MS, name: `Token ${index}`, symbol: 'T' }, NOON_MS)
    const trade = { side: 'buy', tokenAmount: 1 + (index % 7), priceUsd: 1 + (index % 13) } as const
    market.apply({ type: 'trade', mint, ts: NOON_MS, ...trade }, NOON_MS)
  }
  const sections = new Map([...market.save()].map(({ name, bytes }) => [name, Buffer.from(bytes)]))
  const slices = Market.restoring(settings, (name) => sections.get(name) ?? null)
  let count = 0
  let step = slices.next()
  for (; !step.done; step = slices.next()) count++
  const restored = step.value
  const ranked = [...restored.ranking()].length
  // Names and texts alone come in three, and there are more parts than ten.
  expect(count).toBeGreaterThan(15)
  expect(ranked).toBe(12)
  expect(answersOf(restored)).toEqual(answersOf(market))
  expect(restored.seq).toBe(market.seq)
})
