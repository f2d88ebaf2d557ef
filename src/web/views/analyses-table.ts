// Analyses as a table: what an agent said, how far its data was off, and what the price did afterwards.
import { html, type TemplateResult } from 'lit-html'
import type { ListedAnalysis, Outcome } from '../../client/index.ts'
import type { Horizon, Sentiment } from '../../schema/vocabulary.ts'
import {
  changeClass,
  formatAge,
  formatChange,
  formatPercent,
  formatSpan,
  formatXp,
  symbolText,
} from '../format.ts'
import { routeHref } from '../router.ts'

/** An analysis as the list has it, or as the stream tells of it: without its labels. */
export type ShownAnalysis = Pick<
  ListedAnalysis,
  'analysisId' | 'agentId' | 'agentName' | 'mint' | 'symbol' | 'outcome' | 'deviationPct' | 'createdAt'
> &
  Partial<Pick<ListedAnalysis, 'sentiment' | 'score' | 'labelsAvailableAt' | 'outcomes' | 'xpEarned'>>

export const OUTCOME_SHAPES: Readonly<Record<Outcome, string>> = {
  validated: '✓',
  unvalidated: '~',
  rejected: '✕',
}

export const outcomeBadge = (outcome: Outcome): TemplateResult =>
  html`<span class="outcome ${outcome}" title=${outcome}>${OUTCOME_SHAPES[outcome]}<span class="outcome-word"> ${outcome}</span></span>`

interface Column {
  label: string | TemplateResult
  isNumber?: true
  /** Left out on a phone. */
  isWide?: true
  cell(analysis: ShownAnalysis, nowMs: number): unknown
  class?(analysis: ShownAnalysis): string
}

const percentOf = (share: number | null | undefined): number | null => (share == null ? null : 100 * share)

/** What the price did so long afterwards. */
const returnColumn = (horizon: Horizon, isWide: boolean): Column => ({
  label: `+${horizon}`,
  isNumber: true,
  ...(isWide && { isWide }),
  cell: ({ outcomes }) => formatChange(percentOf(outcomes?.[`fwd_ret_${horizon}`])),
  class: ({ outcomes }) => changeClass(percentOf(outcomes?.[`fwd_ret_${horizon}`])),
})

const COLUMNS = {
  when: {
    label: 'When',
    cell: ({ createdAt }, nowMs) => html`${formatAge(createdAt, nowMs)}<span class="wide-only"> ago</span>`,
  },
  token: {
    label: 'Token',
    cell: ({ mint, symbol }) =>
      html`<a href=${routeHref('token', mint)} title=${mint}>${symbolText(symbol, mint)}</a>`,
    class: () => 'agent',
  },
  verdict: {
    label: html`<span class="outcome-word">Verdict</span>`,
    cell: ({ outcome }) => outcomeBadge(outcome),
  },
  agent: {
    label: 'Agent',
    cell: ({ agentId, agentName }) =>
      html`<a href=${routeHref('agents', agentId)} title="${agentName} ${agentId}">${agentName}</a>`,
    class: () => 'agent',
  },
  deviation: {
    label: 'Deviation',
    isNumber: true,
    isWide: true,
    cell: ({ deviationPct }) => formatPercent(deviationPct, 2),
  },
  xp: { label: 'XP', isNumber: true, isWide: true, cell: ({ xpEarned }) => formatXp(xpEarned) },
  says: {
    label: 'Says',
    cell: ({ sentiment, labelsAvailableAt }) => says(sentiment, labelsAvailableAt),
    class: ({ sentiment }) => (sentiment === 'bullish' ? 'up' : sentiment === 'bearish' ? 'down' : ''),
  },
  score: { label: 'Score', isNumber: true, isWide: true, cell: ({ score }) => score ?? '–' },
  after5m: returnColumn('5m', false),
  after15m: returnColumn('15m', true),
  after1h: returnColumn('1h', false),
  after24h: returnColumn('24h', true),
} satisfies Record<string, Column>

const SAID = [
  'says',
  'score',
  'verdict',
  'deviation',
  'xp',
  'after5m',
  'after15m',
  'after1h',
  'after24h',
] as const

/** What is shown of analyses of many agents and tokens the moment they are judged, of one agent's, and of those of one token. */
const SHOWN = {
  judged: ['when', 'token', 'agent', ...SAID],
  ofAgent: ['when', 'token', ...SAID],
  ofToken: ['when', 'agent', ...SAID],
} as const

export function analysesTable(
  analyses: readonly ShownAnalysis[],
  nowMs: number,
  shown: keyof typeof SHOWN,
): TemplateResult {
  const columns = SHOWN[shown].map((name): Column => COLUMNS[name])
  return html`<div class="scroll-x"><table class="plain analyses">
    <thead><tr>${columns.map(({ label, isNumber, isWide }) => html`<th class="${isNumber ? 'num' : ''} ${isWide ? 'wide-only' : ''}">${label}</th>`)}</tr></thead>
    <tbody>${analyses.map(
      (analysis) =>
        html`<tr>${columns.map(
          (column) =>
            html`<td class="${column.isNumber ? 'num' : ''} ${column.isWide ? 'wide-only' : ''} ${column.class?.(analysis) ?? ''}">${column.cell(analysis, nowMs)}</td>`,
        )}</tr>`,
    )}</tbody>
  </table></div>`
}

const SENTIMENT_SHAPES: Readonly<Record<Sentiment, string>> = { bullish: '▲', bearish: '▼', neutral: '■' }

/** Labels of others are withheld at first, by the clock on the wall: in a replay the market's may be of another day. */
function says(sentiment: Sentiment | null | undefined, availableAtMs: number | null | undefined): unknown {
  if (sentiment != null) return `${SENTIMENT_SHAPES[sentiment]} ${sentiment}`
  const when = availableAtMs == null ? 'withheld' : `shown in ${formatSpan(availableAtMs - Date.now())}`
  return html`<span class="dim" title="Withheld so that nobody earns by copying">${when}</span>`
}
