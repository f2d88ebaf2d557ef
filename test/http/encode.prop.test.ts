// Rows of the market as Arrow, whatever they hold: against a plain reader's view of them.
import { DataType, tableFromIPC } from 'apache-arrow'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { itemsToArrow } from '../../src/http/encode.ts'
import type { MarketItem } from '../../src/schema/market-item.ts'

const { fields } = tableFromIPC(itemsToArrow([])).schema

/** Halves of a character among them: names are as their makers wrote them. */
const character = fc.constantFrom('a', 'é', '🚀', '\ud83d', '\ude80')

function cellOf(type: DataType): fc.Arbitrary<unknown> {
  if (DataType.isUtf8(type)) return fc.string({ unit: character, maxLength: 12 })
  if (DataType.isBool(type)) return fc.boolean()
  if (DataType.isInt(type)) return fc.integer({ min: -2_147_483_648, max: 2_147_483_647 })
  if (DataType.isTimestamp(type)) return fc.integer({ min: 0, max: 8_640_000_000_000_000 })
  return fc.double({ noNaN: true, noDefaultInfinity: true })
}

const item = fc.record(
  Object.fromEntries(fields.map(({ name, type }) => [name, fc.option(cellOf(type), { freq: 3 })])),
) as unknown as fc.Arbitrary<MarketItem>

const wellFormed = (row: object) =>
  Object.fromEntries(
    Object.entries(row).map(([name, cell]) => [name, typeof cell === 'string' ? cell.toWellFormed() : cell]),
  )

it('every cell of a row is found again, null where it is null', () => {
  fc.assert(
    fc.property(fc.array(item, { maxLength: 20 }), (items) => {
      const table = tableFromIPC(itemsToArrow(items))
      expect(table.toArray().map((row) => row.toJSON())).toEqual(items.map(wellFormed))
    }),
    { numRuns: 30 },
  )
})
