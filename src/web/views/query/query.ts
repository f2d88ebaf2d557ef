// SQL on the lake, its rows as a table and as CSV, with the key of a researcher or the operator. What the address holds is shown and never run by itself.
import { html, nothing, type TemplateResult } from 'lit-html'
import { guard } from 'lit-html/directives/guard.js'
import { createClient, MintlakeError, type QueryResult } from '../../../client/index.ts'
import { csvLine } from '../../../lib/text/csv.ts'
import { errorText, requireSendable } from '../../api.ts'
import type { App, View } from '../../app.ts'
import { copyable, emptyState, enteredText, urlFlag } from '../../dom.ts'
import { formatCount } from '../../format.ts'
import { keptInTab } from '../../kept.ts'
import { type Route, replaceQuery } from '../../router.ts'
import { EXAMPLES } from './query-examples.ts'

/** Longer texts are cut in the table, and whole in the CSV. */
const CELL_CHARACTERS_MAX = 200
const IS_NUMBER = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL)/
/** What a spreadsheet runs as a formula. Texts of tokens come from strangers. */
const IS_FORMULA = /^[=+\-@\t\r]/
const REVOKE_MS = 10_000

const resultTable = ({ data: { columns, rows } }: QueryResult): TemplateResult => {
  const classes = columns.map(({ type }) => (IS_NUMBER.test(type) && !type.endsWith('[]') ? 'num' : ''))
  return html`<div class="card below result" tabindex="0" role="region" aria-label="Result">
    <table class="plain">
      <thead><tr>${columns.map(({ name, type }, at) => html`<th class=${classes[at] ?? ''} title=${type}>${name}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${row.map((value, at) => cell(value, classes[at] ?? ''))}</tr>`)}</tbody>
    </table>
    ${rows.length === 0 ? html`<p class="note">The result has no rows.</p>` : ''}
  </div>`
}

function cell(value: unknown, className: string): TemplateResult {
  if (value === null) return html`<td class="dim ${className}">NULL</td>`
  const text = typeof value === 'object' ? JSON.stringify(value) : `${value}`
  const isCut = text.length > CELL_CHARACTERS_MAX
  // A cut may go through the middle of a character.
  const shown = isCut ? `${text.slice(0, CELL_CHARACTERS_MAX).replace(/[\ud800-\udbff]$/, '')}…` : text
  return html`<td class=${className}>${shown}</td>`
}

/** Saves all rows (RFC 4180). A text that a spreadsheet would run gets a quote before it. */
function saveAsCsv({ data: { columns, rows } }: QueryResult): void {
  const harmless = (value: unknown): unknown =>
    typeof value === 'string' && IS_FORMULA.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value
  const lines = [columns.map(({ name }) => name), ...rows]
  const text = lines.map((line) => csvLine(line.map(harmless))).join('')
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv' }))
  Object.assign(document.createElement('a'), { href: url, download: 'mintlake-query.csv' }).click()
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_MS)
}

/** The key is another one than an agent's, and lives as long as the tab too. */
const KEY_ITEM = 'mintlake-lake-key'
/** Rows that are shown and saved. */
const ROWS = 1_000

export class QueryView implements View {
  readonly title = 'Query'
  readonly #app: App
  #sql: string
  #key = keptInTab.get(KEY_ITEM) ?? ''
  #running: { abort: AbortController; sinceMs: number } | null = null
  #result: QueryResult | null = null
  #error: { text: string; isOfKey: boolean } | null = null
  #isCanceled = false

  constructor(app: App) {
    this.#app = app
    this.#sql = app.route.query.get('sql') ?? EXAMPLES[0].sql
  }

  update({ query }: Route): boolean {
    this.#sql = query.get('sql') ?? this.#sql
    return true
  }

  stop(): void {
    this.#running?.abort.abort()
  }

