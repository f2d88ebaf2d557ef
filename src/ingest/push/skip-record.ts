// Finds the end of a msgpack value without decoding it, so that a record that is too large is refused before memory is spent on
// it. msgpackr has no such function.

/** By marker: how many bytes of value follow it. Items of arrays and maps are not counted. */
const BYTES = new Uint8Array(256)
/** By marker: the width of the length field behind it; 0 where it has none. */
const LENGTH_BYTES = new Uint8Array(256)
/** By marker: how many values each item of the length stands for: 1 in arrays, 2 in maps; 0 where the length counts bytes. */
const VALUES_PER_ITEM = new Uint8Array(256)
for (const [marker, bytes] of [
  [0xca, 4] as const,
  [0xcb, 8] as const,
  ...[0, 1, 2, 3].flatMap((power) => [
    [0xcc + power, 1 << power] as const,
    [0xd0 + power, 1 << power] as const,
  ]),
  ...Array.from({ length: 32 }, (_, bytes) => [0xa0 + bytes, bytes] as const),
])
  BYTES[marker] = bytes
for (const [first, widest] of [
  [0xc4, 2],
  [0xd9, 2],
])
  for (let power = 0; power <= widest; power++) LENGTH_BYTES[first + power] = 1 << power
for (const [marker, lengthBytes, values] of [
  [0xdc, 2, 1],
  [0xdd, 4, 1],
  [0xde, 2, 2],
  [0xdf, 4, 2],
]) {
  LENGTH_BYTES[marker] = lengthBytes
  VALUES_PER_ITEM[marker] = values
}

/** Extensions, and 0xc1, which is never used: only msgpackr decides on them. */
const isUnsupported = (marker: number): boolean =>
  marker === 0xc1 || (marker >= 0xc7 && marker <= 0xc9) || (marker >= 0xd4 && marker <= 0xd8)

/**
 * Where the value at `from` ends; -1 where it does not end in this body or holds an extension. Nested values are only counted,
 * so nesting costs neither memory nor stack.
 */
export function skipRecord(body: Buffer, from: number): number {
  let at = from
  for (let left = 1; left > 0; left--) {
    const marker = body[at++]
    if (at > body.length || isUnsupported(marker)) return -1
    if (marker >= 0x80 && marker <= 0x8f) left += 2 * (marker & 0x0f)
    else if (marker >= 0x90 && marker <= 0x9f) left += marker & 0x0f
    const lengthBytes = LENGTH_BYTES[marker]
    if (at + lengthBytes > body.length) return -1
    const length = lengthBytes === 0 ? 0 : body.readUIntBE(at, lengthBytes)
    const values = VALUES_PER_ITEM[marker]
    at += BYTES[marker] + lengthBytes + (values === 0 ? length : 0)
    left += length * values
  }
  return at <= body.length ? at : -1
}
