// Submit an analysis by hand: a key, a form whose verdict is shown by a dry run as it is filled, then the submission itself.
import { html, nothing, type TemplateResult } from 'lit-html'
import { type DryRun, MintlakeError, type Quant, type Receipt, type Submission } from '../../client/index.ts'
import { newIdempotencyKey } from '../../client/submit.ts'
import { keysOf } from '../../lib/record.ts'
import {
  HOLDER_CONCENTRATIONS,
  LIQUIDITY_DEPTHS,
  RISK_FACTORS,
  RISK_FACTORS_MAX,
  RISK_FACTORS_MIN,
  RISK_LEVELS,
  type RiskFactor,
  SENTIMENTS,
  SUMMARY_CODE_POINTS_MAX,
  SUMMARY_CODE_POINTS_MIN,
  TREND_DIRECTIONS,
  VOLUME_PROFILES,
} from '../../schema/vocabulary.ts'
import { errorText } from '../api.ts'
import type { App, View } from '../app.ts'
import { enteredText } from '../dom.ts'
import { formatPercent, formatXp } from '../format.ts'
import { type Route, routeHref } from '../router.ts'
import { outcomeBadge } from './analyses-table.ts'
import { OwnKey } from './own-key.ts'

/** A dry run counts against the rate of submissions, ten a minute unless set otherwise: it waits until typing pauses. */
const DRY_RUN_PAUSE_MS = 1_500

type QuantChoice = Exclude<keyof Quant, 'riskFactors' | 'buyPressure' | 'volatilityScore'>

/** The choices of `quant` that are one word of several. */
const QUANT_CHOICES: { readonly [Name in QuantChoice]: readonly Quant[Name][] } = {
  riskLevel: RISK_LEVELS,
  liquidityDepth: LIQUIDITY_DEPTHS,
  holderConcentration: HOLDER_CONCENTRATIONS,
  trendDirection: TREND_DIRECTIONS,
  volumeProfile: VOLUME_PROFILES,
}

/** What is filled in, while the page is open: somebody who looks for a mint in the market comes back to it. */
const draft: Submission = {
  mint: '',
  sentiment: 'neutral',
  score: 50,
  summary: '',
  quant: {
    riskFactors: [],
    buyPressure: 50,
    volatilityScore: 50,
    riskLevel: 'medium',
    liquidityDepth: 'moderate',
    holderConcentration: 'moderate',
    trendDirection: 'sideways',
    volumeProfile: 'stable',
  },
}

/** How the draft is sent. The key stays while nobody knows whether it was stored: sent again, it is stored once all the same. */
const sending = { idempotencyKey: newIdempotencyKey(), isInDoubt: false }

function renewIdempotencyKey(): void {
  sending.idempotencyKey = newIdempotencyKey()
  sending.isInDoubt = false
}

/** How the server counts a summary. */
const codePoints = (text: string): number => [...text.trim()].length

/** `a_long_name`, which may go on in another line after each `_`. */
const breakable = (name: string): unknown[] =>
  name.split('_').map((word, at) => (at === 0 ? word : html`_<wbr />${word}`))

export class TryView implements View {
  readonly title = 'Try it'
  readonly #app: App
  readonly #draft = draft
  readonly #ownKey: OwnKey
  #verdict: Receipt | DryRun | null = null
  #error: unknown = null
  /** Counts what is asked, and changes of the form, after which an answer is out of date. */
  #asked = 0
  #isSubmitting = false
  #pause: ReturnType<typeof setTimeout> | undefined

  constructor(app: App) {
    this.#app = app
    const { id } = app.route
    if (id !== '' && id !== this.#draft.mint) {
      this.#draft.mint = id
      renewIdempotencyKey()
    }
    this.#ownKey = new OwnKey(app, () => this.#changed())
    this.#ask()
  }

  update({ id }: Route): boolean {
    return id === this.#draft.mint
  }

