// What an answer tells about itself beside its data, in headers and, if its body is an object, in `meta`.

import { truncateText } from '../../lib/text/truncate-text.ts'
import { IGNORED_NAME_CHARACTERS_MAX, IGNORED_NAMES_MAX } from '../../schema/api/parts.ts'
import type { HttpAnswer, Notes } from '../context.ts'
import type { Route } from '../route.ts'
import { ChunkedBody } from './chunked-body.ts'

const NO_NAMES: readonly string[] = []
const NO_NOTES: Notes = {}

/** What is to be told of the market; null: nothing. */
export interface MarketNotes {
  /** Why it is not exactly the one that it stands for. */
  approximate: string | null
  /** Why it does not have all yet that it begins with. */
  warmingUp: string | null
}

/** The names in a query. */
interface SentNames {
  names: readonly string[]
  /** Of which the first value counts, and others were sent. */
  repeated: readonly string[]
}

export function notesOn(route: Route, sent: SentNames, market: MarketNotes): Notes {
  const ignored = ignoredParameters(route, sent)
  const approximate = route.answersMarket === true ? market.approximate : null
  const warmingUp = route.answersMarket === true ? market.warmingUp : null
  if (ignored.length === 0 && approximate === null && warmingUp === null) return NO_NOTES
  return {
    ...withIgnored(NO_NOTES, ignored),
    ...(approximate !== null && { approximate }),
    ...(warmingUp !== null && { warming_up: warmingUp }),
  }
}

/** Those of the names of which the route does not read a value: a misspelled one, or the second value of another, would otherwise
 *  go unnoticed. */
function ignoredParameters({ docs }: Route, { names, repeated }: SentNames): readonly string[] {
  const known = docs.query?.shape ?? {}
  const isRead = (name: string) => Object.hasOwn(known, name) && !repeated.includes(name)
  if (names.every(isRead)) return NO_NAMES
  return names.filter((name) => !isRead(name))
}

export const hasNotes = ({ ignored, approximate, warming_up: warmingUp }: Notes): boolean =>
  ignored !== undefined || approximate !== undefined || warmingUp !== undefined

/** The notes with further names of what had no effect: at most IGNORED_NAMES_MAX in all, and each cut. */
export function withIgnored(known: Notes, names: readonly string[]): Notes {
  if (names.length === 0) return known
  const all = [...new Set([...(known.ignored ?? []), ...names])].slice(0, IGNORED_NAMES_MAX)
  return { ...known, ignored: all.map((name) => truncateText(name, IGNORED_NAME_CHARACTERS_MAX)) }
}

/**
 * The answer with its notes. Routes that make the bytes of an object themselves put `Context.notes` into its `meta`.
 */
export function tellNotes(answer: HttpAnswer, known: Notes): HttpAnswer {
  const { ignored = [], body } = answer
  const notes = withIgnored(known, ignored)
  if (!hasNotes(notes)) return answer
  const headers = { ...answer.headers, ...noteHeaders(notes) }
  if (Buffer.isBuffer(body) || body instanceof ChunkedBody) return { ...answer, headers }
  const meta = typeof body.meta === 'object' ? body.meta : {}
  return { ...answer, headers, body: { ...body, meta: { ...meta, ...notes } } }
}

/** The notes as headers. */
export const noteHeaders = ({
  ignored,
  approximate,
  warming_up: warmingUp,
}: Notes): Record<string, string> => ({
  ...(ignored !== undefined && { 'X-Ignored-Parameters': ignored.map(headerText).join(', ') }),
  ...(approximate !== undefined && { 'X-Approximate': approximate }),
  ...(warmingUp !== undefined && { 'X-Warming-Up': warmingUp }),
})

/** The name with everything that would not be safe in a list in a header percent-encoded. */
const headerText = (name: string): string => name.replace(/[^\x21-\x7e]|[,%]/gu, encodeURIComponent)
