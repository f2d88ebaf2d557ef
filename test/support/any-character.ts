// Characters for `fc.string`. fast-check's own unit 'binary' lists all million of them first: a second, and 90 MB that the process
// of the tests keeps.
import fc from 'fast-check'

const LAST = 0x10ffff
const SURROGATES_FROM = 0xd800
const SURROGATES = 0x800

/** Any character of Unicode, one of ASCII half of the time. No half of a surrogate pair. */
export const anyCharacter: fc.Arbitrary<string> = fc
  .oneof(fc.integer({ min: 0, max: 0x7f }), fc.integer({ min: 0, max: LAST - SURROGATES }))
  .map((code) => String.fromCodePoint(code < SURROGATES_FROM ? code : code + SURROGATES))
