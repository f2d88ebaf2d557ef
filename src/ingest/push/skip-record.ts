// In: a body of msgpack and where a record begins. Out: where it ends, found without making anything of it. Extensions and
// what is no msgpack it leaves to the library. Never goes deeper than a count: nesting costs no memory.

/** By marker: bytes that follow it, its items apart. */
const BYTES = new Uint8Array(256)
/** By marker: how wide the length is that stands behind it, and what it counts: bytes, or items of so many values. */
const LENGTH_BYTES = new Uint8Array(256)
const VALUES_PER_ITEM = new Uint8Array(256)
for (const [marker, bytes] of [
  ...[[0xca, 4] as const, [0xcb, 8] as const],
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

const isLeft = (marker: number): boolean =>
  marker === 0xc1 || (marker >= 0xc7 && marker <= 0xc9) || (marker >= 0xd4 && marker <= 0xd8)

/** Where the record at `from` ends; -1 where it does not end in this body, or the library must say. */
export function skipRecord(body: Buffer, from: number): number {
  let at = from
  for (let left = 1; left > 0; left--) {
    const marker = body[at++]
    if (at > body.length || isLeft(marker)) return -1
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
