// Compares rows of the market in Arrow, read with apache-arrow, with the original rows.
import { DataType, tableFromIPC } from 'apache-arrow'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { itemsToArrow } from '../../../src/http/encode/items.ts'
import type { MarketItem } from '../../../src/schema/market-item.ts'

const { fields } = tableFromIPC(itemsToArrow([])).schema

/** Texts with lone surrogates too, as token names can have them. */
const character = fc.constantFrom('a', 'é', '🚀', '\ud83d', '\ude80')

function cellOf(type: DataType): fc.Arbitrary<unknown> {
  if (DataType.isUtf8(type)) return fc.string({ unit: character, maxLength: 12 })
  if (DataType.isBool(type)) return fc.boolean()
  if (DataType.isInt(type)) return fc.maxSafeInteger()
  if (DataType.isTimestamp(type)) return fc.integer({ min: 0, max: 8_640_000_000_000_000 })
  return fc.double({ noNaN: true, noDefaultInfinity: true })
}

const item = fc.record(
  Object.fromEntries(fields.map(({ name, type }) => [name, fc.option(cellOf(type), { freq: 3 })])),
) as unknown as fc.Arbitrary<MarketItem>

/** A row as Arrow returns it: well-formed texts, and 64-bit integers. */
const asRead = (row: object) =>
  Object.fromEntries(
    Object.entries(row).map(([name, cell]) => {
      if (typeof cell === 'string') return [name, cell.toWellFormed()]
      const isWhole = cell !== null && DataType.isInt(fields.find((field) => field.name === name)!.type)
      return [name, isWhole ? BigInt(cell) : cell]
    }),
  )

it('every cell of a row is read back as it was written, nulls included', () => {
  fc.assert(
    fc.property(fc.array(item, { maxLength: 20 }), (items) => {
      const table = tableFromIPC(itemsToArrow(items))
      expect(table.toArray().map((row) => row.toJSON())).toEqual(items.map(asRead))
    }),
    { numRuns: 30 },
  )
})

it('a count beyond 32 bits is the same in Arrow as in JSON', () => {
  for (const count of [3_000_000_000, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
    const item = { holder_count: count, analysis_count: count } as MarketItem
    expect(
      tableFromIPC(itemsToArrow([item]))
        .get(0)!
        .toJSON(),
    ).toMatchObject({
      holder_count: BigInt(count),
      analysis_count: BigInt(count),
    })
  }
})
