// Finds the parameters of a query that have no effect: a misspelled one would otherwise go unnoticed.
import { truncateText } from '../../lib/text/truncate-text.ts'
import { IGNORED_NAME_CHARACTERS_MAX, IGNORED_NAMES_MAX } from '../../schema/api/parts.ts'
import type { Route } from '../route.ts'

const NO_NAMES: readonly string[] = []

/** Those of the names that the route does not read, in their order. At most IGNORED_NAMES_MAX, and each cut. */
export function unknownParameters({ docs }: Route, names: readonly string[]): readonly string[] {
  const known = docs.query?.shape ?? {}
  if (names.every((name) => Object.hasOwn(known, name))) return NO_NAMES
  const unknown = names.filter((name) => !Object.hasOwn(known, name)).slice(0, IGNORED_NAMES_MAX)
  return unknown.map((name) => truncateText(name, IGNORED_NAME_CHARACTERS_MAX))
}