  render(): TemplateResult {
    const isRunning = this.#running !== null
    return html`<section aria-labelledby="view-title">
      <header class="toolbar">
        <h1 id="view-title">Query the lake</h1>
        <p class="note">DuckDB’s SQL, read-only, at most 30 seconds and ${formatCount(ROWS)} rows</p>
      </header>
      <form class="stack card query" @submit=${(event: Event) => this.#submit(event)} @keydown=${(event: KeyboardEvent) => this.#keyDown(event)}>
        ${
          this.#app.session.isQueryOpen && this.#key === ''
            ? html`<p class="note">Open to programs of this computer, since the server has no key of an operator or researcher.</p>`
            : html`<label>Key of a researcher or the operator
                <input name="key" type="password" autocomplete="off" required .value=${this.#key} @input=${(event: InputEvent) => this.#setKey(enteredText(event))} /></label>
              ${this.#key === '' ? html`<details><summary class="note">How a key is made</summary>${this.#howToGetKey()}</details>` : nothing}`
        }
        <div class="chips" role="group" aria-label="Examples">
          <span class="note">Examples</span>
          ${EXAMPLES.map(({ title, sql }) => html`<button type="button" class="chip" aria-pressed=${sql === this.#sql} @click=${() => this.#choose(sql)}>${title}</button>`)}
        </div>
        <label>SQL
          <textarea name="sql" class="mono" rows="8" spellcheck="false" autocapitalize="off" required maxlength="16384"
            .value=${this.#sql} @input=${(event: InputEvent) => this.#edit(enteredText(event))}></textarea></label>
        <div class="actions">
          <button class="primary" ?disabled=${isRunning}>Run</button>
          <button type="button" ?disabled=${!isRunning} @click=${() => this.#cancel()}>Cancel</button>
          <span class="note wide-only"><kbd>Ctrl</kbd> <kbd>Enter</kbd> runs it, <kbd>Esc</kbd> cancels</span>
          <span class="note grow" role="status">${this.#status()}</span>
          <button type="button" ?disabled=${!this.#hasRows} @click=${() => this.#save()}>${this.#result?.meta.truncated === true ? `Save these ${formatCount(this.#result.data.rows.length)} rows as CSV` : 'Save as CSV'}</button>
        </div>
      </form>
      ${this.#outcome()}
    </section>`
  }

  get #hasRows(): boolean {
    return this.#result !== null && this.#result.data.rows.length > 0
  }

  #outcome(): TemplateResult | typeof nothing {
    if (this.#error !== null)
      return html`<div class="card below" role="alert">
        <pre class="field-error">${this.#error.text}</pre>
        ${this.#error.isOfKey ? this.#howToGetKey() : nothing}
      </div>`
    const result = this.#result
    if (result !== null) return html`${guard([result], () => resultTable(result))}`
    if (this.#running !== null)
      return html`<p class="note below">The query runs in a process of its own; the market goes on.</p>`
    return emptyState(
      'No query has run yet',
      'Choose an example, or write SQL of your own. SHOW TABLES and DESCRIBE training tell what there is. The same from a terminal:',
      `npx mintlake sql${this.#folderFlag()} "SHOW TABLES"`,
    )
  }

  /** With a space before it; nothing where the command finds the folder by itself. */
  #folderFlag(): string {
    const { dataDir } = this.#app.session
    if (dataDir === null) return ''
    return ` --data-dir ${/^[\w./-]+$/.test(dataDir) ? dataDir : `'${dataDir.replaceAll("'", "'\\''")}'`}`
  }

  /** Two lines: the operator's key comes from the start of the server, a researcher's from the operator. */
  #howToGetKey(): TemplateResult {
    return html`<p class="note">The operator starts the server with a key of their own, and with it makes one for a researcher:</p>
      <p>${copyable('MINTLAKE_ADMIN_KEY=<secret> npm start')}</p>
      <p>${copyable(`MINTLAKE_ADMIN_KEY=<secret> npx mintlake keys make lab --type researcher${urlFlag()}`)}</p>`
  }

  #status(): string {
    if (this.#running !== null)
      return `running, ${Math.floor((Date.now() - this.#running.sinceMs) / 1_000)} s`
    if (this.#isCanceled) return 'canceled'
    if (this.#result === null) return ''
    const { rows, truncated, ms, missingFiles } = this.#result.meta
    const more = truncated ? '; there are more: add a LIMIT, or narrow it' : ''
    const missing = missingFiles > 0 ? `; ${missingFiles} lost files are left out` : ''
    return `${formatCount(rows)} ${rows === 1 ? 'row' : 'rows'} in ${formatCount(ms)} ms${more}${missing}`
  }

  #setKey(key: string): void {
    this.#key = key.trim()
    keptInTab.set(KEY_ITEM, this.#key || null)
  }

  #edit(sql: string): void {
    this.#sql = sql
    this.#app.invalidate()
  }

  #choose(sql: string): void {
    this.#edit(sql)
    document.querySelector<HTMLTextAreaElement>('textarea[name=sql]')?.focus()
  }

  #keyDown(event: KeyboardEvent): void {
    if (event.key === 'Escape') this.#cancel()
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    if (event.currentTarget instanceof HTMLFormElement) event.currentTarget.requestSubmit()
  }

  async #submit(event: Event): Promise<void> {
    event.preventDefault()
    if (this.#running !== null) return
    const abort = new AbortController()
    this.#running = { abort, sinceMs: Date.now() }
    this.#error = null
    this.#isCanceled = false
    replaceQuery(this.#app.route, { sql: this.#sql })
    this.#app.invalidate()
    try {
      if (this.#key !== '') requireSendable(this.#key)
      const client = createClient({ baseUrl: location.origin, key: this.#key, retriesMax: 0 })
      this.#result = await client.query({ sql: this.#sql, limit: ROWS }, { signal: abort.signal })
    } catch (error) {
      this.#result = null
      this.#isCanceled = abort.signal.aborted
      if (!this.#isCanceled) this.#error = { text: errorText(error), isOfKey: isOfKey(error) }
    } finally {
      this.#running = null
      this.#app.invalidate()
    }
  }

  /** Closing the connection ends the query on the server. */
  #cancel(): void {
    this.#running?.abort.abort()
  }

  #save(): void {
    if (this.#result !== null) saveAsCsv(this.#result)
  }
}

/** Whether another key would help. */
const isOfKey = (error: unknown): boolean =>
  error instanceof MintlakeError && (error.status === 401 || error.status === 403)
