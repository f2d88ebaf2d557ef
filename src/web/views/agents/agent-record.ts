// Whether an agent was right, and what it earned over time, as cards.
import { html, nothing, type TemplateResult } from 'lit-html'
import type { AgentRecord } from '../../../client/index.ts'
import type { Horizon } from '../../../schema/vocabulary.ts'
import { meter } from '../../dom.ts'
import { changeClass, formatChange, formatCount, formatTime } from '../../format.ts'
import { groupCard, horizonTabs, shortestKnown } from '../calibration.ts'

/** @param horizon as the address says; null: the shortest that is known. */
export function recordCards(record: AgentRecord, horizon: Horizon | null, nowMs: number): TemplateResult {
  const shown = horizon ?? shortestKnown(record.groups) ?? '5m'
  const groups = record.groups.filter((group) => group.horizon === shown)
  const of = (kind: 'sentiment' | 'score') => groups.filter((group) => group.kind === kind)
  return html`
    <div class="groups wide">${hitsCard(record)} ${xpCard(record, nowMs)}</div>
    ${
      record.groups.length === 0
        ? nothing
        : html`<div class="below">${horizonTabs(shown, 'agents', record.agentId)}</div>
            <div class="columns">
              ${groupCard('Its sentiments', `What the price did ${shown} after it said so.`, of('sentiment'))}
              ${groupCard('Its scores', 'A higher score should be followed by a higher return.', of('score'))}
            </div>`
    }`
}

const hitsCard = ({ horizons }: AgentRecord): TemplateResult => html`<section class="card">
  <h2>Right or wrong</h2>
  ${
    horizons.length === 0
      ? html`<p class="note">No outcome of a bullish or bearish analysis is known yet: the first comes five minutes after it, once its labels are shown.</p>`
      : html`<table class="plain">
          <thead><tr><th>After</th><th class="num">Analyses</th><th class="num">Hits</th><th>Hit rate</th><th class="num">Mean return</th></tr></thead>
          <tbody>${horizons.map(
            ({ horizon, count, hits, meanPct }) => html`<tr>
              <td>${horizon}</td><td class="num">${formatCount(count)}</td><td class="num">${formatCount(hits)}</td>
              <td>${meter(count === 0 ? null : (100 * hits) / count, 'hit rate')}</td>
              <td class="num ${changeClass(meanPct)}">${formatChange(meanPct)}</td>
            </tr>`,
          )}</tbody>
        </table>
        <p class="note">A hit: the price went the way that it said. The return is in that direction: of a bearish analysis, a fall counts as a gain.</p>`
  }
</section>`

const WIDTH = 320
const HEIGHT = 96

/** The sum of what it earned, step by step, to now. */
function xpCard({ xp, sinceMs, asOfMs }: AgentRecord, nowMs: number): TemplateResult {
  const total = xp.reduce((sum, { xp: earned }) => sum + earned, 0)
  const firstMs = Math.max(sinceMs, xp[0]?.atMs ?? asOfMs)
  const spanMs = Math.max(1, asOfMs - firstMs)
  let sum = 0
  let path = `M0 ${HEIGHT}`
  for (const { atMs, xp: earned } of xp) {
    sum += earned
    const x = (WIDTH * Math.max(0, atMs - firstMs)) / spanMs
    const y = HEIGHT - (HEIGHT - 4) * (sum / (total || 1))
    path += `H${x.toFixed(1)}V${y.toFixed(1)}`
  }
  return html`<section class="card">
    <h2>XP <small>${formatCount(total)} in the last 30 days</small></h2>
    ${
      xp.length === 0
        ? html`<p class="note">None yet.</p>`
        : html`<svg class="xp-line" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="XP over time, ${formatCount(total)} in all"><path d="${path}H${WIDTH}"></path></svg>
          <p class="note ends"><span>${formatTime(firstMs, nowMs)}</span><span>now</span></p>`
    }
  </section>`
}
