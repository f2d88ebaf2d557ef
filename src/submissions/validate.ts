import { isUtf8 } from 'node:buffer'
import { assert } from '../lib/assert.ts'
import { isRecord } from '../lib/record.ts'
import { safeParse } from '../lib/safe-parse.ts'
import { ENRICHED_FIELDS } from '../schema/datapoint.ts'
import type { FieldError } from '../schema/errors.ts'
import { type Submission, submissionSchema } from '../schema/submission.ts'
import { SubmissionError } from './errors.ts'
import { fieldError } from './field-errors.ts'
import { FIELD_ERRORS_MAX, JSON_DEPTH_MAX, RISK_FACTORS_SENT_MAX } from './limits.ts'

const BYTE_ORDER_MARK = 0xfeff
const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * Parses the raw bytes of a submission. Throws `invalid_json`, `validation_failed` or `invalid_mint`, with a pointer to each fault.
 * @returns as `ignored` the enriched fields that the client sent, which are dropped: the server fills them
 */
export function validateSubmission(body: Buffer) {
  const parsed = parseJson(body)
  if (countRiskFactors(parsed) > RISK_FACTORS_SENT_MAX) {
    throw invalid([
      {
        pointer: '/quant/riskFactors',
        code: 'too_big',
        message: `must have at most ${RISK_FACTORS_SENT_MAX} items`,
      },
    ])
  }
  const result = safeParse(submissionSchema, parsed)
  if (!result.success) throw invalid(result.error.issues.map((issue) => fieldError(issue, parsed)))
  const submission = result.data
  return { submission, ignored: ignoredFields(parsed, submission) }
}

/** Checked before the schema is, which would report each factor of a long list. */
function countRiskFactors(parsed: unknown): number {
  const quant = isRecord(parsed) ? parsed.quant : null
  const factors = isRecord(quant) ? quant.riskFactors : null
  return Array.isArray(factors) ? factors.length : 0
}

/** Enriched fields in what was sent. The schema strips unknown fields, so equal numbers of fields mean that there are none. */
function ignoredFields(sent: unknown, taken: Submission): string[] {
  if (!isRecord(sent)) return []
  const ignored: string[] = []
  if (countKeys(sent) > countKeys(taken)) ignored.push(...ENRICHED_FIELDS.filter((field) => field in sent))
  for (const part of ['snapshot', 'quant'] as const) {
    const [its, of] = [sent[part], taken[part]]
    if (isRecord(its) && of && countKeys(its) > countKeys(of))
      ignored.push(...ENRICHED_FIELDS.filter((field) => field in its).map((field) => `${part}.${field}`))
  }
  return ignored
}

const countKeys = (value: object): number => Object.keys(value).length

function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) throw new SubmissionError('invalid_json', 'The body is not UTF-8.')
  const decoded = body.toString('utf8')
  const text = decoded.charCodeAt(0) === BYTE_ORDER_MARK ? decoded.slice(1) : decoded
  if (hasMoreBrackets(text, JSON_DEPTH_MAX) && measureDepth(body) > JSON_DEPTH_MAX)
    throw new SubmissionError('invalid_json', `The body is nested deeper than ${JSON_DEPTH_MAX} levels.`)
  try {
    return JSON.parse(text)
  } catch {
    throw new SubmissionError('invalid_json', 'The body is not valid JSON.')
  }
}

/** Whether there are more opening brackets than `max`. A fast check: a text with fewer is not nested deeper. */
function hasMoreBrackets(text: string, max: number): boolean {
  let count = 0
  for (const bracket of ['{', '['])
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) {
      if (++count > max) return true
    }
  return false
}

/** Deepest nesting of arrays and objects, by a scan of the bytes, which is safer than to parse first. */
function measureDepth(body: Uint8Array): number {
  let depth = 0
  let deepest = 0
  let inString = false
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (inString) {
      if (byte === BACKSLASH) at++
      else if (byte === QUOTE) inString = false
    } else if (byte === QUOTE) inString = true
    else if (byte === 0x5b || byte === 0x7b) deepest = Math.max(deepest, ++depth)
    else if (byte === 0x5d || byte === 0x7d) depth--
  }
  return deepest
}

/** validation_failed with the first faults; invalid_mint where the mint is the only fault. */
function invalid(errors: FieldError[]): SubmissionError {
  const shown = errors.slice(0, FIELD_ERRORS_MAX)
  const [first] = shown
  assert(first !== undefined, 'a submission is refused for at least one fault')
  const rest = errors.length > 1 ? `, and ${errors.length - 1} more` : ''
  const sentence = `${first.pointer === '' ? 'The body' : first.pointer} ${first.message}${rest}.`
  const code = errors.every((error) => error.code === 'invalid_mint') ? 'invalid_mint' : 'validation_failed'
  return new SubmissionError(code, sentence, { errors: shown })
}
