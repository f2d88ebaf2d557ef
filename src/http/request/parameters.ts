// Reads typed parameters from a query. Each throws a ServiceError that names the parameter and what it must be.
import { closest } from 'fastest-levenshtein'
import { unitHint } from '../../lib/time.ts'
import { TIMEFRAMES, type Timeframe } from '../../schema/bar.ts'
import { ServiceError } from '../../schema/errors.ts'
import { isMint } from '../../schema/mint.ts'
import type { Query } from '../context.ts'

/** Characters of a wrong value that an error quotes. */
export const QUOTED_CHARACTERS_MAX = 64

export function invalidParameter(
  name: string,
  message: string,
  allowed?: readonly string[],
  suggestion?: string,
): ServiceError {
  return new ServiceError('invalid_parameter', `${name} ${message}`, {
    errors: [
      {
        pointer: `/${name}`,
        code: 'invalid_parameter',
        message,
        ...(allowed && { allowed }),
        ...(suggestion && { suggestion }),
      },
    ],
  })
}

/** Of a request whose end or host can be read in two ways (request smuggling). @param name of the header */
export const ambiguityOf = (name: string): ServiceError => invalidParameter(name, 'may be read in two ways')

/**
 * Reads several parameters, so that a client is told of all that are wrong at once. Each reader may throw; the values are there where none
 * has. @throws ServiceError the faults of parameters as one error, else the first other refusal
 */
export function readAll<Readers extends Record<string, () => unknown>>(
  readers: Readers,
): { [Name in keyof Readers]: ReturnType<Readers[Name]> } {
  const values: Record<string, unknown> = {}
  const refusals: ServiceError[] = []
  for (const [name, read] of Object.entries(readers)) {
    try {
      values[name] = read()
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      refusals.push(error)
    }
  }
  const [first] = refusals
  if (first !== undefined) throw joinFaults(first, refusals)
  return values as { [Name in keyof Readers]: ReturnType<Readers[Name]> }
}

function joinFaults(refusal: ServiceError, refusals: readonly ServiceError[]): ServiceError {
  const faults = refusals.filter(({ extra }) => extra.errors !== undefined)
  const [first = refusal, ...others] = faults
  if (others.length === 0) return first
  const code = others.every((other) => other.code === first.code) ? first.code : 'invalid_parameter'
  const sentence = faults.map(({ message }) => message).join('; ')
  return new ServiceError(code, sentence, { errors: faults.flatMap(({ extra }) => extra.errors ?? []) })
}

/**
 * One of the allowed words, whatever its case; `otherwise` if the parameter is missing or empty. Where words differ by case alone, the
 * case counts.
 * @param isOther whether a word in this case means something else, that is not allowed.
 */
export function oneOf<Word extends string>(
  query: Query,
  name: string,
  allowed: readonly Word[],
  otherwise: Word,
  isOther: (sent: string) => boolean = () => false,
): Word {
  const sent = query.get(name)
  if (sent === null || sent === '') return otherwise
  const exact = allowed.find((word) => word === sent)
  if (exact !== undefined) return exact
  const lower = sent.toLowerCase()
  const [found, ...others] = isOther(sent) ? [] : allowed.filter((word) => word.toLowerCase() === lower)
  if (found !== undefined && others.length === 0) return found
  const quoted = sent.slice(0, QUOTED_CHARACTERS_MAX)
  // The empty word stands for a parameter that is missing.
  const words = allowed.filter((word) => word !== '')
  throw invalidParameter(
    name,
    `"${quoted}" is not one of ${words.join(', ')}`,
    words,
    isOther(sent) ? undefined : probablyMeant(quoted.toLowerCase(), words),
  )
}

/** The names of parameters that were sent and had no effect, of those that have none in such a request. */
export const sentInVain = (query: Query, names: readonly string[]): string[] =>
  names.filter((name) => query.get(name))

/** The words of a list with commas between. */
export const wordsOf = (list: string): string[] =>
  list
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')

