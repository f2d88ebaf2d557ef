// Rows that followers are sent are those of a page, byte for byte, each with its position as its last member: whatever texts they have,
// however many bytes they are together, with all fields or with some.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Market } from '../../src/market/market.ts'
import type { RowFields } from '../../src/market/types.ts'
import type { RowField } from '../../src/schema/market-item.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { fewAndMany } from '../support/cases.ts'

const TOKENS = 60
const TS = 1_000_000
const MINTS = Array.from({ length: TOKENS }, (_, index) => mintOfSymbol(`token ${index}`))

const text = fc.string({
  unit: fc.constantFrom('a', '"', '\\', '\u007f', '\u0085', 'é', '中', '😀', '\u2028', '\u2029', '\ud800'),
  maxLength: 30,
})
/** Together they are far more than the memory has at first that they are joined in. */
const long = fc.tuple(text, fc.nat(200)).map(([text, times]) => text.repeat(times))
const tokens = fc.array(
  fc.record({ name: text, description: long, priceUsd: fc.double({ min: 1e-9, max: 1e9 }) }),
  {
    minLength: 1,
    maxLength: TOKENS,
    size: 'max',
  },
)
const chosen = ['mint', 'priceUsd', 'change_1h', 'name', 'description'] as const satisfies readonly RowField[]
const FIELDS: readonly (RowFields | null)[] = [null, { key: chosen.join(), fields: chosen }]

const linesOf = (rows: Buffer): string[] => rows.toString().split('\n').slice(0, -1)

for (const { runs, tags } of fewAndMany(8, 40))
  it(`are those of a page, with a position each: ${runs} cases`, { tags }, () => {
    fc.assert(
      fc.property(tokens, fc.constantFrom(...FIELDS), (tokens, fields) => {
        const market = new Market({ tokensMax: TOKENS })
        const since = market.seq
        for (const [at, { priceUsd, ...texts }] of tokens.entries()) {
          const [mint, ts] = [MINTS[at], TS + at]
          market.apply({ type: 'token', mint, ts, symbol: 'S', ...texts }, ts)
          market.apply({ type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd }, ts)
        }
        const page = () =>
          market
            .page({ tab: 'all', sort: 'hot', order: 'desc', offset: 0, limit: TOKENS, fields })
            .lines.map(String)
        const before = page()
        const { parts } = market.changesSince(since, 'all', TOKENS, fields)
        const sent = parts.flatMap((part) => ('rows' in part ? linesOf(part.rows) : []))
        const withoutSeq = sent.map((line) => line.replace(/,"seq":\d+\}$/, '}\n'))
        expect(withoutSeq.toSorted()).toEqual(before.toSorted())
        // Lines that are made afterwards have no position.
        market.apply(
          { type: 'trade', mint: MINTS[0], ts: TS + TOKENS, side: 'sell', tokenAmount: 2, priceUsd: 2 },
          TS + TOKENS,
        )
        for (const line of page()) expect(Object.keys(JSON.parse(line))).not.toContain('seq')
        const names = new Map(before.map((line) => JSON.parse(line)).map(({ mint, name }) => [mint, name]))
        for (const [at, { name }] of tokens.entries()) expect(names.get(MINTS[at])).toBe(name)
      }),
      { numRuns: runs, endOnFailure: true },
    )
  })
