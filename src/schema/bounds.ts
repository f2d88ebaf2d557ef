// The bounds of all numbers and texts from outside, and their schemas. They are far beyond real market values, but small enough
// that no product, quotient or sum that the engine computes overflows a double.
import { z } from 'zod'
import { truncateText } from '../lib/text/truncate-text.ts'

/** The largest price, amount or value in USD, SOL or tokens. A computed value that is larger counts as unknown. */
export const AMOUNT_MAX = 1e30
/** The smallest price of a trade or of SOL. */
export const PRICE_MIN = 1e-30
/** The largest count of holders, trades or viewers. */
export const COUNT_MAX = 1e15
/** Unix ms. Times in the first second of 1970 are not allowed, so that 0 can mean "no time"; the maximum is that of a Date. */
export const TIME_MS_MIN = 1_000
export const TIME_MS_MAX = 8.64e15
/** UTF-16 units of names, wallet addresses and other words, of URIs, and of descriptions. Longer texts are truncated. */
export const WORD_CHARS_MAX = 128
export const URI_CHARS_MAX = 512
export const DESCRIPTION_CHARS_MAX = 1_000

export const amount = z.number().min(0).max(AMOUNT_MAX)
export const price = z.number().min(PRICE_MIN).max(AMOUNT_MAX)
export const count = z.number().int().min(0).max(COUNT_MAX)
export const positive = z.number().positive().max(AMOUNT_MAX)
/** A difference, which may be negative. */
export const change = z.number().min(-AMOUNT_MAX).max(AMOUNT_MAX)
export const time = z.number().int().min(TIME_MS_MIN).max(TIME_MS_MAX)

/** Long texts are truncated, not rejected, so that a long description does not keep a token out of the market. */
const text = (charsMax: number) =>
  z
    .string()
    .transform((value) => truncateText(value, charsMax))
    .meta({ description: `Cut after ${charsMax} characters` })
export const word = text(WORD_CHARS_MAX)
export const uri = text(URI_CHARS_MAX)
export const description = text(DESCRIPTION_CHARS_MAX)

/** A computed value, or NaN (unknown) where it is out of bounds. */
export const bounded = (value: number): number =>
  value >= -AMOUNT_MAX && value <= AMOUNT_MAX ? value : Number.NaN
