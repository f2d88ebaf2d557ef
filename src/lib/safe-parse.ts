// The only place that calls zod's `safeParse` on data from outside. zod itself throws for some values, for example
// `{length: {toString: 1}}`; here they are reported as invalid like any other wrong value.
import { z } from 'zod'
import { assert } from './assert.ts'

/** The code of an issue that says no more than that the value cannot be read. */
const UNREADABLE = 'unreadable'

/** Properties that zod compares with a length whatever the type of the value that has them. */
const LENGTH_PROPERTIES: ReadonlySet<string> = new Set(['length', 'size'])

/** The value, or what is wrong with it. */
export type Parsed<Value> =
  | { success: true; data: Value; error?: never }
  | { success: false; data?: never; error: z.ZodError }

/** As `schema.safeParse(value)`, but never throws. */
export function safeParse<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): Parsed<z.output<Schema>> {
  try {
    return schema.safeParse(value)
  } catch {
    return { success: false, error: parseError(schema, value) }
  }
}

/** The first fault that an error names. */
export function firstIssue(error: z.ZodError): z.core.$ZodIssue {
  const [issue] = error.issues
  assert(issue !== undefined, 'the error of a parser names at least one fault')
  return issue
}

/** The error of a value that makes zod throw: parsed again without the length properties, to find where the issue lies. */
function parseError(schema: z.ZodType, value: unknown): z.ZodError {
  try {
    const { error } = schema.safeParse(withoutLengthProperties(value))
    if (error !== undefined) return error
  } catch {
    // Something else in the value cannot be read either: report the value as a whole.
  }
  const message = 'cannot be read'
  return new z.ZodError([
    { code: 'custom', path: [], message, params: { code: UNREADABLE }, input: undefined },
  ])
}

/** A copy made through JSON, without length properties that hold objects. @throws for values that JSON cannot hold, or that are
 *  nested too deep. */
function withoutLengthProperties(value: unknown): unknown {
  const text = JSON.stringify(value, (name, member: unknown) =>
    LENGTH_PROPERTIES.has(name) && typeof member === 'object' ? undefined : member,
  )
  return JSON.parse(text)
}
