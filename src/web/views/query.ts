// SQL on the lake, for the operator's key or a researcher's.
import { html, nothing, type TemplateResult } from 'lit-html'
import { errorText, request } from '../api.ts'
import type { App, View } from '../app.ts'

const TIMEOUT_MS = 40_000

const EXAMPLES = [
  {
    title: 'Sentiments and what came of them',
    sql: `SELECT sentiment, count(*) AS analyses, avg(fwd_ret_1h) AS mean_1h, avg(dead_24h::INT) AS dead
FROM training JOIN outcomes USING (analysis_id)
GROUP BY sentiment ORDER BY analyses DESC`,
  },
  {
    title: 'Volume by hour',
    sql: `SELECT date_trunc('hour', bucket_start) AS hour, sum(volume_usd) AS volume_usd, sum(trades) AS trades
FROM bars WHERE tf = '1h' GROUP BY hour ORDER BY hour DESC LIMIT 48`,
  },
  {
    title: 'Why submissions were rejected',
    sql: `SELECT worst_field, count(*) AS rejections, median(deviation_pct) AS median_deviation_pct
FROM rejections GROUP BY worst_field ORDER BY rejections DESC`,
  },
] as const

interface Result {
  columns: { name: string; type: string }[]
  rows: unknown[][]
  isTruncated: boolean
  ms: number
}

class QueryView implements View {
  readonly title = 'Query'
  readonly #app: App
  #sql: string = EXAMPLES[0].sql
  #key = ''
  #result: Result | null = null
  #error: string | null = null
  #isRunning = false

  constructor(app: App) {
    this.#app = app
    this.#key = app.key ?? ''
  }

  stop(): void {}

  render(): TemplateResult {
    return html`<section aria-labelledby="view-title">
      <header class="toolbar"><h1 id="view-title">Query the lake</h1></header>
      <form class="stack card" @submit=${(event: Event) => this.#submit(event)}>
        <p class="note">DuckDB, read only, for a researcher's key or the operator's. The same from a terminal: <code>npx mintlake sql "…"</code></p>
        <label>Key <input type="password" autocomplete="off" required .value=${this.#key} @input=${(event: InputEvent) => this.#setKey((event.target as HTMLInputElement).value)} /></label>
        <label>Examples
          <select @change=${(event: Event) => this.#choose(Number((event.target as HTMLSelectElement).value))}>
            ${EXAMPLES.map(({ title }, at) => html`<option value=${at}>${title}</option>`)}
          </select>
        </label>
        <label>SQL <textarea class="mono" rows="7" spellcheck="false" .value=${this.#sql} @input=${(event: InputEvent) => this.#setSql((event.target as HTMLTextAreaElement).value)}></textarea></label>
        <p>
          <button type="submit" class="primary" ?disabled=${this.#isRunning}>${this.#isRunning ? 'Running' : 'Run'}</button>
          ${this.#result === null ? nothing : html`<button type="button" @click=${() => this.#download()}>Save as CSV</button>`}
        </p>
        ${this.#error === null ? nothing : html`<p class="field-error" role="alert">${this.#error}</p>`}
      </form>
      ${this.#result === null ? nothing : resultTable(this.#result)}
    </section>`
  }

  #setKey(key: string): void {
    this.#key = key.trim()
  }

  #setSql(sql: string): void {
    this.#sql = sql
  }

  #choose(at: number): void {
    this.#sql = EXAMPLES[at]?.sql ?? this.#sql
    this.#app.invalidate()
  }

  async #submit(event: Event): Promise<void> {
    event.preventDefault()
    this.#isRunning = true
    this.#error = null
    this.#app.invalidate()
    try {
      const options = {
        method: 'POST',
        body: { sql: this.#sql },
        key: this.#key,
        timeoutMs: TIMEOUT_MS,
      } as const
      const { data } = await request<{ data: Result }>('/api/v1/query', options)
      this.#result = data
    } catch (error) {
      this.#error = errorText(error)
    } finally {
      this.#isRunning = false
      this.#app.invalidate()
    }
  }

  #download(): void {
    if (this.#result === null) return
    const url = URL.createObjectURL(new Blob([toCsv(this.#result)], { type: 'text/csv' }))
    const link = Object.assign(document.createElement('a'), { href: url, download: 'mintlake-query.csv' })
    link.click()
    setTimeout(() => URL.revokeObjectURL(url), 1_000)
  }
}

const resultTable = ({ columns, rows, isTruncated, ms }: Result): TemplateResult => html`
  <div class="card">
    <p class="note" role="status">${rows.length} rows in ${ms.toFixed(0)} ms${isTruncated ? '; there are more: add a LIMIT or narrow the query' : ''}</p>
    <div class="scroll-x"><table class="plain">
      <thead><tr>${columns.map(({ name, type }) => html`<th class=${isNumber(type) ? 'num' : ''} title=${type}>${name}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${row.map((value, at) => html`<td class=${isNumber(columns[at]?.type ?? '') ? 'num' : ''}>${cellText(value)}</td>`)}</tr>`)}</tbody>
    </table></div>
  </div>`

const isNumber = (type: string): boolean => /INT|DOUBLE|FLOAT|DECIMAL/.test(type)
const cellText = (value: unknown): string =>
  value === null ? '–' : typeof value === 'object' ? JSON.stringify(value) : `${value}`

/** RFC 4180. A text that a spreadsheet would run as a formula gets a quote before it. */
function toCsv({ columns, rows }: Result): string {
  const cell = (value: unknown): string => {
    if (value === null) return ''
    const text = typeof value === 'object' ? JSON.stringify(value) : `${value}`
    const isFormula = typeof value === 'string' && /^[=+\-@\t\r]/.test(text)
    return /[",\r\n]/.test(text) || isFormula
      ? `"${isFormula ? "'" : ''}${text.replaceAll('"', '""')}"`
      : text
  }
  return [columns.map(({ name }) => name), ...rows].map((row) => row.map(cell).join(',')).join('\r\n')
}

export const queryView = (app: App): View => new QueryView(app)