/** Parameters that are lists of words: with commas between, or sent once for each. */
export const LIST_PARAMETERS: ReadonlySet<string> = new Set(['mints', 'fields'])

/** The word that begins with what was sent, as volume_24h does with vol, or else the most similar one. */
const probablyMeant = (sent: string, allowed: readonly string[]): string =>
  allowed.find((word) => word.startsWith(sent)) ?? closest(sent, [...allowed])

/** The parameter `tf`. A capital M means months where bars are traded in: it is no minute. */
export const timeframe = (query: Query): Timeframe =>
  oneOf(query, 'tf', TIMEFRAMES, '1m', (sent) => sent.endsWith('M'))

const FLAG_WORDS = ['0', '1', 'false', 'true'] as const

/** True for 1 or true, false for 0, false, or where it is missing. Its name alone is no answer: it may be meant as either. */
export function flag(query: Query, name: string): boolean {
  if (query.get(name) === '') throw invalidParameter(name, `is empty: ${name}=1 or ${name}=0`, FLAG_WORDS)
  return ['1', 'true'].includes(oneOf(query, name, FLAG_WORDS, '0'))
}

/** Times and positions are floating-point numbers in msgpack, which some languages write with a point. */
const WHOLE = /^\+?\d+(\.0+)?$/

/** A whole number of at least `min`. One above `max` is clamped to it. */
export function wholeNumber(
  query: Query,
  name: string,
  { min, max, otherwise }: { min: number; max: number; otherwise: number },
): { value: number; clamped: boolean } {
  const sent = query.get(name)
  if (sent === null || sent === '') return { value: otherwise, clamped: false }
  const value = WHOLE.test(sent) ? Number(sent) : Number.NaN
  if (Number.isNaN(value) || value < min)
    throw invalidParameter(name, `must be a whole number of ${min} or more`)
  return value > max ? { value: max, clamped: true } : { value, clamped: false }
}

/** A whole number of 0 or more, or null if the parameter is missing or empty. */
export const wholeOrNull = (query: Query, name: string): number | null =>
  query.get(name)
    ? wholeNumber(query, name, { min: 0, max: Number.MAX_SAFE_INTEGER, otherwise: 0 }).value
    : null

/** A number, or null if the parameter is missing or empty. */
export function decimal(query: Query, name: string): number | null {
  const sent = query.get(name)
  if (sent === null || sent === '') return null
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i.test(sent) ? Number(sent) : Number.NaN
  if (!Number.isFinite(value)) throw invalidParameter(name, 'must be a number')
  return value
}

/** A time in Unix ms, or null if the parameter is missing or empty. */
export function timeMs(query: Query, name: string): number | null {
  const sent = query.get(name)
  if (sent === null || sent === '') return null
  if (!(WHOLE.test(sent) && Number(sent) < 1e16))
    throw invalidParameter(name, 'must be a time in Unix milliseconds')
  const time = Number(sent)
  const hint = unitHint(time)
  if (hint === null) return time
  throw invalidParameter(name, hint)
}

/** @throws ServiceError `invalid_parameter` if `from` lies behind `to`. */
export function checkSpan(fromMs: number | null, toMs: number | null): void {
  if (fromMs !== null && toMs !== null && fromMs > toMs)
    throw invalidParameter('from', 'must not be later than to')
}

/** The required parameter `mint`. */
export function requiredMint(query: Query): string {
  const mint = query.get('mint')
  if (mint === null || mint === '') throw invalidParameter('mint', 'is missing')
  return checkMint(mint)
}

/** @param pointer JSON pointer to where the mint was sent. @throws ServiceError `invalid_mint`. */
export function checkMint(mint: unknown, pointer = '/mint'): string {
  if (isMint(mint)) return mint
  throw new ServiceError('invalid_mint', `${pointer.slice(1)} is not a base58 address of 32 bytes`, {
    errors: [
      {
        pointer,
        code: 'invalid_mint',
        message: 'must be base58, 32 to 44 characters, decoding to 32 bytes',
      },
    ],
  })
}
