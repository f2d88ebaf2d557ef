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

export function notesOn(route: Route, names: readonly string[], market: MarketNotes): Notes {
  const ignored = unknownParameters(route, names)
  const approximate = route.answersMarket === true ? market.approximate : null
  const warmingUp = route.answersMarket === true ? market.warmingUp : null
  if (ignored.length === 0 && approximate === null && warmingUp === null) return NO_NOTES
  return {
    ...(ignored.length > 0 && { ignored }),
    ...(approximate !== null && { approximate }),
    ...(warmingUp !== null && { warming_up: warmingUp }),
  }
}

/** Those of the names that the route does not read, in their order: a misspelled one would otherwise go unnoticed. At most IGNORED_NAMES_MAX, and each cut. */
function unknownParameters({ docs }: Route, names: readonly string[]): readonly string[] {
  const known = docs.query?.shape ?? {}
  if (names.every((name) => Object.hasOwn(known, name))) return NO_NAMES
  const unknown = names.filter((name) => !Object.hasOwn(known, name)).slice(0, IGNORED_NAMES_MAX)
  return unknown.map((name) => truncateText(name, IGNORED_NAME_CHARACTERS_MAX))
}

export const hasNotes = ({ ignored, approximate, warming_up: warmingUp }: Notes): boolean =>
  ignored !== undefined || approximate !== undefined || warmingUp !== undefined

/**
 * The answer with its notes. Routes that make the bytes of an object themselves put `Context.notes` into its `meta`.
 */
export function tellNotes(answer: HttpAnswer, known: Notes): HttpAnswer {
  const { ignored: unused = [], body } = answer
  const names = [...(known.ignored ?? []), ...unused].slice(0, IGNORED_NAMES_MAX)
  const notes = { ...known, ...(names.length > 0 && { ignored: names }) }
  if (!hasNotes(notes)) return answer
  const headers = { ...answer.headers, ...noteHeaders(notes) }
  if (Buffer.isBuffer(body) || body instanceof ChunkedBody) return { ...answer, headers }
  const meta = typeof body.meta === 'object' ? body.meta : {}
  return { ...answer, headers, body: { ...body, meta: { ...meta, ...notes } } }
}

const noteHeaders = ({ ignored, approximate, warming_up: warmingUp }: Notes): Record<string, string> => ({
  ...(ignored !== undefined && { 'X-Ignored-Parameters': ignored.map(headerText).join(', ') }),
  ...(approximate !== undefined && { 'X-Approximate': approximate }),
  ...(warmingUp !== undefined && { 'X-Warming-Up': warmingUp }),
})

/** The name with everything that would not be safe in a list in a header percent-encoded. */
const headerText = (name: string): string => name.replace(/[^\x21-\x7e]|[,%]/gu, encodeURIComponent)
