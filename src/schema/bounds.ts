// In: nothing. Out: the bounds of every number and text that comes from outside, and the schemas that hold them. They lie
// far beyond anything a market shows, and so close together that no product, quotient or sum that the engine makes of
// them leaves the range of doubles. Never holds a value.
import { z } from 'zod'
import { truncateText } from '../lib/truncate-text.ts'

/** The largest price, amount or value in USD, SOL or tokens. What follows from such and is larger is unknown. */
export const AMOUNT_MAX = 1e30
/** The smallest price of a trade, or of SOL. */
export const PRICE_MIN = 1e-30
/** The largest count of holders, trades or viewers. */
export const COUNT_MAX = 1e15
/** Unix ms; the first second of 1970 is reserved as "no time", and this is the last time that a Date holds. */
export const TIME_MS_MIN = 1_000
export const TIME_MS_MAX = 8.64e15
/** UTF-16 units of names, addresses and other words, of web addresses, and of descriptions. Longer ones are cut. */
export const WORD_CHARS_MAX = 128
export const URI_CHARS_MAX = 512
export const DESCRIPTION_CHARS_MAX = 1_000

export const amount = z.number().min(0).max(AMOUNT_MAX)
export const price = z.number().min(PRICE_MIN).max(AMOUNT_MAX)
export const count = z.number().int().min(0).max(COUNT_MAX)
export const positive = z.number().positive().max(AMOUNT_MAX)
/** May be below zero: a change. */
export const change = z.number().min(-AMOUNT_MAX).max(AMOUNT_MAX)
export const time = z.number().int().min(TIME_MS_MIN).max(TIME_MS_MAX)

/** Text is cut, not refused: a token is not lost because its description is long. */
const text = (charsMax: number) =>
  z
    .string()
    .transform((value) => truncateText(value, charsMax))
    .meta({ description: `Cut after ${charsMax} characters` })
export const word = text(WORD_CHARS_MAX)
export const uri = text(URI_CHARS_MAX)
export const description = text(DESCRIPTION_CHARS_MAX)

/** A figure that was derived: NaN, which stands for unknown, where it is none or lies beyond the bound. */
export const bounded = (value: number): number =>
  value >= -AMOUNT_MAX && value <= AMOUNT_MAX ? value : Number.NaN
