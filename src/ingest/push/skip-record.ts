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
for (const first of [0xc4, 0xc7, 0xd9])
  for (let power = 0; power <= 2; power++) LENGTH_BYTES[first + power] = 1 << power
/** By marker: 1 where the type of an extension comes before its bytes. */
const IS_EXTENSION = new Uint8Array(256)
for (const marker of [0xc7, 0xc8, 0xc9]) BYTES[marker] = IS_EXTENSION[marker] = 1
for (let power = 0; power <= 4; power++) {
  BYTES[0xd4 + power] = 1 + (1 << power)
  IS_EXTENSION[0xd4 + power] = 1
}
/** By type of an extension: how many values behind it msgpackr reads as a part of it: errors, values with an id, sets and patterns. */
const VALUES_BEHIND = new Uint8Array(256)
for (const type of [0x65, 0x69, 0x73, 0x78]) VALUES_BEHIND[type] = 1
for (const [marker, lengthBytes, values] of [
  [0xdc, 2, 1],
  [0xdd, 4, 1],
  [0xde, 2, 2],
  [0xdf, 4, 2],
]) {
  LENGTH_BYTES[marker] = lengthBytes
  VALUES_PER_ITEM[marker] = values
}

/** Msgpackr's own texts in bundles and records with a structure: where these end only msgpackr knows. */
const isOfItsOwn = (type: number): boolean => type === 0x62 || type === 0x72

/**
 * Where the value at `from` ends; -1 where it does not end in this body or only msgpackr knows where. Nested values are only counted,
 * so nesting costs neither memory nor stack.
 */
export function skipRecord(body: Buffer, from: number): number {
  let at = from
  for (let left = 1; left > 0; left--) {
    const marker = body[at++]
    // 0xc1 is never used.
    if (at > body.length || marker === 0xc1) return -1
    if (marker >= 0x80 && marker <= 0x8f) left += 2 * (marker & 0x0f)
    else if (marker >= 0x90 && marker <= 0x9f) left += marker & 0x0f
    const lengthBytes = LENGTH_BYTES[marker]
    if (at + lengthBytes > body.length) return -1
    const length = lengthBytes === 0 ? 0 : body.readUIntBE(at, lengthBytes)
    const values = VALUES_PER_ITEM[marker]
    if (IS_EXTENSION[marker] === 1) {
      const type = body[at + lengthBytes]
      if (type === undefined || isOfItsOwn(type)) return -1
      left += VALUES_BEHIND[type]
    }
    at += BYTES[marker] + lengthBytes + (values === 0 ? length : 0)
    left += length * values
  }
  return at <= body.length ? at : -1
}
