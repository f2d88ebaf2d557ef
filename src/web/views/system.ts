// The state of the server: feeds, rates, store, and a plain sentence for whatever is wrong.
import { html, nothing, type TemplateResult } from 'lit-html'
import type { HealthAnswer } from '../../schema/api/status.ts'
import { errorText, Fetched, request } from '../api.ts'
import type { App, View } from '../app.ts'
import { formatAge, formatAmount, formatBytes, formatCount } from '../format.ts'
import { parseMetrics, rate } from '../metrics-text.ts'

const EVERY_MS = 2_000

interface Reading {
  values: Map<string, number>
  atMs: number
}

class SystemView implements View {
  readonly title = 'System'
  readonly #health: Fetched<HealthAnswer>
  readonly #metrics: Fetched<Reading>
  #before: Reading | null = null
  #after: Reading | null = null

  constructor(app: App) {
    const onChange = () => app.invalidate()
    this.#health = new Fetched(() => request<HealthAnswer>('/health'), onChange)
    this.#metrics = new Fetched(() => this.#readMetrics(), onChange)
    this.#health.start(EVERY_MS)
    this.#metrics.start(EVERY_MS)
  }

  stop(): void {
    this.#health.stop()
    this.#metrics.stop()
  }

  render(): TemplateResult {
    const { value, error } = this.#health
    return html`<section aria-labelledby="view-title">
      <header class="toolbar"><h1 id="view-title">System</h1>${value === null ? nothing : html`<p class="status" role="status">${value.status}</p>`}</header>
      ${error === null ? nothing : html`<p class="banner" role="alert">${error} What follows was true ${formatAge(this.#health.atMs, Date.now())} ago.</p>`}
      ${value === null ? html`<p class="note">Loading</p>` : this.#body(value)}
    </section>`
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
      ${lakeTables(health.store.lake ?? [])}`
  }

  #rates({ market }: HealthAnswer): TemplateResult {
    const perSecond = (name: string) => (this.#after === null ? null : rate(this.#before, this.#after, name))
    const value = (name: string) => this.#after?.values.get(name) ?? null
    const delaySeconds = value('nodejs_eventloop_lag_p99_seconds')
    const rssBytes = value('process_resident_memory_bytes')
    return card('Load', [
      ['Trades a second', formatAmount(perSecond('mintlake_market_trades_total'))],
      ['Requests a second', formatAmount(perSecond('mintlake_http_requests_total'))],
      ['Followers', formatCount(value('mintlake_streams'))],
      ['Tokens', `${formatCount(market.tokens)} of ${formatCount(market.tokensMax)}`],
      ['Late trades dropped', formatCount(market.lateDropped)],
      ['Event loop delay, p99', delaySeconds === null ? '–' : `${(delaySeconds * 1_000).toFixed(1)} ms`],
      ['Memory', rssBytes === null ? '–' : formatBytes(rssBytes)],
    ])
  }

  #feeds({ feeds, pushIngest, solPrice }: HealthAnswer): TemplateResult {
    return card('Feeds', [
      ...feeds.map((feed): [string, string] => [feed.feed, feedText(feed)]),
      ['Push', pushIngest ? 'open, with the feed key' : 'off: no feed key is set'],
      [
        'SOL',
        solPrice === null
          ? 'no price'
          : `$${solPrice.usd.toFixed(2)} from ${solPrice.source}, ${formatAge(Date.now() - solPrice.ageMs, Date.now())} ago`,
      ],
    ])
  }

  #store({ store }: HealthAnswer): TemplateResult {
    const rows = Object.entries(store)
      .filter(([name, value]) => name !== 'reasons' && (typeof value !== 'object' || value === null))
      .map(([name, value]): [string, string] => [label(name), text(name, value)])
    return card('Log and lake', rows)
  }

  async #readMetrics(): Promise<Reading> {
    const response = await fetch('/metrics', { signal: AbortSignal.timeout(5_000) })
    if (!response.ok) throw new Error(errorText(null))
    const reading = { values: parseMetrics(await response.text()), atMs: Date.now() }
    this.#before = this.#after
    this.#after = reading
    return reading
  }
}

/** What is wrong, a sentence each. */
function problemsOf({ status, reasons, feeds, solPrice, simulated, pushIngest }: HealthAnswer): string[] {
  const problems = [...reasons]
  if (status === 'warming_up') problems.push('The server is warming up: lists may be incomplete.')
  if (status === 'draining') problems.push('The server is shutting down.')
  if (feeds.length === 0 && !pushIngest)
    problems.push(
      'No feed is on: start the server with --feed, or set MINTLAKE_FEED_KEY so that feeds may push.',
    )
  for (const { feed, state } of feeds)
    if (state === 'reconnecting' || state === 'failed')
      problems.push(`The feed ${feed} is ${state}: data is missing until it returns.`)
  if (solPrice === null && !simulated)
    problems.push(
      'No SOL price is known: trades priced in SOL alone are refused. Set --sol-price or a Birdeye key.',
    )
  return problems
}

const feedText = ({ state, accepted }: HealthAnswer['feeds'][number]): string =>
  accepted === undefined ? state : `${state}, ${formatCount(accepted)} events`

const lakeTables = (tables: NonNullable<HealthAnswer['store']['lake']>): TemplateResult => html`
  <section class="card below">
    <h2>Tables of the lake</h2>
    <div class="scroll-x"><table class="plain">
      <thead><tr><th>Table</th><th class="num">Rows</th><th class="num">Files</th><th class="num">Size</th><th class="num">Waiting in the log</th></tr></thead>
      <tbody>${tables.map(
        ({ table, rows, files, bytes, backlog }) => html`<tr>
          <td>${table}</td><td class="num">${formatCount(rows)}</td><td class="num">${formatCount(files)}</td>
          <td class="num">${formatBytes(bytes)}</td><td class="num">${formatCount(backlog)}</td>
        </tr>`,
      )}</tbody>
    </table></div>
  </section>`

/** `flushLagMs` as words. */
const label = (name: string): string =>
  name
    .replace(/(Ms|Bytes)$/, '')
    .replace(/([a-z])([A-Z])/g, (_, before: string, after: string) => `${before} ${after.toLowerCase()}`)
    .replace(/^./, (first) => first.toUpperCase())

function text(name: string, value: unknown): string {
  if (value === null || value === undefined) return '–'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value !== 'number') return `${value}`
  if (name.endsWith('Bytes')) return formatBytes(value)
  if (name.endsWith('AtMs') || name.endsWith('At')) return `${formatAge(value, Date.now())} ago`
  if (name.endsWith('Ms')) return value < 1_000 ? `${value.toFixed(0)} ms` : `${(value / 1_000).toFixed(1)} s`
  return formatCount(value)
}

const card = (title: string, rows: readonly (readonly [string, string])[]): TemplateResult => html`
  <section class="card"><h2>${title}</h2><dl>${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></section>`

export const systemView = (app: App): View => new SystemView(app)
