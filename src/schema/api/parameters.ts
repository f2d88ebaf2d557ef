// Kinds of query parameters. A route ignores others than its own, and the answer tells their names.
import { z } from 'zod'

/** One of these words, in upper or lower case. */
export const word = <Word extends string>(words: readonly [Word, ...Word[]], description: string) =>
  z.enum(words).optional().meta({ description })
export const whole = (min: number, description: string) => z.int().min(min).optional().meta({ description })
export const time = (description: string) => z.int().min(0).optional().meta({ description, unit: 'Unix ms' })
export const text = (description: string) => z.string().optional().meta({ description })
/** Rows wanted. A number above the maximum is reduced to it, so it is no `maximum` of the schema. */
export const limit = (otherwise: number, max: number, told: string) =>
  z
    .int()
    .min(1)
    .default(otherwise)
    .meta({ description: `Rows wanted. More than ${max} become ${max}${told}` })
