// The CRC-32 of two texts one after the other, from the CRCs of both: each follower needs one of all that it was sent, and what it was
// sent is shared. As zlib's crc32_combine: to append n bytes of zero is a linear map of the 32 bits, which is made by squaring.

/** The map for a number of bytes: what becomes of each bit. */
export type LengthOperator = Uint32Array

/** CRC-32 in reversed bits (RFC 1952). */
const POLYNOMIAL = 0xedb88320
const BITS = 32

function apply(operator: LengthOperator, crc: number): number {
  let sum = 0
  for (let bit = 0, rest = crc; rest !== 0; bit++, rest >>>= 1)
    if ((rest & 1) !== 0) sum ^= operator[bit] ?? 0
  return sum >>> 0
}

const square = (operator: LengthOperator): LengthOperator => operator.map((crc) => apply(operator, crc))

/** One bit of zero. */
const ONE_BIT = Uint32Array.from({ length: BITS }, (_, bit) => (bit === 0 ? POLYNOMIAL : 2 ** (bit - 1)))
const ONE_BYTE = square(square(square(ONE_BIT)))
/** For 1, 2, 4, … bytes. */
const POWERS: LengthOperator[] = [ONE_BYTE]
for (let power = 1; power < BITS; power++) POWERS.push(square(POWERS[power - 1] ?? ONE_BYTE))
const IDENTITY: LengthOperator = Uint32Array.from({ length: BITS }, (_, bit) => 2 ** bit)

export function lengthOperator(bytes: number): LengthOperator {
  let operator = IDENTITY
  for (let power = 0; bytes >= 2 ** power; power++) {
    if ((Math.floor(bytes / 2 ** power) & 1) === 0) continue
    const factor = POWERS[power] ?? ONE_BYTE
    operator = operator.map((crc) => apply(factor, crc))
  }
  return operator
}

/** @param length of the second text */
export const combineCrc32 = (first: number, second: number, length: LengthOperator): number =>
  (apply(length, first) ^ second) >>> 0
