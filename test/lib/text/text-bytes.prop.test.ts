// Text that is made as bytes, piece by piece, is what Node makes of the same pieces at once.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { TextBytes } from '../../../src/lib/text/text-bytes.ts'

const short = fc.string({
  unit: fc.constantFrom('a', 'Z', '"', '\u007f', '\u0080', 'é', '中', '😀', '\u2028'),
  maxLength: 70,
})
const long = fc.tuple(short, fc.integer({ min: 0, max: 3_000 })).map(([text, times]) => text.repeat(times))

it('writes any pieces, in memory that it uses again', () => {
  const out = new TextBytes()
  fc.assert(
    fc.property(fc.array(fc.oneof({ weight: 9, arbitrary: short }, long), { maxLength: 20 }), (pieces) => {
      out.clear()
      for (const piece of pieces) out.write(piece)
      const expected = Buffer.from(pieces.join(''))
      expect(out.bytes.equals(expected)).toBe(true)
      const own = out.ownBytes()
      out.clear()
      out.write('something else')
      expect(own.equals(expected)).toBe(true)
      expect(own.buffer.byteLength).toBe(expected.length)
    }),
  )
})

it('writes the items of a list of numbers, as they are each by itself', () => {
  const out = new TextBytes()
  const item = fc.oneof({ weight: 9, arbitrary: fc.double({ noNaN: true }) }, fc.boolean(), fc.constant(null))
  fc.assert(
    fc.property(fc.array(item, { minLength: 1, maxLength: 30 }), (items) => {
      out.clear()
      const list = JSON.stringify(items)
      let at = 1
      for (const _ of items) {
        out.write(' ')
        at = out.writeItem(list, at)
      }
      expect(at).toBe(list.length)
      expect(out.bytes.toString()).toBe(items.map((value) => ` ${JSON.stringify(value)}`).join(''))
    }),
  )
})
