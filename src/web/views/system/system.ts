// The state of the server: feeds, rates, store, and a plain sentence for whatever is wrong.
import { html, nothing, type TemplateResult } from 'lit-html'
import type { HealthAnswer } from '../../../schema/api/status.ts'
import type { ToldGap } from '../../../schema/event.ts'
import { Fetched, request } from '../../api.ts'
import type { App, View } from '../../app.ts'
import { isStale, missingState, staleBanner, wideTable } from '../../dom.ts'
import {
  formatAge,
  formatAmount,
  formatBytes,
  formatCount,
  formatPrice,
  formatSpan,
  sentence,
} from '../../format.ts'
import { gapReason, gapTimes } from '../../gaps.ts'
import { parseMetrics, rate } from '../../metrics-text.ts'
import { ServerHistoryLines } from './server-history.ts'

const EVERY_MS = 2_000

interface Reading {
  values: Map<string, number>
  atMs: number
}

export class SystemView implements View {
  readonly title = 'System'
  readonly #health: Fetched<HealthAnswer>
  readonly #metrics: Fetched<Reading>
  readonly #lines: ServerHistoryLines
  #before: Reading | null = null
  #after: Reading | null = null

  constructor(app: App) {
    const onChange = () => app.invalidate()
    this.#health = new Fetched(() => request<HealthAnswer>('/health'), onChange, EVERY_MS)
    this.#metrics = new Fetched(() => this.#readMetrics(), onChange, EVERY_MS)
    this.#lines = new ServerHistoryLines(onChange)
  }

  stop(): void {
    this.#health.stop()
    this.#metrics.stop()
    this.#lines.stop()
  }

  render(): TemplateResult {
    const { value } = this.#health
    return html`<section aria-labelledby="view-title">
      <header class="toolbar"><h1 id="view-title">System</h1>${value === null ? nothing : html`<p class="status" role="status">${value.status}</p>`}</header>
      ${this.#banner()} ${value === null ? missingState(this.#health) : this.#body(value)}
    </section>`
  }

