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
        message: `must ${issue.origin === 'array' ? 'hold' : 'be'} at least ${issue.minimum}${issue.origin === 'array' ? ' item' : ''}`,
      }
    case 'too_big':
      return {
        pointer,
        code: 'too_big',
        message: `must ${issue.origin === 'array' ? 'hold' : 'be'} at most ${issue.maximum}${issue.origin === 'array' ? ' items' : ''}`,
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

const listAllowed = (issue: z.core.$ZodIssue) =>
  issue.code === 'invalid_value' ? { allowed: issue.values.map(String) } : {}
const TYPE_WORDS: Readonly<Record<string, string>> = { number: 'finite number', int: 'whole number' }
function article(type: string): string {
  const word = TYPE_WORDS[type] ?? type
  return /^[aeiou]/.test(word) ? `an ${word}` : `a ${word}`
}
