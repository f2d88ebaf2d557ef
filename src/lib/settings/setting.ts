// How a setting is declared, and the kinds of values that settings of several folders have.
import { z } from 'zod'
import { firstIssue, safeParse } from '../safe-parse.ts'

/** One setting: how it is given, its default and how its text is parsed. */
export interface Setting<Schema extends z.ZodType = z.ZodType> {
  /** Without the dashes; null for secrets, since command lines are public. */
  flag: string | null
  env: string
  /** As it would be given; '' for none. */
  defaultText: string
  schema: Schema
  description: string
}

/** Settings that belong together, which whoever they are for gets as one object. */
export type SettingGroup = Readonly<Record<string, Setting>>

export type ValuesOf<Of extends SettingGroup> = Readonly<{ [Name in keyof Of]: z.infer<Of[Name]['schema']> }>

/** A setting with the flag `--<flag>` and the environment variable `MINTLAKE_<FLAG>`. */
export function setting<Schema extends z.ZodType>(
  flagName: string,
  defaultValue: string | number,
  schema: Schema,
  description: string,
): Setting<Schema> {
  return {
    flag: flagName,
    env: `MINTLAKE_${flagName.toUpperCase().replaceAll('-', '_')}`,
    defaultText: `${defaultValue}`,
    schema,
    description,
  }
}

/** A key as a header can send it. A variable that was read from a file may end in a line feed. */
const key = z
  .string()
  .trim()
  .regex(/^[ -~]*$/, 'must be printable ASCII characters: it is sent in a header')

/** A setting that only the environment can give. */
export function secret(env: string, description: string, schema: z.ZodString = key): Setting<z.ZodString> {
  return { flag: null, env: `MINTLAKE_${env}`, defaultText: '', schema, description }
}

/** A number. An empty text is not one, although JavaScript reads it as 0. */
const number = z.string().trim().min(1, 'must be a number').transform(Number)

export const wholeNumber = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`
  return number.pipe(z.number({ error }).int({ error }).min(min, { error }).max(max, { error }))
}

const POSITIVE_MAX = 1e6
export const positive = { error: `must be a number above 0, and at most ${POSITIVE_MAX}` }
export const positiveNumber = number.pipe(z.number(positive).positive(positive).max(POSITIVE_MAX, positive))

/** One of some words. */
export const oneOf = <const Words extends readonly string[]>(words: Words) =>
  z.enum(words, { error: `must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}` })

export const flag = z
  .enum(['true', 'false', '1', '0'], { error: 'must be true or false' })
  .transform((word) => word === 'true' || word === '1')

/** Words, comma-separated. */
export const wordList = z.string().transform((words) =>
  words
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== ''),
)

/** What the schema says, or null for ''. */
export const orNull = <Schema extends z.ZodType>(schema: Schema) =>
  z.string().transform((text, context): z.output<Schema> | null => {
    if (text === '') return null
    const result = safeParse(schema, text)
    if (result.success) return result.data
    context.addIssue({ code: 'custom', message: firstIssue(result.error).message })
    return z.NEVER
  })

/** A complete URL with one of the schemes. */
export function address(...schemes: readonly string[]) {
  return z.string().refine((text) => schemes.includes(URL.parse(text)?.protocol.slice(0, -1) ?? ''), {
    error: `must be an address that begins with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`,
  })
}

/** The origin of a URL with one of these schemes, without a slash at the end; '' for none. */
export const publicUrl = z.union(
  [
    z.literal(''),
    address('http', 'https').transform((text, context) => {
      const { origin, href } = new URL(text)
      if (href === `${origin}/`) return origin
      context.addIssue({ code: 'custom', message: 'must be scheme, host and port alone' })
      return z.NEVER
    }),
  ],
  'must be an address of scheme, host and port alone, such as https://mintlake.example',
)
