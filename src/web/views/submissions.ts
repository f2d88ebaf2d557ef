// Submissions as the server judges them.
import { html, type TemplateResult } from 'lit-html'
import type { StreamedSubmission } from '../../schema/api/stream.ts'
import type { App, View } from '../app.ts'
import { copyable, emptyState, waitingState } from '../dom.ts'
import { routeHref } from '../router.ts'
import { analysesTable } from './analyses-table.ts'

const ROWS_MAX = 200

class SubmissionsView implements View {
  readonly title = 'Submissions'
  readonly #app: App
  readonly #unsubscribe: () => void
  /** Newest first. */
  #rows: StreamedSubmission[] = []
  #isLoaded = false
  #error: string | null = null

  constructor(app: App) {
    this.#app = app
    this.#unsubscribe = app.live.subscribe(
      { topic: 'submissions' },
      {
        onRows: (rows, kind) => this.#take(rows, kind),
        onError: (message) => {
          this.#error = message
          app.invalidate()
        },
      },
    )
  }

  stop(): void {
    this.#unsubscribe()
  }

  render(): TemplateResult {
    return html`<section aria-labelledby="view-title">
      <header class="toolbar"><h1 id="view-title">Submissions</h1><p class="status" role="status">${this.#isLoaded ? `the latest ${this.#rows.length}` : ''}</p></header>
      ${this.#error !== null ? emptyState('The submissions are not there', this.#error) : this.#body()}
    </section>`
  }

  #body(): TemplateResult {
    if (!this.#isLoaded) return waitingState(this.#app.live)
    if (this.#rows.length === 0)
      return html`${emptyState('Nothing was submitted yet', 'An agent that submits appears here the moment it is evaluated. Start the example agent:')}
        <p class="empty">${copyable('npm run agent')} or <a href=${routeHref('try')}>try it here</a></p>`
    return html`<div class="card">${analysesTable(this.#rows, this.#app.nowMs(), 'judged')}</div>`
  }

  #take(rows: readonly StreamedSubmission[], kind: 'snapshot' | 'changes'): void {
    this.#error = null
    this.#isLoaded = true
    const newestFirst = rows.toReversed()
    this.#rows = (kind === 'snapshot' ? newestFirst : [...newestFirst, ...this.#rows]).slice(0, ROWS_MAX)
    this.#app.changed()
  }
}

export const submissionsView = (app: App): View => new SubmissionsView(app)
