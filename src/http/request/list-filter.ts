// Which tokens of the market list a query asks for: search, ranges of figures, a set of mints.
import { searchWords } from '../../lib/text/search-words.ts'
import type { FigureRange, ListFilter } from '../../market/types.ts'
import { MINTS_FILTERED_MAX, SEARCH_CHARACTERS_MAX } from '../../schema/api/market.ts'
import { RANGE_FIGURES } from '../../schema/vocabulary.ts'
import type { Query } from '../context.ts'
import { checkMint, decimal, invalidParameter, readAll, wholeOrNull, wordsOf } from './parameters.ts'

/** What streams of a whole tab do not have, and has always been told as ignored there. */
export const IGNORED_BY_FOLLOW = ['search', 'max_analyses', 'cursor']

/** The filter that a query asks for, or null. @throws ServiceError `invalid_parameter`, `invalid_mint`. */
export function listFilter(query: Query): ListFilter | null {
  const { search, analysesMax, ranges, mints } = readAll({
    search: () => parseSearch(query),
    analysesMax: () => wholeOrNull(query, 'max_analyses'),
    ranges: () => figureRanges(query),
    mints: () => mintSet(query),
  })
  if (search === null && analysesMax === null && ranges.length === 0 && mints === null) return null
  return { search, analysesMax, ...(ranges.length > 0 && { ranges }), ...(mints !== null && { mints }) }
}

/** What is searched for; null: nothing. */
function parseSearch(query: Query): string | null {
  const search = query.get('search') || null
  if (search !== null && search.length > SEARCH_CHARACTERS_MAX)
    throw invalidParameter('search', `must be at most ${SEARCH_CHARACTERS_MAX} characters long`)
  if (search !== null && searchWords(search) === '')
    throw invalidParameter('search', 'must have a letter, a digit or a pictograph')
  return search
}

/** The names of the filters that a query has and that a stream of a whole tab cannot have. */
export function windowFilters(query: Query): string[] {
  const ranges = RANGE_FIGURES.flatMap((figure) => [`min_${figure}`, `max_${figure}`]).filter(
    (name) => query.get(name) && !IGNORED_BY_FOLLOW.includes(name),
  )
  // A set that is empty is a filter too.
  return query.get('mints') === null ? ranges : [...ranges, 'mints']
}

function figureRanges(query: Query): FigureRange[] {
  return RANGE_FIGURES.flatMap((figure) => {
    const min = decimal(query, `min_${figure}`)
    // The count of analyses has a parameter of its own, older than these.
    const max = figure === 'analyses' ? null : decimal(query, `max_${figure}`)
    if (min !== null && max !== null && min > max)
      throw invalidParameter(`min_${figure}`, `is above max_${figure}`)
    return min === null && max === null ? [] : [{ figure, min, max }]
  })
}

/** The mints of the parameter `mints`, each once; null: any. Where it is empty, whoever sent it may have had a set without a mint. */
function mintSet(query: Query): string[] | null {
  const sent = query.get('mints')
  if (sent === null) return null
  if (sent === '')
    throw invalidParameter('mints', 'is empty: leave it out for all tokens, or send a comma for none')
  const mints = [...new Set(wordsOf(sent))]
  if (mints.length > MINTS_FILTERED_MAX)
    throw invalidParameter('mints', `has ${mints.length} mints, and may have ${MINTS_FILTERED_MAX}`)
  return mints.map((mint, index) => checkMint(mint, `/mints/${index}`))
}
