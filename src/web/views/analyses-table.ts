// Analyses as a table: what an agent said, how far its data was off, and what the price did afterwards.
import { html, nothing, type TemplateResult } from 'lit-html'
import type { ListedAnalysis, Outcome } from '../../client/index.ts'
import type { StreamedSubmission } from '../../schema/api/stream.ts'
import { changeClass, formatAge, formatChange, formatPercent, shortAddress } from '../format.ts'
import { routeHref } from '../router.ts'

/** An analysis as the list has it, or as the stream tells of it: without its labels, with names. */
type ShownAnalysis = Pick<
  ListedAnalysis,
  'analysisId' | 'agentId' | 'mint' | 'outcome' | 'deviationPct' | 'createdAt'
> &
  Partial<Pick<ListedAnalysis, 'sentiment' | 'score' | 'labelsAvailableAt' | 'outcomes'>> &
  Partial<Pick<StreamedSubmission, 'agentName' | 'symbol'>>

const OUTCOME_SHAPES: Readonly<Record<Outcome, string>> = { validated: '✓', unvalidated: '~', rejected: '✕' }

export const outcomeBadge = (outcome: Outcome): TemplateResult =>
  html`<span class="outcome ${outcome}">${OUTCOME_SHAPES[outcome]} ${outcome}</span>`

const percentOf = (share: number | null | undefined): number | null => (share == null ? null : 100 * share)

export const analysesTable = (
  analyses: readonly ShownAnalysis[],
  nowMs: number,
  withMint = false,
): TemplateResult => html`
  <div class="scroll-x"><table class="plain analyses">
    <thead><tr>
      <th>When</th>${withMint ? html`<th>Token</th>` : nothing}<th>Agent</th><th>Verdict</th><th class="num">Deviation</th>
      <th>Says</th><th class="num">Score</th><th class="num">1h later</th><th class="num">24h later</th>
    </tr></thead>
    <tbody>${analyses.map((analysis) => analysisRow(analysis, nowMs, withMint))}</tbody>
  </table></div>`

function analysisRow(analysis: ShownAnalysis, nowMs: number, withMint: boolean): TemplateResult {
  const { agentId, agentName, mint, symbol, outcome, deviationPct, sentiment, score, createdAt } = analysis
  const [hour, day] = [percentOf(analysis.outcomes?.fwd_ret_1h), percentOf(analysis.outcomes?.fwd_ret_24h)]
  const withheld = analysis.labelsAvailableAt
  return html`<tr>
    <td>${formatAge(createdAt, nowMs)} ago</td>
    ${withMint ? html`<td><a href=${routeHref('token', mint)}>${symbol ?? shortAddress(mint)}</a></td>` : nothing}
    <td><a href=${routeHref('agents', agentId)}>${agentName ?? shortAddress(agentId)}</a></td>
    <td>${outcomeBadge(outcome)}</td>
    <td class="num">${formatPercent(deviationPct, 2)}</td>
    <td>${withheld == null ? (sentiment ?? '–') : html`<span class="dim" title="Withheld so that nobody earns by copying">in ${formatAge(2 * nowMs - withheld, nowMs)}</span>`}</td>
    <td class="num">${score ?? '–'}</td>
    <td class="num ${changeClass(hour)}">${formatChange(hour)}</td>
    <td class="num ${changeClass(day)}">${formatChange(day)}</td>
  </tr>`
}
