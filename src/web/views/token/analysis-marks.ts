// What agents said of a token, as marks on its chart: which way by the shape, the verdict, and what became of it.
import type { SeriesMarker, Time } from 'lightweight-charts'
import type { ListedAnalysis } from '../../../client/index.ts'
import { HORIZON_NAMES, type Horizon } from '../../../schema/vocabulary.ts'
import { formatSigned } from '../../format.ts'
import { OUTCOME_SHAPES } from '../analyses-table.ts'

/** The return of the longest time after an analysis that is known; null: none is yet. */
function knownReturn({ outcomes }: ListedAnalysis): { horizon: Horizon; percent: number } | null {
  for (const horizon of HORIZON_NAMES.toReversed()) {
    const fraction = outcomes[`fwd_ret_${horizon}`]
    if (fraction !== null) return { horizon, percent: 100 * fraction }
  }
  return null
}

/** `✓ +3.1% 1h`: the verdict, and what the price did since. */
export function becameText(analysis: ListedAnalysis): string {
  const known = knownReturn(analysis)
  const shape = OUTCOME_SHAPES[analysis.outcome]
  if (known === null) return shape
  const sign = known.percent > 0 ? '+' : ''
  return `${shape} ${sign}${formatSigned(known.percent)}% ${known.horizon}`
}

/** The analyses of each bar, by its start; those older than all bars are left out. */
export function analysesByBar(
  timesMs: readonly number[],
  analyses: readonly ListedAnalysis[],
): Map<number, ListedAnalysis[]> {
  const byBar = new Map<number, ListedAnalysis[]>()
  for (const analysis of analyses) {
    const barMs = timesMs.findLast((t) => t <= analysis.createdAt)
    if (barMs === undefined) continue
    const ofBar = byBar.get(barMs)
    if (ofBar === undefined) byBar.set(barMs, [analysis])
    else ofBar.push(analysis)
  }
  return byBar
}

export type MarkColours = Record<'up' | 'down' | 'dim', string>

/** One mark for each bar that has analyses, oldest first. A bar with several counts them. */
export function toMarkers(
  byBar: ReadonlyMap<number, readonly ListedAnalysis[]>,
  toTime: (ms: number) => Time,
  colours: MarkColours,
): SeriesMarker<Time>[] {
  return [...byBar.entries()]
    .toSorted(([a], [b]) => a - b)
    .map(([barMs, analyses]) => ({ time: toTime(barMs), ...look(analyses, colours) }))
}

const verdicts = (analyses: readonly ListedAnalysis[]): string =>
  [...new Set(analyses.map(({ outcome }) => OUTCOME_SHAPES[outcome]))].join('')

function look(
  analyses: readonly ListedAnalysis[],
  { up, down, dim }: MarkColours,
): Omit<SeriesMarker<Time>, 'time'> & { position: 'aboveBar' | 'belowBar' } {
  const [first] = analyses
  const text =
    analyses.length === 1 && first !== undefined
      ? becameText(first)
      : `${analyses.length} ${verdicts(analyses)}`
  const says = new Set(analyses.map(({ sentiment }) => sentiment))
  if (says.size === 1 && says.has('bullish'))
    return { position: 'belowBar', shape: 'arrowUp', color: up, text }
  if (says.size === 1 && says.has('bearish'))
    return { position: 'aboveBar', shape: 'arrowDown', color: down, text }
  // Neutral, withheld, or not of one mind.
  return { position: 'aboveBar', shape: 'circle', color: dim, text, size: 0.6 }
}
