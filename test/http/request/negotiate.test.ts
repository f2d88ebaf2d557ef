// Choosing a content coding by the weights of Accept-Encoding.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { preferredCoding } from '../../../src/http/response/compress.ts'

describe('Accept-Encoding', () => {
  it.each([
    ['', null],
    ['br', 'br'],
    ['gzip', 'gzip'],
    ['gzip, deflate, br', 'br'],
    ['br;q=x', null],
    ['br;q=', null],
    ['br;q=2, gzip;q=0.1', 'gzip'],
    ['br;q=-1', null],
    ['br;q=NaN, gzip;q=Infinity', null],
    ['br;q=0, gzip', 'gzip'],
    ['br;q=.5, gzip;q=.6', 'gzip'],
    ['*', 'br'],
    ['*;q=0', null],
    ['identity, br;q=0.5', null],
    ['identity;q=0.5, br', 'br'],
    ['constructor, toString', null],
  ])('%j selects the coding %j', (header, coding) => expect(preferredCoding(header)).toBe(coding))

  it('never selects a coding that the client did not name with a weight above zero', () => {
    const weight = fc.oneof(
      fc.constantFrom('', ';q=0', ';q=1', ';q=x', ';q=0.000', ';q=1e9', ';Q=0', '; q=0.3'),
      fc.string({ maxLength: 6 }).map((text) => `;q=${text.replace(/[,;]/g, '')}`),
    )
    const entry = fc.tuple(fc.constantFrom('br', 'gzip', 'identity', 'deflate', 'x'), weight)
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 5 }), (entries) => {
        const coding = preferredCoding(entries.map((words) => words.join('')).join(', '))
        if (coding === null) return
        const said = entries.filter(([name]) => name === coding).map(([, words]) => words)
        expect(said.some((words) => words === '' || Number(words.split('=')[1]) > 0)).toBe(true)
      }),
    )
  })
})
