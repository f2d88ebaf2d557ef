// What agents say: every submission the moment it is judged, its sentiment and score as soon as the delay of labels allows, and what
// the price did afterwards. The stream tells of new ones; the list has their labels, and the older ones.
import { html, nothing, type TemplateResult } from 'lit-html'
import type { AnalysisPage, ListedAnalysis } from '../../client/index.ts'
import type { StreamedSubmission } from '../../schema/api/stream.ts'
import { OUTCOMES, type Outcome, SENTIMENTS, type Sentiment } from '../../schema/vocabulary.ts'
import { Fetched } from '../api.ts'
import type { App, View } from '../app.ts'
import { agentCommand, copyable, emptyState, missingState, staleBanner } from '../dom.ts'
import { formatCount } from '../format.ts'
import { type Route, routeHref } from '../router.ts'
import { analysesTable, type ShownAnalysis } from './analyses-table.ts'

/** Rows of a page, and of all pages together: the oldest beyond are not shown. */
const PAGE_ROWS = 50
const ROWS_MAX = 2_000
/** The list is read again so often, and sooner after a new submission: labels and outcomes come later than it. */
const EVERY_MS = 30_000
const AFTER_NEW_MS = 5_000
/** Where a filter takes little, so many pages are read for one. */
const PAGES_SEARCHED_MAX = 5

const find = <Word extends string>(words: readonly Word[], text: string | null): Word | null =>
  words.find((word) => word === text) ?? null

export class SubmissionsView implements View {
  readonly title = 'Submissions'
  readonly #app: App
  readonly #outcome: Outcome | null
  readonly #sentiment: Sentiment | null
  readonly #latest: Fetched<AnalysisPage>
  readonly #unsubscribe: () => void
  /** By identity: what the list has, and what the stream told since. */
  readonly #rows = new Map<string, ShownAnalysis>()
  /** Where older ones begin; undefined before the first page, null: there are none. */
  #cursor: string | null | undefined
  #isLoadingOlder = false
  #readSoon: ReturnType<typeof setTimeout> | undefined

  constructor(app: App) {
    this.#app = app
    const { query } = app.route
    this.#outcome = find(OUTCOMES, query.get('verdict'))
    this.#sentiment = find(SENTIMENTS, query.get('says'))
    this.#latest = new Fetched(() => this.#read(), app.invalidate.bind(app))
    this.#latest.start(EVERY_MS)
    this.#unsubscribe = app.live.subscribe(
      { topic: 'submissions' },
      { onRows: (rows, kind) => this.#told(rows, kind) },
    )
  }

  update({ view, query }: Route): boolean {
    return (
      view === 'submissions' &&
      find(OUTCOMES, query.get('verdict')) === this.#outcome &&
      find(SENTIMENTS, query.get('says')) === this.#sentiment
    )
  }

  stop(): void {
    this.#latest.stop()
    this.#unsubscribe()
    clearTimeout(this.#readSoon)
  }

  render(): TemplateResult {
    const count = this.#rows.size
    return html`<section aria-labelledby="view-title">
      <header class="toolbar">
        <h1 id="view-title">Submissions</h1>
        ${this.#choice('verdict', 'Verdict', OUTCOMES, this.#outcome)} ${this.#choice('says', 'Sentiment', SENTIMENTS, this.#sentiment)}
        <p class="status" role="status">${this.#cursor === undefined ? '' : `${formatCount(count)} shown${this.#cursor === null ? '' : ', older below'}`}</p>
      </header>
      ${staleBanner(this.#latest)} ${this.#cursor === undefined ? missingState(this.#latest) : this.#body()}
    </section>`
  }

  #choice(name: string, label: string, words: readonly string[], chosen: string | null): TemplateResult {
    const query = { verdict: this.#outcome ?? '', says: this.#sentiment ?? '' }
    return html`<nav class="tabs" aria-label=${label}>
      ${['', ...words].map(
        (word) =>
          html`<a href=${routeHref('submissions', '', { ...query, [name]: word })} aria-current=${word === (chosen ?? '') ? 'page' : nothing}>${word || `any ${label.toLowerCase()}`}</a>`,
      )}
    </nav>`
  }

  #body(): TemplateResult {
    const rows = this.#newestFirst()
    if (rows.length === 0 && this.#cursor === null) return this.#empty()
    return html`<div class="card">${rows.length === 0 ? html`<p class="note">None of the latest.</p>` : analysesTable(rows, this.#app.nowMs(), 'judged')}</div>
      ${this.#cursor === null ? nothing : html`<p class="below"><button type="button" ?disabled=${this.#isLoadingOlder} @click=${() => void this.#loadOlder()}>Older</button></p>`}`
  }

  #empty(): TemplateResult {
    if (this.#outcome !== null || this.#sentiment !== null)
      return html`${emptyState(
        'No submission matches',
        this.#sentiment === null
          ? `None of them is ${this.#outcome}.`
          : 'Labels of others are withheld at first: a sentiment can be asked for once they are shown.',
      )}
        <p class="empty"><a href=${routeHref('submissions')}>Show all</a></p>`
    return html`${emptyState('Nothing was submitted yet', 'An agent that submits appears here the moment it is evaluated. Start the example agent:')}
      <p class="empty">${copyable(agentCommand())} or <a href=${routeHref('try')}>try it here</a></p>`
  }

  #newestFirst(): ShownAnalysis[] {
    return [...this.#rows.values()].toSorted(
      (a, b) => b.createdAt - a.createdAt || (a.analysisId > b.analysisId ? -1 : 1),
    )
  }

  #told(rows: readonly StreamedSubmission[], kind: 'snapshot' | 'changes'): void {
    if (kind === 'snapshot' || rows.length === 0) return
    // What they say is not known yet.
    if (this.#sentiment === null)
      for (const row of rows)
        if ((this.#outcome ?? row.outcome) === row.outcome && !this.#rows.has(row.analysisId))
          this.#rows.set(row.analysisId, row)
    this.#readSoon ??= setTimeout(() => {
      this.#readSoon = undefined
      void this.#latest.refresh()
    }, AFTER_NEW_MS)
    this.#app.changed()
  }

  async #read(): Promise<AnalysisPage> {
    const page = await this.#page(undefined)
    this.#take(page.data)
    this.#cursor ??= page.meta.nextCursor
    return page
  }

  #take(rows: readonly ListedAnalysis[]): void {
    for (const row of rows) this.#rows.set(row.analysisId, row)
    for (const { analysisId } of this.#newestFirst().slice(ROWS_MAX)) this.#rows.delete(analysisId)
  }

  #page(cursor: string | undefined): Promise<AnalysisPage> {
    const [outcome, sentiment] = [this.#outcome ?? undefined, this.#sentiment ?? undefined]
    return this.#app.client.analyses({ latest: true, outcome, sentiment, cursor, limit: PAGE_ROWS })
  }

  async #loadOlder(): Promise<void> {
    this.#isLoadingOlder = true
    this.#app.invalidate()
    try {
      for (let pages = 0, taken = 0; pages < PAGES_SEARCHED_MAX && taken === 0; pages++) {
        if (this.#cursor == null) break
        const { data, meta } = await this.#page(this.#cursor)
        this.#take(data)
        taken = data.length
        this.#cursor = meta.nextCursor
      }
    } catch {
      // The button stays, so that it can be tried again.
    } finally {
      this.#isLoadingOlder = false
      this.#app.invalidate()
    }
  }
}
