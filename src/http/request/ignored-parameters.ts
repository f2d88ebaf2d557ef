// Tells clients which parameters of their query had no effect: a misspelled one would otherwise go unnoticed.
import { truncateText } from '../../lib/text/truncate-text.ts'
import type { HttpAnswer } from '../context.ts'
import { IGNORED_NAME_CHARACTERS_MAX, IGNORED_NAMES_MAX } from '../limits.ts'
import { ChunkedBody } from '../response/chunked-body.ts'
import type { Route } from '../route.ts'

const NO_NAMES: readonly string[] = []

/** Those of the names that the route does not read, in their order. At most IGNORED_NAMES_MAX, and each cut. */
export function unknownParameters({ docs }: Route, names: readonly string[]): readonly string[] {
  const known = docs.query?.shape ?? {}
  if (names.every((name) => Object.hasOwn(known, name))) return NO_NAMES
  const unknown = names.filter((name) => !Object.hasOwn(known, name)).slice(0, IGNORED_NAMES_MAX)
  return unknown.map((name) => truncateText(name, IGNORED_NAME_CHARACTERS_MAX))
}

/**
 * The answer with the names of all parameters that were ignored: in a header and, if its body is an object, in `meta.ignored`.
 * Routes that make the bytes of an object themselves put `Context.ignored` there.
 */
export function tellIgnored(answer: HttpAnswer, unknown: readonly string[]): HttpAnswer {
  const { ignored: unused = NO_NAMES, body } = answer
  if (unknown.length + unused.length === 0) return answer
  const names = [...unknown, ...unused].slice(0, IGNORED_NAMES_MAX)
  const headers = { ...answer.headers, 'X-Ignored-Parameters': names.map(headerText).join(', ') }
  if (Buffer.isBuffer(body) || body instanceof ChunkedBody) return { ...answer, headers }
  const meta = typeof body.meta === 'object' ? body.meta : {}
  return { ...answer, headers, body: { ...body, meta: { ...meta, ignored: names } } }
}

/** The name with everything that would not be safe in a list in a header percent-encoded. */
const headerText = (name: string): string => name.replace(/[^\x21-\x7e]|[,%]/gu, encodeURIComponent)
