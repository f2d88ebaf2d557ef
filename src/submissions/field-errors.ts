// What is wrong with the fields of a body, in one wording for all of them.
import type { z } from 'zod'
import { firstIssue, safeParse } from '../lib/safe-parse.ts'
import type { FieldError } from '../schema/errors.ts'
import { SubmissionError } from './errors.ts'
import { nearest } from './suggest.ts'

/** A body of unknown shape as the schema's type. Throws validation_failed. */
export function parseBody<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const result = safeParse(schema, body)
  if (result.success) return result.data
  const errors = result.error.issues.map((issue) => fieldError(issue, body))
  const { pointer, message } = fieldError(firstIssue(result.error), body)
  throw new SubmissionError('validation_failed', `${pointer || 'The body'} ${message}.`, { errors })
}

/** A fault found by zod, as the contract describes faults. `root`: the whole value that was parsed. */
export function fieldError(issue: z.core.$ZodIssue, root: unknown): FieldError {
  const pointer = issue.path
    .map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('')
  const sent = issue.path.reduce<unknown>(
    (value, part) => (typeof value === 'object' && value !== null ? Reflect.get(value, part) : undefined),
    root,
  )
  if (sent === undefined && issue.path.length > 0)
    return { pointer, code: 'required', message: 'is missing', ...listAllowed(issue) }
  switch (issue.code) {
    case 'invalid_value': {
      const allowed = issue.values.map(String)
      const suggestion = typeof sent === 'string' ? nearest(sent, allowed) : null
      return {
        pointer,
        code: 'not_allowed',
        message: `must be one of ${allowed.join(', ')}`,
        allowed,
        ...(suggestion !== null && { suggestion }),
      }
    }
    case 'invalid_type':
      return { pointer, code: 'invalid_type', message: `must be ${article(issue.expected)}` }
    case 'too_small':
      return {
        pointer,
        code: 'too_small',
        message: boundText('least', issue.minimum, issue.origin),
      }
    case 'too_big':
      return {
        pointer,
        code: 'too_big',
        message: boundText('most', issue.maximum, issue.origin),
      }
    case 'custom':
      return {
        pointer,
        code: typeof issue.params?.code === 'string' ? issue.params.code : 'invalid',
        message: issue.message,
      }
    default:
      return { pointer, code: issue.code, message: issue.message }
  }
}

/** What a bound counts, by the kind of value that it bounds: a number is itself. */
const COUNTED: Readonly<Record<string, string>> = { array: 'item', string: 'character' }
function boundText(which: 'least' | 'most', bound: number | bigint, origin: string): string {
  const counted = COUNTED[origin]
  if (counted === undefined) return `must be at ${which} ${bound}`
  return `must have at ${which} ${bound} ${counted}${Number(bound) === 1 ? '' : 's'}`
}

const listAllowed = (issue: z.core.$ZodIssue) =>
  issue.code === 'invalid_value' ? { allowed: issue.values.map(String) } : {}
const TYPE_WORDS: Readonly<Record<string, string>> = { number: 'finite number', int: 'whole number' }
function article(type: string): string {
  const word = TYPE_WORDS[type] ?? type
  return /^[aeiou]/.test(word) ? `an ${word}` : `a ${word}`
}
