// Figures as people read them, the same in text and page.
import { MINUTE_MS, SECOND_MS } from '../../lib/time.ts'
import { AGENTS_DETAILED_MAX } from '../limits.ts'
import type { AgentFigures, Group } from './figures.ts'
import type { Estimate } from './statistics.ts'

export const percent = (share: number, digits = 1): string => `${(100 * share).toFixed(digits)} %`
export const signedPercent = (share: number): string => `${share > 0 ? '+' : ''}${percent(share)}`
export const wholeNumber = (value: number): string =>
  Math.round(value).toLocaleString('en').replaceAll(',', ' ')
/** XP, of which halves are given. */
export const exactXp = (xp: number): string => xp.toLocaleString('en').replaceAll(',', ' ')
export const utc = (atMs: number): string =>
  `${new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`

export function duration(ms: number): string {
  if (ms < MINUTE_MS) return `${(ms / SECOND_MS).toFixed(1)} s`
  const minutes = Math.round(ms / MINUTE_MS)
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** A mean with its interval, or that there are too few. */
export function estimate({ count, mean, low, high }: Estimate, form: (share: number) => string): string {
  if (count === 0) return '–'
  if (mean === null || low === null || high === null) return `too few (${count})`
  return `${form(mean)} [${form(low)}, ${form(high)}]`
}

export const returnOf = ({ ret }: Group): string => estimate(ret, signedPercent)
export const hitsOf = ({ hits }: Group): string => estimate(hits, percent)
export const baseRateOf = ({ baseRate, hits }: Group): string =>
  baseRate === null || hits.mean === null ? '–' : percent(baseRate)

/** A program's row of the summary, behind its name: XP, accepted, validated, rejected, tokens, median deviation, submissions an hour. */
export const summaryCells = (agent: AgentFigures): string[] => [
  exactXp(agent.xp),
  `${agent.validated + agent.unvalidated}`,
  `${agent.validated}`,
  `${agent.rejected}`,
  `${agent.tokens}`,
  agent.deviationPct === null ? '–' : `${agent.deviationPct.median.toFixed(2)} %`,
  agent.perHour?.toFixed(1) ?? '–',
]

/** Which submissions of a program were refused without being compared; null: none were. */
export function refusedOf({ refused, isBaseline }: AgentFigures): string | null {
  const told = Object.entries(refused).map(([code, count]) => `${wholeNumber(count)} ${code}`)
  // Baselines pass over what is refused to them.
  return isBaseline || told.length === 0 ? null : `refused without being compared: ${told.join(', ')}`
}

/** Where an agent that nobody started comes from, and how a program ended, where that is worth a word. */
export function endOf({ end, isBaseline }: AgentFigures): string | null {
  if (end === null) return isBaseline ? null : 'was registered by a program'
  if (!end.isEarly) return null
  return end.signal === null ? `ended by itself with code ${end.code}` : `was ended by ${end.signal}`
}

/** Says where the figures are of agents that have but a row, if there are any. */
export const moreOf = ({ length }: readonly AgentFigures[]): string[] =>
  length > AGENTS_DETAILED_MAX
    ? [`Figures of the other ${length - AGENTS_DETAILED_MAX} agents are in report.json.`]
    : []
