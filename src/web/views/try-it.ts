// Submit an analysis by hand: a key, a form whose verdict is shown by a dry run as it is filled, then the submission itself.
import { html, nothing, type TemplateResult } from 'lit-html'
import { type DryRun, MintlakeError, type Receipt, type Submission } from '../../client/index.ts'
import { errorText, Fetched } from '../api.ts'
import type { App, View } from '../app.ts'
import { formatCount, formatPercent } from '../format.ts'
import { type Route, routeHref } from '../router.ts'
import { outcomeBadge } from './analyses-table.ts'

/** A dry run counts against the rate of submissions, ten a minute unless set otherwise: it waits until typing pauses. */
const DRY_RUN_PAUSE_MS = 1_500

interface EnumField {
  enum?: string[]
  items?: { enum: string[] }
}

/** The JSON Schema of a submission, as far as the form needs it. */
interface SubmissionSchema {
  properties: {
    sentiment: EnumField
    quant: { properties: Record<string, EnumField> }
  }
}

interface Draft {
  mint: string
  sentiment: string
  score: number
  summary: string
  quant: Record<string, unknown> & { riskFactors: string[]; buyPressure: number; volatilityScore: number }
}

const QUANT_CHOICES = [
  'riskLevel',
  'liquidityDepth',
  'holderConcentration',
  'trendDirection',
  'volumeProfile',
] as const

class TryView implements View {
  readonly title = 'Try it'
  readonly #app: App
  readonly #schema: Fetched<SubmissionSchema>
  readonly #draft: Draft
  #verdict: Receipt | DryRun | null = null
  #error: unknown = null
  #isBusy = false
  #pause: ReturnType<typeof setTimeout> | undefined

