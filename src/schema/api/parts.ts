// What the schemas of bodies and answers have in common.
import { z } from 'zod'
import { withExample } from '../example.ts'
import { SNAPSHOT_FIELDS } from '../features.ts'
import { MINT_SHAPE } from '../mint.ts'

export const mintSchema = z.string().meta({ description: 'Mint address, base58 of 32 bytes', ...MINT_SHAPE })

/** The formats of reads of the market; the parameter wins over the Accept header. */
export const FORMATS = ['json', 'ndjson', 'msgpack', 'arrow'] as const

/** A time in Unix ms. */
export const unixMs = (description: string) => z.number().int().meta({ description, unit: 'Unix ms' })
export const percent = (description: string) => z.number().meta({ description, unit: 'percent' })
export const wholeCount = (description: string) => z.number().int().min(0).meta({ description })
export const deviationsSchema = z
  .partialRecord(z.enum(SNAPSHOT_FIELDS), z.number())
  .meta({ description: 'Deviation of each compared field', unit: 'percent' })

/** Unknown parameters that an answer names, and characters of each name. */
export const IGNORED_NAMES_MAX = 16
export const IGNORED_NAME_CHARACTERS_MAX = 64

/** `meta.ignored` of any answer that is an object, errors too. */
export const ignoredNames = z
  .array(z.string().max(IGNORED_NAME_CHARACTERS_MAX))
  .max(IGNORED_NAMES_MAX)
  .optional()
  .meta({
    description:
      'Parameters of which a value had no effect: misspelled, not of this route, without a meaning beside another, or sent again ' +
      'with another value',
  })

/** `meta.approximate` of answers about the market. */
const approximateReason = z
  .string()
  .optional()
  .meta({ description: 'In a replay: why the market may differ from the one that was recorded' })

/** `meta.warming_up` of answers about the market. */
const warmingReason = z
  .string()
  .optional()
  .meta({ description: 'While a replay at --replay speed=max runs: how much of the market is there so far' })

/** Facts about an answer, beside its data. */
export const metaWith = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.object({ ...shape, ignored: ignoredNames, approximate: approximateReason, warming_up: warmingReason })

/** The flat answer `{ok, ...}` of submissions, leaderboards, profiles and the server's state. @param example of its members beside `ok` */
export const okWith = <Shape extends z.ZodRawShape>(shape: Shape, example: object) =>
  withExample(z.object({ ok: z.literal(true), meta: metaWith({}).optional(), ...shape }), {
    ok: true,
    ...example,
  })
/** The answer `{ok, data}` of most reads. */
export const okData = <Data extends z.ZodType>(data: Data, example: unknown) =>
  okWith({ data }, { data: example })

/** Told where a `limit` was above its maximum. */
export const clampedSchema = z
  .object({ limit: z.number().int() })
  .meta({ description: 'The maximum, where the `limit` that was sent is above it' })
  .optional()
