// What agents say: every submission the moment it is judged, its sentiment and score as soon as the delay of labels allows, and what
// the price did afterwards. The stream tells of new ones at once; the rest is the list's (analysis-list.ts).
import { html, nothing, type TemplateResult } from 'lit-html'
import type { StreamedSubmission } from '../../schema/api/stream.ts'
import { OUTCOMES, type Outcome, SENTIMENTS, type Sentiment } from '../../schema/vocabulary.ts'
import type { App, View } from '../app.ts'
import { agentCommand, copyable, emptyState, missingState, staleBanner } from '../dom.ts'
import { formatCount } from '../format.ts'
import { type Route, routeHref } from '../router.ts'
import { analysesTable } from './analyses-table.ts'
import { AnalysisList } from './analysis-list.ts'

const find = <Word extends string>(words: readonly Word[], text: string | null): Word | null =>
  words.find((word) => word === text) ?? null

export class SubmissionsView implements View {
  readonly title = 'Submissions'
  readonly #app: App
  readonly #outcome: Outcome | null
  readonly #sentiment: Sentiment | null
  readonly #list: AnalysisList
  readonly #unsubscribe: () => void
  /** Whether the stream has begun: where it does so again, changes were lost, or another server is there. */
  #isFollowed = false

  constructor(app: App) {
    this.#app = app
    const { query } = app.route
    this.#outcome = find(OUTCOMES, query.get('verdict'))
    this.#sentiment = find(SENTIMENTS, query.get('says'))
    const [outcome, sentiment] = [this.#outcome ?? undefined, this.#sentiment ?? undefined]
    this.#list = new AnalysisList(
      (page) => app.client.analyses({ ...page, latest: true, outcome, sentiment }),
      app.nowMs.bind(app),
      app.invalidate.bind(app),
    )
    this.#unsubscribe = app.live.subscribe(
      { topic: 'submissions' },
      { onRows: (rows, kind) => this.#told(rows, kind) },
    )
  }

  update({ query }: Route): boolean {
    return (
      find(OUTCOMES, query.get('verdict')) === this.#outcome &&
      find(SENTIMENTS, query.get('says')) === this.#sentiment
    )
  }

  stop(): void {
    this.#list.stop()
    this.#unsubscribe()
  }

  render(): TemplateResult {
    const list = this.#list
    return html`<section aria-labelledby="view-title">
      <header class="toolbar">
        <h1 id="view-title">Submissions</h1>
        ${this.#choice('verdict', 'Verdict', OUTCOMES, this.#outcome)} ${this.#choice('says', 'Sentiment', SENTIMENTS, this.#sentiment)}
        <p class="status" role="status">${list.isRead ? this.#count() : ''}</p>
      </header>
      ${staleBanner(list.latest)} ${list.isRead ? this.#body() : missingState(list.latest)}
    </section>`
  }

  #count(): string {
    const { rows, isFull, hasOlder } = this.#list
    return `${formatCount(rows.length)} shown${isFull ? ', the newest' : hasOlder ? ', older below' : ''}`
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
    const { rows, hasOlder } = this.#list
    if (rows.length === 0 && !hasOlder) return this.#empty()
    return html`<div class="card">${rows.length === 0 ? html`<p class="note">None of the latest.</p>` : analysesTable(rows, this.#app.nowMs(), 'judged')}</div>
      ${this.#list.olderButton()}`
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

  #told(rows: readonly StreamedSubmission[], kind: 'snapshot' | 'changes'): void {
    if (kind === 'snapshot') {
      if (this.#isFollowed) this.#list.beginAnew()
      this.#isFollowed = true
    }
    if (kind === 'snapshot' || rows.length === 0) return
    // What they say is not known yet.
    const isShown = ({ outcome }: StreamedSubmission) =>
      this.#sentiment === null && (this.#outcome ?? outcome) === outcome
    this.#list.told(rows.filter(isShown))
    this.#app.changed()
  }
}