  constructor(app: App) {
    this.#app = app
    this.#draft = {
      mint: app.route.id,
      sentiment: 'neutral',
      score: 50,
      summary: '',
      quant: { riskFactors: [], buyPressure: 50, volatilityScore: 50 },
    }
    this.#schema = new Fetched(
      async () => (await app.client.schema()) as unknown as SubmissionSchema,
      () => app.invalidate(),
    )
    void this.#schema.refresh()
  }

  update(route: Route): boolean {
    return route.view === 'try' && route.id === this.#draft.mint
  }

  stop(): void {
    clearTimeout(this.#pause)
    this.#schema.stop()
  }

  render(): TemplateResult {
    return html`<section aria-labelledby="view-title">
      <header class="toolbar"><h1 id="view-title">Try it</h1></header>
      <div class="columns">
        ${this.#app.key === null ? this.#register() : this.#keyCard()}
        ${this.#verdictCard()}
      </div>
      ${this.#app.key === null ? nothing : this.#form()}
    </section>`
  }

  #register(): TemplateResult {
    return html`<form class="stack card" @submit=${(event: SubmitEvent) => this.#submitRegistration(event)}>
      <h2>1. A key</h2>
      <p class="note">It stays in this tab and is gone when you close it.</p>
      <label>Your agent's name <input name="name" required maxlength="64" autocomplete="off" /></label>
      <p><button class="primary" ?disabled=${this.#isBusy}>Get a key</button></p>
      <label>or one that you have <input name="key" type="password" autocomplete="off" @change=${(event: Event) => this.#takeKey((event.target as HTMLInputElement).value)} /></label>
    </form>`
  }

  #keyCard(): TemplateResult {
    return html`<section class="card">
      <h2>Your key</h2>
      <p class="mono">${this.#app.key?.slice(0, 8)}… <span class="note">kept in this tab alone</span></p>
      <button type="button" @click=${() => navigator.clipboard?.writeText(this.#app.key ?? '')}>Copy it</button>
      <button type="button" @click=${() => this.#app.setKey(null)}>Forget it</button>
    </section>`
  }

  #verdictCard(): TemplateResult {
    const verdict = this.#verdict
    const isDryRun = verdict !== null && 'dryRun' in verdict
    return html`<section class="card" aria-live="polite">
      <h2>Verdict</h2>
      ${this.#error === null ? nothing : this.#faults(this.#error)}
      ${
        verdict === null
          ? html`<p class="note">${this.#error === null ? 'Shown as soon as the form is complete: a dry run asks the server and stores nothing but the attempt.' : nothing}</p>`
          : html`<p>${outcomeBadge(verdict.outcome)} ${isDryRun ? 'if you submit this now' : 'submitted'}</p>
            <dl>
              <div><dt>XP ${isDryRun ? 'it would earn' : 'earned'}</dt><dd>${formatCount(verdict.xpEarned)}</dd></div>
              <div><dt>Largest deviation</dt><dd>${formatPercent(verdict.deviationPct, 2)} ${verdict.worstField ?? ''}</dd></div>
              ${isDryRun ? nothing : html`<div><dt>Your XP</dt><dd>${formatCount(verdict.xpTotal)}</dd></div>`}
            </dl>
            ${verdict.warning === undefined ? nothing : html`<p class="note">${verdict.warning}</p>`}`
      }
    </section>`
  }

  #faults(error: unknown): TemplateResult {
    const faults = error instanceof MintlakeError ? error.errors : []
    return html`<div class="field-error" role="alert">
      <p>${errorText(error)}</p>
      <ul>${faults.map(({ pointer, message, suggestion }) => html`<li><code>${pointer}</code> ${message}${suggestion === undefined ? '' : `; did you mean ${suggestion}?`}</li>`)}</ul>
    </div>`
  }

  #form(): TemplateResult {
    const schema = this.#schema.value ?? undefined
    if (schema === undefined) return html`<p class="note">${this.#schema.error ?? 'Loading the form'}</p>`
    const { sentiment, quant } = schema.properties
    const draft = this.#draft
    return html`<form class="stack card" @submit=${(event: Event) => this.#submit(event)} @input=${() => this.#changed()}>
      <h2>2. An analysis</h2>
      <label>Mint <input class="mono" required .value=${draft.mint} @input=${(event: InputEvent) => (draft.mint = inputText(event).trim())} />
        <a href=${routeHref('market')}>choose one from the market</a></label>
      <div class="columns">
        ${choice('Sentiment', sentiment.enum ?? [], draft.sentiment, (value) => (draft.sentiment = value))}
        ${slider('Score', draft.score, (value) => (draft.score = value))}
        ${slider('Buy pressure', draft.quant.buyPressure, (value) => (draft.quant.buyPressure = value))}
        ${slider('Volatility', draft.quant.volatilityScore, (value) => (draft.quant.volatilityScore = value))}
        ${QUANT_CHOICES.map((name) => {
          const words = quant.properties[name]?.enum ?? []
          draft.quant[name] ??= words[0]
          return choice(name, words, `${draft.quant[name]}`, (value) => (draft.quant[name] = value))
        })}
      </div>
      <fieldset><legend class="note">Risk factors, one to eight</legend>
        <div class="choices">${(quant.properties.riskFactors?.items?.enum ?? []).map(
          (factor) =>
            html`<label><input type="checkbox" .checked=${draft.quant.riskFactors.includes(factor)} @change=${() => this.#toggle(factor)} />${factor}</label>`,
        )}</div>
      </fieldset>
      <label>Summary, 50 characters or more (${draft.summary.length})
        <textarea rows="4" maxlength="2000" .value=${draft.summary} @input=${(event: InputEvent) => (draft.summary = inputText(event))}></textarea></label>
      <p><button class="primary" ?disabled=${this.#isBusy}>Submit</button></p>
    </form>`
  }

  #toggle(factor: string): void {
    const { quant } = this.#draft
    quant.riskFactors = quant.riskFactors.includes(factor)
      ? quant.riskFactors.filter((each) => each !== factor)
      : [...quant.riskFactors, factor]
    this.#changed()
  }

  #changed(): void {
    clearTimeout(this.#pause)
    this.#app.invalidate()
    const { mint, summary, quant } = this.#draft
    if (mint === '' || summary.trim().length < 50 || quant.riskFactors.length === 0) return
    this.#pause = setTimeout(() => void this.#send(true), DRY_RUN_PAUSE_MS)
  }

  async #submit(event: Event): Promise<void> {
    event.preventDefault()
    clearTimeout(this.#pause)
    await this.#send(false)
  }

  async #send(isDryRun: boolean): Promise<void> {
    await this.#attempt(async () => {
      // The form offers what the schema allows; the server checks it.
      const submission = this.#draft as unknown as Submission
      this.#verdict = await this.#app.client.submit(submission, { dryRun: isDryRun })
    })
  }

  async #submitRegistration(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const name = new FormData(event.target as HTMLFormElement).get('name')
    await this.#attempt(async () => {
      const { key } = await this.#app.client.register({ name: `${name}` })
      this.#app.setKey(key)
    })
  }

  #takeKey(key: string): void {
    if (key.trim() !== '') this.#app.setKey(key.trim())
  }

  async #attempt(act: () => Promise<void>): Promise<void> {
    this.#isBusy = true
    this.#error = null
    this.#app.invalidate()
    try {
      await act()
    } catch (error) {
      this.#error = error
      this.#verdict = null
    } finally {
      this.#isBusy = false
      this.#app.invalidate()
    }
  }
}

const inputText = (event: Event): string => (event.target as HTMLInputElement | HTMLTextAreaElement).value

const choice = (
  label: string,
  words: readonly string[],
  value: string,
  set: (value: string) => void,
): TemplateResult => html`
  <label>${label}
    <select .value=${value} @change=${(event: Event) => set((event.target as HTMLSelectElement).value)}>
      ${words.map((word) => html`<option ?selected=${word === value}>${word}</option>`)}
    </select>
  </label>`

const slider = (label: string, value: number, set: (value: number) => void): TemplateResult => html`
  <label>${label}: ${value}
    <input type="range" min="0" max="100" .value=${`${value}`} @input=${(event: InputEvent) => set(Number(inputText(event)))} />
  </label>`

export const tryView = (app: App): View => new TryView(app)