  stop(): void {
    clearTimeout(this.#pause)
    this.#ownKey.stop()
  }

  render(): TemplateResult {
    return html`<section aria-labelledby="view-title">
      <header class="toolbar"><h1 id="view-title">Try it</h1></header>
      <div class="beside">
        <div class="pile">${this.#ownKey.render()} ${this.#form()}</div>
        ${this.#verdictCard()}
      </div>
    </section>`
  }

  #verdictCard(): TemplateResult {
    const verdict = this.#verdict
    const isDryRun = verdict !== null && 'dryRun' in verdict
    return html`<section class="card follows" aria-live="polite">
      <h2>Verdict</h2>
      ${this.#error === null ? nothing : this.#faults(this.#error)}
      ${
        verdict === null
          ? html`<p class="note">${this.#error === null ? 'Shown as soon as the form is complete: a dry run asks the server and stores nothing but the attempt.' : nothing}</p>`
          : html`<p>${outcomeBadge(verdict.outcome)} ${isDryRun ? 'if you submit this now' : 'submitted'}</p>
            <dl>
              <div><dt>XP ${isDryRun ? 'it would earn' : 'earned'}</dt><dd>${formatXp(verdict.xpEarned)}</dd></div>
              <div><dt>Largest deviation</dt><dd>${formatPercent(verdict.deviationPct, 2)} ${verdict.worstField ?? ''}</dd></div>
              ${isDryRun ? nothing : html`<div><dt>Your XP</dt><dd>${formatXp(verdict.xpTotal)}</dd></div>`}
            </dl>
            ${verdict.warning === undefined ? nothing : html`<p class="note">${verdict.warning}</p>`}`
      }
    </section>`
  }

  #faults(error: unknown): TemplateResult {
    const faults = error instanceof MintlakeError ? error.errors : []
    return html`<div class="field-error" role="alert">
      <p>${errorText(error)} ${sending.isInDoubt ? 'The analysis may have been stored: press Submit again to see, it is stored once.' : nothing}</p>
      <ul>${faults.map(({ pointer, message, suggestion }) => html`<li><code>${pointer}</code> ${message}${suggestion === undefined ? '' : `; did you mean ${suggestion}?`}</li>`)}</ul>
    </div>`
  }

  #form(): TemplateResult {
    const draft = this.#draft
    const { quant } = draft
    return html`<form class="stack card" @submit=${(event: Event) => this.#submit(event)} @input=${() => this.#changed()}>
      <h2>2. An analysis</h2>
      <label>Mint <input class="mono" required .value=${draft.mint} @input=${(event: InputEvent) => (draft.mint = enteredText(event).trim())} />
        <a href=${routeHref('market')}>choose one from the market</a></label>
      <div class="columns">
        ${choice('Sentiment', SENTIMENTS, draft.sentiment, (word) => (draft.sentiment = word))}
        ${slider('Score', draft.score, (value) => (draft.score = value))}
        ${slider('Buy pressure', quant.buyPressure, (value) => (quant.buyPressure = value))}
        ${slider('Volatility', quant.volatilityScore, (value) => (quant.volatilityScore = value))}
        ${keysOf(QUANT_CHOICES).map((name) => this.#quantChoice(name))}
      </div>
      <fieldset><legend class="note">Risk factors, ${RISK_FACTORS_MIN} to ${RISK_FACTORS_MAX}; ${quant.riskFactors.length} chosen</legend>
        <div class="choices">${RISK_FACTORS.map(
          (factor) =>
            html`<label><input type="checkbox" name=${factor} .checked=${quant.riskFactors.includes(factor)} @change=${() => this.#toggle(factor)} /><span>${breakable(factor)}</span></label>`,
        )}</div>
      </fieldset>
      <label>Summary, ${SUMMARY_CODE_POINTS_MIN} characters or more (${codePoints(draft.summary)})
        <textarea name="summary" rows="4" maxlength=${SUMMARY_CODE_POINTS_MAX} .value=${draft.summary} @input=${(event: InputEvent) => (draft.summary = enteredText(event))}></textarea></label>
      <p class="actions"><button class="primary" ?disabled=${this.#isSubmitting || this.#app.key === null}>Submit</button>
        ${this.#app.key === null ? html`<span class="note">A key comes first.</span>` : nothing}</p>
    </form>`
  }

  #quantChoice<Name extends QuantChoice>(name: Name): TemplateResult {
    const { quant } = this.#draft
    return choice(wordsOf(name), QUANT_CHOICES[name], quant[name], (word) => {
      quant[name] = word
    })
  }

  #toggle(factor: RiskFactor): void {
    const { quant } = this.#draft
    quant.riskFactors = quant.riskFactors.includes(factor)
      ? quant.riskFactors.filter((each) => each !== factor)
      : [...quant.riskFactors, factor]
    this.#changed()
  }

  /** A verdict is of one form and one key: of what is there now, another has to be asked for. */
  #changed(): void {
    renewIdempotencyKey()
    this.#show(null, null)
    this.#ask()
  }

  /** Asks for the verdict of what is filled in, once that is complete and typing pauses. */
  #ask(): void {
    clearTimeout(this.#pause)
    this.#asked++
    this.#app.invalidate()
    const { mint, summary, quant } = this.#draft
    if (
      this.#app.key === null ||
      mint === '' ||
      codePoints(summary) < SUMMARY_CODE_POINTS_MIN ||
      quant.riskFactors.length < RISK_FACTORS_MIN
    )
      return
    this.#pause = setTimeout(() => void this.#send(true), DRY_RUN_PAUSE_MS)
  }

  async #submit(event: Event): Promise<void> {
    event.preventDefault()
    clearTimeout(this.#pause)
    this.#isSubmitting = true
    await this.#send(false)
    this.#isSubmitting = false
    this.#ownKey.refreshStanding()
    this.#app.invalidate()
  }

  /** What is answered of a form that has changed since is not shown, unless it was submitted. */
  async #send(isDryRun: boolean): Promise<void> {
    const asked = ++this.#asked
    const isShown = () => !isDryRun || asked === this.#asked
    const { idempotencyKey } = sending
    this.#error = null
    this.#app.invalidate()
    try {
      const options = isDryRun ? { dryRun: true as const } : { idempotencyKey }
      const verdict = await this.#app.client.submit(this.#draft, options)
      if (!isDryRun && idempotencyKey === sending.idempotencyKey) renewIdempotencyKey()
      if (isShown()) this.#show(verdict, null)
    } catch (error) {
      if (isShown()) this.#show(null, error)
      // Of a form that has changed since, another key is there already.
      if (isDryRun || idempotencyKey !== sending.idempotencyKey) return
      if (isInDoubt(error)) sending.isInDoubt = true
      // A refusal of one that is in doubt says nothing of what came before: the key stays until a verdict.
      else if (!sending.isInDoubt) renewIdempotencyKey()
    } finally {
      this.#app.invalidate()
    }
  }

  #show(verdict: Receipt | DryRun | null, error: unknown): void {
    this.#verdict = verdict
    this.#error = error
  }
}

/** Whether a submission may have been stored although this came of it: the answer was lost, or is a proxy's. */
const isInDoubt = (error: unknown): boolean =>
  !(error instanceof MintlakeError) ||
  error.problem === null ||
  error.problem.mayBeStored === true ||
  error.code === 'idempotency_in_flight'

/** `riskLevel` as words. */
const wordsOf = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replace(/^./, (first) => first.toUpperCase())

const choice = <Word extends string>(
  label: string,
  words: readonly Word[],
  chosen: Word,
  set: (word: Word) => void,
): TemplateResult => html`
  <label>${label}
    <select .value=${chosen} @change=${(event: Event) => chooseWord(words, event, set)}>
      ${words.map((word) => html`<option ?selected=${word === chosen}>${word}</option>`)}
    </select>
  </label>`

function chooseWord<Word extends string>(
  words: readonly Word[],
  { target }: Event,
  set: (word: Word) => void,
): void {
  const word = target instanceof HTMLSelectElement ? words.find((each) => each === target.value) : undefined
  if (word !== undefined) set(word)
}

const slider = (label: string, value: number, set: (value: number) => void): TemplateResult => html`
  <label>${label}: ${value}
    <input type="range" min="0" max="100" .value=${`${value}`} @input=${(event: InputEvent) => set(Number(enteredText(event)))} />
  </label>`
