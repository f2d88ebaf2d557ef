// Mints with a number each, in order.
import { z } from 'zod'
import type { Entry } from '../../lib/collections/bounded-map.ts'
import { jsonSection, numbersSection, type Section, type SectionReader } from '../../lib/sections/sections.ts'
import { encodeTexts } from '../../lib/sections/text-column.ts'

/** Entries in one section, which bounds the memory that it takes. */
const ENTRIES_PER_SECTION = 65_536

export function* saveMintNumbers(name: string, entries: Iterable<Entry<string, number>>): Iterable<Section> {
  const all = [...entries]
  yield jsonSection(`${name}.count`, all.length)
  for (let first = 0; first < all.length; first += ENTRIES_PER_SECTION) {
    const part = all.slice(first, first + ENTRIES_PER_SECTION)
    yield { name: `${name}.mints.${first}`, bytes: encodeTexts(part.map(({ key }) => key)) }
    yield numbersSection(
      `${name}.numbers.${first}`,
      Float64Array.from(part, ({ value }) => value),
    )
  }
}

export function* readMintNumbers(name: string, sections: SectionReader): Iterable<Entry<string, number>> {
  const count = sections.json(`${name}.count`, z.number())
  for (let first = 0; first < count; first += ENTRIES_PER_SECTION) {
    const numbers = new Float64Array(Math.min(ENTRIES_PER_SECTION, count - first))
    sections.fill(`${name}.numbers.${first}`, numbers)
    const mints = sections.texts(`${name}.mints.${first}`, numbers.length)
    for (let index = 0; index < numbers.length; index++) {
      const key = mints.at(index)
      if (key !== null) yield { key, value: numbers[index] }
    }
  }
}
