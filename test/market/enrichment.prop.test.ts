// The rule of the enriched fields on the engine, against an oracle that keeps every answer and looks for the best at each question.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Market } from '../../src/market/market.ts'
import type { PatchFields } from '../../src/schema/datapoint.ts'
import { ENRICHMENT_RULES, type EnrichmentRule } from '../../src/schema/enrichment.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import { ENRICHED_FIELDS, type EnrichedField } from '../../src/schema/features.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { fewAndMany } from '../support/cases.ts'

const MINT = mintOfSymbol('enriched')
const START_MS = 1_772_000_000_000
const MINUTE_MS = 60_000
const OPTIONS = { tokensMax: 4, barsPerTokenMax: 8, versionsMax: 1_024, changeLogEntriesMax: 64 }

const valueFor = (field: EnrichedField): fc.Arbitrary<boolean | number> =>
  field.startsWith('has_') || field.startsWith('is_') || field === 'transfer_fee_enabled'
    ? fc.boolean()
    : fc.integer({ min: 0, max: 100 })
const fields = fc.record(
  Object.fromEntries(ENRICHED_FIELDS.map((field) => [field, fc.option(valueFor(field), { freq: 4 })])),
  { requiredKeys: [] },
)
const step = fc.record({
  passMs: fc.constantFrom(0, 1_000, 10 * MINUTE_MS, 20 * MINUTE_MS, 120 * MINUTE_MS, 25 * 60 * MINUTE_MS),
  source: fc.constantFrom('chain', 'birdeye', 'simulated', 'another', undefined),
  agoMs: fc.constantFrom(0, 5_000, 30 * MINUTE_MS),
  fields,
})

interface Said {
  kind: string
  source: string
  atMs: number
  field: EnrichedField
  value: boolean | number | null
}

/** Of each kind the last word about a field; of these the first that is fresh, else the first. */
function expected(said: readonly Said[], field: EnrichedField, nowMs: number): Said | null {
  const { kinds, freshMs }: EnrichmentRule = ENRICHMENT_RULES[field]
  const last = kinds
    .map((kind) => said.findLast((each) => each.kind === kind && each.field === field))
    .filter((each): each is Said => each != null && each.value !== null)
  return last.find(({ atMs }) => nowMs - atMs <= freshMs) ?? last[0] ?? null
}

for (const { runs, tags } of fewAndMany(15, 300))
  it(`each field is what the first source that has a fresh answer said last, across restarts too: ${runs} cases`, {
    tags,
  }, () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), fc.boolean(), (steps, isRestored) => {
        let market = new Market(OPTIONS)
        // Nobody says anything of its token: it has what its own trades say.
        const silent = new Market(OPTIONS)
        let nowMs = START_MS
        const said: Said[] = []
        for (const each of [market, silent])
          each.apply({ type: 'token', mint: MINT, ts: nowMs, name: 'n', symbol: 's' }, nowMs)
        for (const { passMs, source, agoMs, fields } of steps) {
          nowMs += passMs
          silent.advanceTo(nowMs)
          const atMs = nowMs - agoMs
          const patch = { ...fields, enriched_source: source, enriched_at: atMs } as PatchFields
          market.apply({ type: 'patch', mint: MINT, ts: nowMs, fields: patch }, nowMs)
          for (const field of ENRICHED_FIELDS) {
            const value = patch[field]
            if (value === undefined) continue
            const kind = source === 'chain' ? 'chain' : 'provider'
            said.push({ kind, source: source ?? 'push', atMs, field, value })
          }
          if (isRestored) {
            const sections = new Map([...market.save()].map(({ name, bytes }) => [name, bytes.slice()]))
            market = Market.restore(OPTIONS, (name) => sections.get(name) ?? null)
          }
          const point = market.datapoint(MINT)
          const figures = silent.enriched(MINT)
          const own = ENRICHED_FIELDS.map((field) => ({
            ...{ kind: 'trades', source: 'trades', atMs: nowMs, field, value: figures?.[field] ?? null },
          }))
          const counted = ENRICHED_FIELDS.map((field) => expected([...said, ...own], field, nowMs))
          for (const [index, field] of ENRICHED_FIELDS.entries()) {
            const best = counted[index]
            expect(point?.[field]).toBe(best?.value ?? null)
            const told = point?.enrichedFrom.filter((part) => part.fields.includes(field))
            expect(told?.map(({ source, at }) => [source, at])).toEqual(
              best ? [[best.source, best.atMs]] : [],
            )
          }
          const known = counted.filter((each) => each !== null)
          expect(point?.enriched_at).toBe(
            known.length === 0 ? null : Math.min(...known.map((each) => each.atMs)),
          )
          const sources = new Set(point?.enriched_source?.split('+') ?? [])
          expect(sources).toEqual(new Set(known.map((each) => each.source)))
          expect(market.enriched(MINT)).toEqual({
            ...Object.fromEntries(ENRICHED_FIELDS.map((field) => [field, point?.[field]])),
            ...{ enriched_at: point?.enriched_at, enriched_source: point?.enriched_source },
          })
        }
      }),
      { numRuns: runs },
    )
  })