  /** Of what could not be read again: banners lie in one place, so there is one at a time. */
  #banner(): TemplateResult | typeof nothing {
    if (isStale(this.#health)) return staleBanner(this.#health)
    return isStale(this.#metrics) ? staleBanner(this.#metrics, 'Rates were') : this.#lines.banner()
  }

  #body(health: HealthAnswer): TemplateResult {
    const problems = problemsOf(health)
    return html`
      ${
        problems.length === 0
          ? html`<p class="banner good">Nothing is wrong.</p>`
          : html`<ul class="problems">${problems.map((problem) => html`<li class="banner">${problem}</li>`)}</ul>`
      }
      <div class="groups">
        ${this.#rates(health)} ${this.#feeds(health)} ${this.#store(health)}
      </div>
      ${this.#lines.render(Date.now())}
      ${lakeTables(health.store.lake ?? [])}
      ${gapsCard(health.gaps, health.market.timeMs)}`
  }

  #rates({ market }: HealthAnswer): TemplateResult {
    const perSecond = (name: string) => this.#perSecond(name)
    const value = (name: string) => this.#after?.values.get(name) ?? null
    const rows = [
      ['Trades a second', formatAmount(perSecond('mintlake_market_trades_total'))],
      ['Submissions a second', formatAmount(perSecond('mintlake_submissions_total'))],
      ['Requests a second', formatAmount(perSecond('mintlake_http_requests_total'))],
      ['Followers', formatCount(value('mintlake_streams'))],
      ['Tokens', `${formatCount(market.tokens)} of ${formatCount(market.tokensMax)}`],
      ['Late trades dropped', formatCount(market.lateDropped)],
      ['Event loop delay, p99', seconds(value('nodejs_eventloop_lag_p99_seconds'))],
      ['Memory', formatBytes(value('process_resident_memory_bytes'))],
    ] as const
    return card('Load', rows, isStale(this.#metrics))
  }

  #feeds({ feeds, gaps, pushIngest, solPrice }: HealthAnswer): TemplateResult {
    return card('Feeds', [
      ...feeds.map((feed) => [feed.feed, feedText(feed, gaps.open)] as const),
      ...(pushIngest ? [] : [['push', 'off: no feed key is set'] as const]),
      [
        'Price of SOL',
        solPrice === null
          ? 'none is known'
          : `${formatPrice(solPrice.usd)} from ${solPrice.source}, ${formatSpan(solPrice.ageMs)} ago`,
      ],
    ])
  }

  #store({ store }: HealthAnswer): TemplateResult {
    const value = (name: string) => this.#after?.values.get(name) ?? null
    const lagSeconds = value('mintlake_lake_lag_seconds')
    const rows = [
      ['Submissions are stored', store.healthy ? 'yes' : 'no'],
      ['Commits a second', formatAmount(this.#perSecond('mintlake_log_commits_total'))],
      ['Slowest recent write', seconds(value('mintlake_log_write_max_seconds'))],
      ['Commits not in the lake yet', formatCount(value('mintlake_log_unflushed_commits'))],
      [
        'The lake is behind the log by',
        lagSeconds === 0 ? 'nothing' : lagSeconds === null ? '–' : formatSpan(lagSeconds * 1_000),
      ],
      ['Free on the disk', formatBytes(value('mintlake_disk_free_bytes'))],
    ] as const
    return card('Log and lake', rows, isStale(this.#metrics))
  }

  #perSecond(name: string): number | null {
    return this.#after === null ? null : rate(this.#before, this.#after, name)
  }

  async #readMetrics(): Promise<Reading> {
    const response = await fetch('/metrics', { signal: AbortSignal.timeout(5_000) })
    if (!response.ok) throw new Error(`The server answered ${response.status}.`)
    const reading = { values: parseMetrics(await response.text()), atMs: Date.now() }
    this.#before = this.#after
    this.#after = reading
    return reading
  }
}

/** What is wrong, a sentence each. */
function problemsOf(health: HealthAnswer): string[] {
  const { status, reasons, feeds, gaps, market, solPrice, simulated, pushIngest } = health
  const problems = reasons.map(sentence)
  if (status === 'warming_up') problems.push('The server is warming up: lists may be incomplete.')
  if (status === 'draining') problems.push('The server is shutting down.')
  if (feeds.length === 0 && !pushIngest)
    problems.push(
      'No feed is on: start the server with --feed, or set MINTLAKE_FEED_KEY so that feeds may push.',
    )
  for (const { feed, state } of feeds)
    if (state === 'reconnecting' || state === 'failed')
      problems.push(`The feed ${feed} is ${state}: data is missing until it returns.`)
  for (const gap of gaps.open)
    problems.push(
      `${gapReason(gap)} ${gapTimes(gap, market.timeMs)}: events are missing until it has it again.`,
    )
  if (feeds.some(({ withTrades }) => withTrades === false))
    problems.push('PumpPortal sends launches but no trades without a key: set MINTLAKE_PUMPPORTAL_KEY.')
  if (solPrice?.isStale === true)
    problems.push(
      `The price of SOL is ${formatSpan(solPrice.ageMs)} old: trades priced in SOL alone are refused.`,
    )
  if (solPrice === null && !simulated)
    problems.push(
      'No SOL price is known: trades priced in SOL alone are refused. Set --sol-price or a Birdeye key.',
    )
  return problems
}

function feedText(
  { feed, state, stateSinceMs, accepted, rejected }: HealthAnswer['feeds'][number],
  open: readonly ToldGap[],
): string {
  const refused = Object.values(rejected).reduce((sum, count) => sum + count, 0)
  const refusedText = refused === 0 ? '' : `, ${formatCount(refused)} refused`
  const lossText = open.some((gap) => gap.feed === feed) ? ', without its source' : ''
  return `${state}${lossText} for ${formatAge(stateSinceMs, Date.now())}, ${formatCount(accepted)} events${refusedText}`
}

const gapsTable = (gaps: readonly ToldGap[], nowMs: number): TemplateResult => html`
  <table class="plain wraps">
    <thead><tr><th>What</th><th>When</th></tr></thead>
    <tbody>${gaps.map(
      (gap) => html`<tr class=${gap.to === null ? 'warn' : ''}>
        <td>${gap.to === null ? '⚠ ' : nothing}${gapReason(gap)}</td><td>${gapTimes(gap, nowMs)}</td>
      </tr>`,
    )}</tbody>
  </table>`

/** Intervals in which events may be missing: those that go on, and the latest that have ended. */
const gapsCard = ({ open, recent }: HealthAnswer['gaps'], nowMs: number): TemplateResult => html`
  <section class="card below">
    <h2>Gaps</h2>
    ${
      open.length + recent.length === 0
        ? html`<p class="note">No feed was without its source, as far as the server remembers.</p>`
        : html`${wideTable('Gaps', gapsTable([...open, ...recent], nowMs))}
          <p class="note">Trades of these times may be missing in bars: charts mark them, /api/v1/ohlc tells them as meta.incomplete, and the lake’s bars have a column complete.</p>`
    }
  </section>`

type LakeTables = NonNullable<HealthAnswer['store']['lake']>

const lakeTables = (tables: LakeTables): TemplateResult => html`
  <section class="card below">
    <h2>Tables of the lake</h2>
    ${wideTable('Tables of the lake', tableOfTables(tables))}
  </section>`

const tableOfTables = (tables: LakeTables): TemplateResult => html`
    <table class="plain">
      <thead><tr><th>Table</th><th class="num">Rows</th><th class="num">Files</th><th class="num">Size</th><th class="num" title="Rows that are in the log and not in a file yet">Waiting</th></tr></thead>
      <tbody>${tables.map(
        ({ table, rows, files, bytes, backlog }) => html`<tr>
          <td>${table}</td><td class="num">${formatCount(rows)}</td><td class="num">${formatCount(files)}</td>
          <td class="num">${formatBytes(bytes)}</td><td class="num">${formatCount(backlog)}</td>
        </tr>`,
      )}</tbody>
    </table>`

const seconds = (value: number | null): string =>
  value === null ? '–' : value < 1 ? `${(value * 1_000).toFixed(1)} ms` : `${value.toFixed(1)} s`

const card = (
  title: string,
  rows: readonly (readonly [string, string])[],
  isOld = false,
): TemplateResult => html`
  <section class="card ${isOld ? 'old' : ''}"><h2>${title}</h2><dl>${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></section>`
