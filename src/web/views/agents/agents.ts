// The leaderboard, and the record of one agent.
import { html, nothing, type TemplateResult } from 'lit-html'
import type { AgentRank, AgentRecord, AnalysesQuery } from '../../../client/index.ts'
import { HORIZON_NAMES, type Horizon } from '../../../schema/vocabulary.ts'
import { Fetched } from '../../api.ts'
import type { App, View } from '../../app.ts'
import { agentCommand, emptyState, isStale, meter, missingState, staleBanner } from '../../dom.ts'
import { changeClass, formatChange, formatCount, formatTime, formatXp, shortAddress } from '../../format.ts'
import { type Route, routeHref } from '../../router.ts'
import { analysesTable } from '../analyses-table.ts'
import { AnalysisList } from '../analysis-list.ts'
import { groupCard, horizonTabs, shortestKnown, toHorizon } from '../calibration.ts'

/** Whether an agent was right, and what it earned over time, as cards. @param horizon as the address says; null: the shortest that is known. */
function recordCards(record: AgentRecord, horizon: Horizon | null, nowMs: number): TemplateResult {
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
    <h2>XP <small>${formatXp(total)} in the last 30 days</small></h2>
    ${
      xp.length === 0
        ? html`<p class="note">None yet.</p>`
        : html`<svg class="xp-line" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="XP over time, ${formatXp(total)} in all"><path d="${path}H${WIDTH}"></path></svg>
          <p class="note ends"><span>${formatTime(firstMs, nowMs)}</span><span>now</span></p>`
    }
  </section>`
}

const EVERY_MS = 15_000
const RECORD_EVERY_MS = 60_000
const LEADERS = 100

export class AgentsView implements View {
  readonly #app: App
  readonly #agentId: string
  readonly #leaders: Fetched<AgentRank[]>
  /** Its analyses, and what became of all of them; null: of no agent. */
  readonly #analyses: AnalysisList | null
  readonly #record: Fetched<AgentRecord> | null

  constructor(app: App) {
    this.#app = app
    this.#agentId = app.route.id
    const onChange = () => app.invalidate()
    this.#leaders = new Fetched(() => app.client.leaderboard({ limit: LEADERS }), onChange, EVERY_MS)
    const agentId = this.#agentId
    const readPage = (page: AnalysesQuery) => app.client.analyses({ ...page, agentId })
    this.#analyses = agentId === '' ? null : new AnalysisList(readPage, app.nowMs.bind(app), onChange)
    const readRecord = () => app.client.agentRecord(agentId)
    this.#record = agentId === '' ? null : new Fetched(readRecord, onChange, RECORD_EVERY_MS)
  }

  get title(): string {
    return this.#name ?? 'Agents'
  }

  update({ id }: Route): boolean {
    return id === this.#agentId
  }

  stop(): void {
    this.#leaders.stop()
    this.#analyses?.stop()
    this.#record?.stop()
  }

  render(): TemplateResult {
    return this.#agentId === '' ? this.#leaderboard() : this.#agent()
  }

  get #leader(): AgentRank | undefined {
    return this.#leaders.value?.find(({ agentId }) => agentId === this.#agentId)
  }

  get #name(): string | undefined {
    return this.#leader?.name ?? this.#record?.value?.name
  }

  #leaderboard(): TemplateResult {
    const { value } = this.#leaders
    const shown = toHorizon(this.#app.route.query.get('horizon')) ?? shortestOf(value ?? [])
    return html`<section aria-labelledby="view-title">
      <header class="toolbar">
        <h1 id="view-title">Agents by XP</h1>
        ${horizonTabs(shown, 'agents')}
      </header>
      ${staleBanner(this.#leaders)}
      ${
        value === null
          ? missingState(this.#leaders)
          : value.length === 0
            ? emptyState(
                'No agent has XP yet',
                'The first accepted analysis makes a leader. Start the example agent:',
                agentCommand(),
              )
            : html`<div class="card"><div class="scroll-x"><table class="plain">
                <thead><tr><th class="num rank">Rank</th><th>Agent</th><th class="num">XP</th><th class="num wide-only">Analyses</th><th class="num wide-only">XP each</th><th class="num">Right after ${shown}</th><th class="num wide-only">Outcomes</th><th class="num wide-only">Mean return</th></tr></thead>
                <tbody>${value.map((leader) => leaderRow(leader, shown))}</tbody>
              </table></div>
              <p class="note below">Right: the price went the way that a bullish or bearish analysis said, in the last 30 days. Outcomes are those that are known: the time has passed, and the labels are shown.</p></div>`
      }
    </section>`
  }

  /** Of what could not be read again: banners lie in one place, so there is one at a time. */
  #banner(): TemplateResult | typeof nothing {
    const [list, record] = [this.#analyses?.latest, this.#record]
    if (list !== undefined && isStale(list)) return staleBanner(list)
    return record === null ? nothing : staleBanner(record, 'Its record was')
  }

  #agent(): TemplateResult {
    if (this.#record?.isFinal === true)
      return html`<section aria-labelledby="view-title"><h1 id="view-title">Agents</h1>
        ${emptyState('This agent is not here', this.#record.error ?? '')}
        <p class="empty"><a href=${routeHref('agents')}>All agents</a></p></section>`
    const leader = this.#leader
    const analyses = this.#analyses
    const record = this.#record?.value ?? null
    const rows = analyses?.rows ?? []
    const horizon = toHorizon(this.#app.route.query.get('horizon'))
    const nowMs = this.#app.nowMs()
    return html`<section aria-labelledby="view-title">
      <p><a href=${routeHref('agents')}>← All agents</a></p>
      ${this.#banner()}
      <header class="toolbar">
        <h1 id="view-title" class="one-line" title="${this.#name ?? ''} ${this.#agentId}">${this.#name ?? shortAddress(this.#agentId)}</h1>
        <p class="status own-line">${leader === undefined ? nothing : html`rank ${leader.rank} · ${formatXp(leader.xp)} XP · ${formatCount(leader.analyses)} analyses`}</p>
      </header>
      <div class="record-room ${this.#record !== null && isStale(this.#record) ? 'old' : ''}">${record === null ? (this.#record === null ? nothing : missingState(this.#record)) : recordCards(record, horizon, nowMs)}</div>
      ${
        analyses?.isRead !== true
          ? missingState(analyses?.latest ?? this.#leaders)
          : rows.length === 0
            ? emptyState('No analyses', 'This agent has submitted nothing that was accepted.')
            : html`<section class="card below"><h2>Analyses</h2>${analysesTable(rows, nowMs, 'ofAgent')}</section>`
      }
      ${analyses?.olderButton()}
    </section>`
  }
}

/** The shortest time after which something is known of anybody. */
const shortestOf = (leaders: readonly AgentRank[]): Horizon =>
  HORIZON_NAMES.find((name) =>
    leaders.some(({ horizons }) => horizons.some(({ horizon }) => horizon === name)),
  ) ?? HORIZON_NAMES[0]

function leaderRow(
  { rank, agentId, name, xp, analyses, horizons }: AgentRank,
  shown: Horizon,
): TemplateResult {
  const known = horizons.find(({ horizon }) => horizon === shown)
  const rightPct = known === undefined || known.count === 0 ? null : (100 * known.hits) / known.count
  return html`<tr>
  <td class="num rank">${rank}</td>
  <td class="agent" title=${name}><a class="untrusted" href=${routeHref('agents', agentId)}>${name}</a></td>
  <td class="num">${formatXp(xp)}</td>
  <td class="num wide-only">${formatCount(analyses)}</td>
  <td class="num wide-only">${analyses === 0 ? '–' : (xp / analyses).toFixed(1)}</td>
  <td class="num">${meter(rightPct, 'right')}</td>
  <td class="num wide-only">${formatCount(known?.count ?? 0)}</td>
  <td class="num wide-only ${changeClass(known?.meanPct)}">${formatChange(known?.meanPct)}</td>
</tr>`
}
