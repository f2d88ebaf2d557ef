// Analyses as a table: what an agent said, how far its data was off, and what the price did afterwards.
import { html, type TemplateResult } from 'lit-html'
import type { ListedAnalysis, Outcome } from '../../client/index.ts'
import type { StreamedSubmission } from '../../schema/api/stream.ts'
import { changeClass, formatAge, formatChange, formatCount, formatPercent, shortAddress } from '../format.ts'
import { routeHref } from '../router.ts'

/** An analysis as the list has it, or as the stream tells of it: without its labels, with names. */
type ShownAnalysis = Pick<
  ListedAnalysis,
  'analysisId' | 'agentId' | 'mint' | 'outcome' | 'deviationPct' | 'createdAt'
> &
  Partial<Pick<ListedAnalysis, 'sentiment' | 'score' | 'labelsAvailableAt' | 'outcomes' | 'xpEarned'>> &
  Partial<Pick<StreamedSubmission, 'agentName' | 'symbol'>>

export const OUTCOME_SHAPES: Readonly<Record<Outcome, string>> = { validated: '✓', unvalidated: '~', rejected: '✕' }

export const outcomeBadge = (outcome: Outcome): TemplateResult =>
  html`<span class="outcome ${outcome}" title=${outcome}>${OUTCOME_SHAPES[outcome]}<span class="outcome-word"> ${outcome}</span></span>`

interface Column {
  label: string
  isNumber?: true
  cell(analysis: ShownAnalysis, nowMs: number): unknown
  class?(analysis: ShownAnalysis): string
}

const percentOf = (share: number | null | undefined): number | null => (share == null ? null : 100 * share)

const returnColumn = (label: string, name: 'fwd_ret_1h' | 'fwd_ret_24h'): Column => ({
  label,
  isNumber: true,
  cell: ({ outcomes }) => formatChange(percentOf(outcomes?.[name])),
  class: ({ outcomes }) => changeClass(outcomes?.[name]),
})

const COLUMNS = {
  when: {
    label: 'When',
    cell: ({ createdAt }, nowMs) => html`${formatAge(createdAt, nowMs)}<span class="wide-only"> ago</span>`,
  },
  token: {
    label: 'Token',
    cell: ({ mint, symbol }) =>
      html`<a href=${routeHref('token', mint)} title=${mint}>${symbol ?? shortAddress(mint)}</a>`,
  },
  verdict: { label: 'Verdict', cell: ({ outcome }) => outcomeBadge(outcome) },
  agent: {
    label: 'Agent',
    cell: ({ agentId, agentName }) =>
      html`<a href=${routeHref('agents', agentId)} title=${agentName ?? agentId}>${agentName ?? shortAddress(agentId)}</a>`,
    class: () => 'agent',
  },
  deviation: {
    label: 'Deviation',
    isNumber: true,
    cell: ({ deviationPct }) => formatPercent(deviationPct, 2),
  },
  xp: { label: 'XP', isNumber: true, cell: ({ xpEarned }) => formatCount(xpEarned) },
  says: {
    label: 'Says',
    cell: ({ sentiment, labelsAvailableAt }, nowMs) => says(sentiment, labelsAvailableAt, nowMs),
  },
  score: { label: 'Score', isNumber: true, cell: ({ score }) => score ?? '–' },
  hour: returnColumn('1h later', 'fwd_ret_1h'),
  day: returnColumn('24h later', 'fwd_ret_24h'),
} satisfies Record<string, Column>

const LABELS = ['says', 'score', 'hour', 'day'] as const

/** What is shown of analyses of many agents and tokens the moment they are judged, of one agent's, and of those of one token. */
const SHOWN = {
  judged: ['when', 'token', 'verdict', 'agent', 'deviation', 'xp'],
  ofAgent: ['when', 'token', 'verdict', 'deviation', ...LABELS],
  ofToken: ['when', 'verdict', 'agent', 'deviation', ...LABELS],
} as const

export function analysesTable(
  analyses: readonly ShownAnalysis[],
  nowMs: number,
  shown: keyof typeof SHOWN,
): TemplateResult {
  const columns = SHOWN[shown].map((name): Column => COLUMNS[name])
  return html`<div class="scroll-x"><table class="plain analyses">
    <thead><tr>${columns.map(({ label, isNumber }) => html`<th class=${isNumber ? 'num' : ''}>${label}</th>`)}</tr></thead>
    <tbody>${analyses.map(
      (analysis) =>
        html`<tr>${columns.map(
          (column) =>
            html`<td class="${column.isNumber ? 'num' : ''} ${column.class?.(analysis) ?? ''}">${column.cell(analysis, nowMs)}</td>`,
        )}</tr>`,
    )}</tbody>
  </table></div>`
}

/** Labels of others are withheld at first. */
const says = (
  sentiment: string | null | undefined,
  availableAtMs: number | null | undefined,
  nowMs: number,
): unknown =>
  availableAtMs == null
    ? (sentiment ?? '–')
    : html`<span class="dim" title="Withheld so that nobody earns by copying">in ${formatAge(2 * nowMs - availableAtMs, nowMs)}</span>`
