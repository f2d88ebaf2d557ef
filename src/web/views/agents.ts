// The leaderboard, and the record of one agent.
import { html, nothing, type TemplateResult } from 'lit-html'
import type { AgentRank, AnalysisPage, ListedAnalysis } from '../../client/index.ts'
import { Fetched } from '../api.ts'
import type { App, View } from '../app.ts'
import { emptyState, missingState, staleBanner } from '../dom.ts'
import { formatAmount, formatCount, shortAddress } from '../format.ts'
import { type Route, routeHref } from '../router.ts'
import { analysesTable } from './analyses-table.ts'

const EVERY_MS = 15_000
const LEADERS = 100

class AgentsView implements View {
  readonly #app: App
  readonly #agentId: string
  readonly #leaders: Fetched<AgentRank[]>
  readonly #record: Fetched<AnalysisPage> | null
  #older: ListedAnalysis[] = []
  #cursor: string | null | undefined
  #isLoadingOlder = false

  constructor(app: App) {
    this.#app = app
    this.#agentId = app.route.id
    const onChange = () => app.invalidate()
    this.#leaders = new Fetched(() => app.client.leaderboard({ limit: LEADERS }), onChange)
    this.#leaders.start(EVERY_MS)
    this.#record = this.#agentId === '' ? null : new Fetched(() => this.#readPage(), onChange)
    this.#record?.startOnce(EVERY_MS)
  }

  get title(): string {
    return this.#leader?.name ?? 'Agents'
  }

  update(route: Route): boolean {
    return route.view === 'agents' && route.id === this.#agentId
  }

  stop(): void {
    this.#leaders.stop()
    this.#record?.stop()
  }

  render(): TemplateResult {
    return this.#agentId === '' ? this.#leaderboard() : this.#agent()
  }

  get #leader(): AgentRank | undefined {
    return this.#leaders.value?.find(({ agentId }) => agentId === this.#agentId)
  }

  #readPage(cursor?: string): Promise<AnalysisPage> {
    return this.#app.client.analyses({ agentId: this.#agentId, ...(cursor !== undefined && { cursor }) })
  }

  #leaderboard(): TemplateResult {
    const { value } = this.#leaders
    return html`<section aria-labelledby="view-title">
      <header class="toolbar"><h1 id="view-title">Agents by XP</h1></header>
      ${staleBanner(this.#leaders)}
      ${
        value === null
          ? missingState(this.#leaders)
          : value.length === 0
            ? emptyState(
                'No agent has XP yet',
                'The first accepted analysis makes a leader. Start the example agent:',
                'npm run agent',
              )
            : html`<div class="card"><div class="scroll-x"><table class="plain">
                <thead><tr><th class="num rank">Rank</th><th>Agent</th><th class="num">XP</th><th class="num">Analyses</th><th class="num">XP each</th></tr></thead>
                <tbody>${value.map(leaderRow)}</tbody>
              </table></div></div>`
      }
    </section>`
  }

  #agent(): TemplateResult {
    const leader = this.#leader
    const record = this.#record
    const rows = [...(record?.value?.data ?? []), ...this.#older]
    const cursor = this.#cursor === undefined ? record?.value?.meta?.nextCursor : this.#cursor
    return html`<section aria-labelledby="view-title">
      <p><a href=${routeHref('agents')}>← All agents</a></p>
      <header class="toolbar">
        <h1 id="view-title" class="one-line" title=${leader?.name ?? this.#agentId}>${leader?.name ?? shortAddress(this.#agentId)}</h1>
        <p class="status own-line">${leader === undefined ? nothing : html`rank ${leader.rank} · ${formatCount(leader.xp)} XP · ${formatCount(leader.analyses)} analyses`}</p>
      </header>
      ${
        record === null || record.value === null
          ? missingState(record ?? this.#leaders)
          : rows.length === 0
            ? emptyState('No analyses', 'This agent has submitted nothing that was accepted.')
            : html`<div class="card">${analysesTable(rows, this.#app.nowMs(), 'ofAgent')}</div>`
      }
      ${cursor ? html`<p><button type="button" ?disabled=${this.#isLoadingOlder} @click=${() => this.#loadOlder(cursor)}>Older</button></p>` : nothing}
    </section>`
  }

  async #loadOlder(cursor: string): Promise<void> {
    this.#isLoadingOlder = true
    this.#app.invalidate()
    try {
      const { data, meta } = await this.#readPage(cursor)
      this.#older.push(...data)
      this.#cursor = meta?.nextCursor ?? null
    } catch {
      // The button stays, so that it can be tried again.
    } finally {
      this.#isLoadingOlder = false
      this.#app.invalidate()
    }
  }
}

const leaderRow = ({ rank, agentId, name, xp, analyses }: AgentRank): TemplateResult => html`<tr>
  <td class="num rank">${rank}</td>
  <td class="agent" title=${name}><a class="untrusted" href=${routeHref('agents', agentId)}>${name}</a></td>
  <td class="num">${formatCount(xp)}</td>
  <td class="num">${formatCount(analyses)}</td>
  <td class="num">${formatAmount(analyses === 0 ? null : xp / analyses)}</td>
</tr>`

export const agentsView = (app: App): View => new AgentsView(app)
