// Whatever each trade of a token touches lies side by side, in a block, so that the processor looks for few pages of memory: the start of
// its newest and of its oldest second, one open bar for each timeframe longer than a second, its pending seconds, and the wallets
// that were seen latest (wallet-windows.ts).
import { assert } from '../../lib/assert.ts'
import { TIMEFRAMES } from '../../schema/bar.ts'
import { LATE_GRACE_MS } from '../time/limits.ts'
import { BAR_STRIDE, T } from './bar-ring.ts'
import { WALLET_NUMBERS } from './wallet-block.ts'

/** Seconds of a token that may still change: those within LATE_GRACE_MS and the newest, rounded up to a power of two. */
export const PENDING_SECONDS = 8
/** A pending second also has the times of its first and last trade, which decide whether a late trade opens or closes it. */
export const FIRST_AT = BAR_STRIDE
export const LAST_AT = BAR_STRIDE + 1
export const PENDING_STRIDE = BAR_STRIDE + 2
const OPEN_BARS = TIMEFRAMES.length - 1
/** Where open bars and pending seconds begin. */
export const OPEN_AT = 2
export const PENDING_AT = OPEN_AT + OPEN_BARS * BAR_STRIDE
/** Where bars end. What lies before it is saved in checkpoints. */
export const BARS_END = PENDING_AT + PENDING_SECONDS * PENDING_STRIDE

/** Numbers of a line of memory. */
const LINE = 8
const lines = (numbers: number): number => Math.ceil(numbers / LINE) * LINE
/** Large memory begins two numbers behind the beginning of a line (glibc's malloc). Wallets begin with a line. */
const FIRST_LINE = LINE - 2
/** Where wallets begin. */
export const WALLETS_AT = FIRST_LINE + lines(BARS_END - FIRST_LINE)
/** The numbers of the block, a multiple of a line. */
export const TOKEN_BLOCK = lines(WALLETS_AT + WALLET_NUMBERS)

/** Memory for the blocks of so many tokens. */
export const tokenBlocks = (tokensMax: number): Float64Array<ArrayBuffer> =>
  new Float64Array(tokensMax * TOKEN_BLOCK)

/** The start of a bar that is not there: no trade is as old as this. */
export const EMPTY = 0

/** By its place in the block: how many numbers each bar has that may be there. */
const LENGTHS: ReadonlyMap<number, number> = new Map([
  ...Array.from({ length: OPEN_BARS }, (_, bar) => [OPEN_AT + bar * BAR_STRIDE, BAR_STRIDE] as const),
  ...Array.from(
    { length: PENDING_SECONDS },
    (_, second) => [PENDING_AT + second * PENDING_STRIDE, PENDING_STRIDE] as const,
  ),
])

/**
 * The blocks of these tokens without their empty places, which are most: of each token its newest and its oldest second, how
 * many bars follow, and these, each behind its place.
 */
export function packBlocks(blocks: Float64Array, first: number, end: number): Float64Array {
  const packed = new Float64Array((end - first) * (BARS_END + 1 + LENGTHS.size))
  let next = 0
  for (let slot = first; slot < end; slot++) {
    const block = slot * TOKEN_BLOCK
    const countAt = next + 2
    packed[next] = blocks[block]
    packed[next + 1] = blocks[block + 1]
    next += 3
    for (const [place, length] of LENGTHS) {
      if (blocks[block + place + T] === EMPTY) continue
      packed[countAt]++
      packed[next++] = place
      for (let at = 0; at < length; at++) packed[next++] = blocks[block + place + at]
    }
  }
  return packed.subarray(0, next)
}

/** Writes packed blocks of these tokens to where they belong. @returns whether that is what they are. */
export function unpackBlocks(
  blocks: Float64Array,
  first: number,
  end: number,
  packed: Float64Array,
): boolean {
  let at = 0
  for (let slot = first; slot < end; slot++) {
    const block = slot * TOKEN_BLOCK
    blocks.set(packed.subarray(at, at + 2), block)
    const bars = packed[at + 2]
    at += 3
    for (let bar = 0; bar < bars; bar++) {
      const length = LENGTHS.get(packed[at]) ?? 0
      if (length === 0) return false
      blocks.set(packed.subarray(at + 1, at + 1 + length), block + packed[at])
      at += 1 + length
    }
  }
  return at === packed.length
}

// Trades within the grace touch at most this many seconds besides the newest one.
assert(LATE_GRACE_MS / 1_000 + 2 <= PENDING_SECONDS, 'the pending seconds cover LATE_GRACE_MS')
