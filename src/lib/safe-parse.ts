// In: a zod schema and a value from outside, of any shape. Out: zod's result, always: a value that makes zod itself throw
// is refused like any other wrong value. Every parse of foreign data takes this way. Never throws.
import { z } from 'zod'

/** Code of the fault where nothing better can be said of a value than that it cannot be read. */
export const UNREADABLE = 'unreadable'

/** Names whose values zod compares with a length, of whatever type their owner is. */
const MEASURES: ReadonlySet<string> = new Set(['length', 'size'])

/** As `schema.safeParse(value)`, but for any value: zod throws for some, for example `{length: {toString: 1}}`. */
export function safeParse<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): z.ZodSafeParseResult<z.output<Schema>> {
  try {
    return schema.safeParse(value)
  } catch {
    return { success: false, error: faultsOf(schema, value) as z.ZodError<z.output<Schema>> }
  }
}

/** What is wrong with a value that zod cannot parse: without the members it stumbles over, it says where the fault lies. */
function faultsOf(schema: z.ZodType, value: unknown): z.ZodError {
  try {
    const { error } = schema.safeParse(withoutMeasures(value))
    if (error !== undefined) return error
  } catch {
    // Something else in it is unreadable: that is all there is to say.
  }
  const message = 'cannot be read'
  return new z.ZodError([
    { code: 'custom', path: [], message, params: { code: UNREADABLE }, input: undefined },
  ])
}

/** A copy in JSON's terms. Throws for what JSON cannot hold, and for what is nested too deep to be copied. */
function withoutMeasures(value: unknown): unknown {
  const text = JSON.stringify(value, (name, member: unknown) =>
    MEASURES.has(name) && typeof member === 'object' ? undefined : member,
  )
  return JSON.parse(text)
}
