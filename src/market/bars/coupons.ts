// Estimates how many wallets there are from the different coupons that they drew: the estimator ICON of K. Lang, "Back to the Future:
// an Even More Nearly Optimal Cardinality Estimation Algorithm" (2017). Its standard error is at most ln 2 / √rows: 1.5 %.
//
// A wallet draws a row, each as likely as the others, and a column, each half as likely as the one before, both from its hash, so that
// it draws the same coupon again and again.

const ROW_BITS = 11
const COUPON_ROWS = 1 << ROW_BITS
const COLUMN_BITS = 5
/** Columns are numbered from 1, so that no coupon is 0. The last has what lies beyond, too. */
const LAST_COLUMN = (1 << COLUMN_BITS) - 1
/** Coupons are numbers below this. */
export const COUPONS = 1 << (ROW_BITS + COLUMN_BITS)
/** Bits that a coupon is made of: a word of 32, and the upper half of another. */
const FIRST_WORD_BITS = 32 - ROW_BITS

/** The coupon of a wallet, from 1 to 65535. @param upperHalf of the hash's second word, 16 bits */
export function couponOf(firstWord: number, upperHalf: number): number {
  const row = firstWord & (COUPON_ROWS - 1)
  const rest = firstWord >>> ROW_BITS
  const zeros = rest === 0 ? FIRST_WORD_BITS + Math.clz32(upperHalf) - 16 : Math.clz32(rest) - ROW_BITS
  return (row << COLUMN_BITS) | Math.min(zeros + 1, LAST_COLUMN)
}

/** By column: how likely a wallet draws it. */
const SHARES = Array.from({ length: LAST_COLUMN }, (_, index) => 2 ** -Math.min(index + 1, LAST_COLUMN - 1))
/** Coupons per row from which on their number grows by one with every doubling of the wallets, nearly. */
const MANY = 4
const STEPS_MAX = 64
const PRECISION = 1e-9

/** The number of wallets of which so many different coupons are expected; not rounded. */
export function walletsOfCoupons(coupons: number): number {
  const wanted = coupons / COUPON_ROWS
  // Newton's method from below: the expectation is less than `perRow`, and less than this where there are many. Its slope falls, so
  // that no step goes beyond the solution.
  let perRow = wanted < MANY ? wanted : 2 ** (wanted - 1.34)
  for (let step = 0; step < STEPS_MAX; step++) {
    let expected = 0
    let slope = 0
    for (const share of SHARES) {
      const isMissing = Math.exp(-perRow * share)
      expected += 1 - isMissing
      slope += share * isMissing
    }
    const change = (wanted - expected) / slope
    perRow += change
    if (!(change > perRow * PRECISION)) break
  }
  return perRow * COUPON_ROWS
}