it('whose the supply and the holders are is told where they have a source, until somebody else says another', () => {
  const market = new Market(OPTIONS)
  const apply = (event: object) =>
    market.apply({ mint: MINT, ts: START_MS, ...event } as MarketEvent, START_MS)
  const from = () => market.datapoint(MINT)?.enrichedFrom.filter(({ source }) => source !== 'trades')
  const topHolders = [{ address: 'holder', amount: 5, pct: 5 }]
  const chain = { enriched_source: 'chain', enriched_at: START_MS - 1 }
  apply({ type: 'token', name: 'n', symbol: 's', totalSupply: 1_000 })
  expect(from()).toEqual([])
  apply({ type: 'patch', fields: { totalSupply: 100, topHolders, ...chain } })
  expect(from()).toEqual([{ source: 'chain', at: START_MS - 1, fields: ['totalSupply', 'topHolders'] }])
  // They are no enriched fields: a submission gets none of them.
  expect(market.enriched(MINT)).toMatchObject({ enriched_source: 'trades', enriched_at: START_MS })
  // A patch sets what it names: what is told is whose the value that is shown is, also where that one looked earlier than another.
  apply({
    ...{ type: 'patch' },
    fields: { topHolders: [], enriched_source: 'birdeye', enriched_at: START_MS - 9_000 },
  })
  expect(market.datapoint(MINT)?.topHolders).toEqual([])
  apply({ type: 'token', name: 'n', symbol: 's', totalSupply: 100 })
  expect(from()).toEqual([
    { source: 'chain', at: START_MS - 1, fields: ['totalSupply'] },
    { source: 'birdeye', at: START_MS - 9_000, fields: ['topHolders'] },
  ])
  apply({ type: 'token', name: 'n', symbol: 's', totalSupply: 200 })
  apply({ type: 'patch', fields: { topHolders } })
  expect(from()).toEqual([])
})

describe('answers that contradict one another', () => {
  const patch = (market: Market, source: string, fields: PatchFields, atMs: number) =>
    market.apply(
      { type: 'patch', mint: MINT, ts: atMs, fields: { ...fields, enriched_source: source } },
      atMs,
    )

  it('are counted by field, beyond the bound, while both are fresh', () => {
    const market = new Market(OPTIONS)
    patch(market, 'chain', { has_mint_authority: false, top10_holder_pct_onchain: 40 }, START_MS)
    patch(market, 'birdeye', { has_mint_authority: true, top10_holder_pct_onchain: 44 }, START_MS)
    expect(market.stats().enrichmentContradictions).toEqual({ has_mint_authority: 1 })
    expect(market.datapoint(MINT)).toMatchObject({ has_mint_authority: false })
    patch(market, 'birdeye', { has_mint_authority: false, top10_holder_pct_onchain: 46 }, START_MS)
    expect(market.stats().enrichmentContradictions).toEqual({
      ...{ has_mint_authority: 1, top10_holder_pct_onchain: 1 },
    })
    const laterMs = START_MS + 48 * 60 * MINUTE_MS
    patch(market, 'birdeye', { has_mint_authority: true, top10_holder_pct_onchain: 90 }, laterMs)
    expect(market.stats().enrichmentContradictions).toMatchObject({ has_mint_authority: 1 })
    expect(market.datapoint(MINT)).toMatchObject({
      has_mint_authority: true,
      enriched_source: 'birdeye+trades',
    })
  })
})
