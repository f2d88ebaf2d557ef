// The agent's key of this tab: got, checked when it is entered, copied, forgotten; beside it where the agent stands, with its
// strikes and a suspension, which refuses all that it submits.
import { html, nothing, type TemplateResult } from 'lit-html'
import type { Standing } from '../../client/index.ts'
import { errorText, Fetched, request, requireSendable } from '../api.ts'
import type { App } from '../app.ts'
import { copyable } from '../dom.ts'
import { formatCount, formatTime, formatXp } from '../format.ts'

const STANDING_EVERY_MS = 60_000
const PROFILE_PATH = '/api/v1/agent/profile'

export class OwnKey {
  readonly #app: App
  readonly #onKey: () => void
  /** Null: there is no key. */
  #standing: Fetched<Standing> | null = null
  #error: string | null = null
  #isBusy = false
  /** Somebody has gone to another view. */
  #isStopped = false
  /** Counts what is attempted: of two keys that are checked at once the one entered last is taken. */
  #attempts = 0

  /** @param onKey called when there is another key, or none any more */
  constructor(app: App, onKey: () => void) {
    this.#app = app
    this.#onKey = onKey
    this.#followStanding()
  }

  stop(): void {
    this.#isStopped = true
    this.#standing?.stop()
  }

  /** After a submission the agent may stand elsewhere. */
  refreshStanding(): void {
    void this.#standing?.refresh()
  }

  render(): TemplateResult {
    const { key } = this.#app
    return key === null ? this.#register() : this.#card(key)
  }

  #register(): TemplateResult {
    return html`<form class="stack card" @submit=${(event: SubmitEvent) => this.#submitRegistration(event)}>
      <h2>1. A key</h2>
      <p class="note">It stays in this tab and is gone when you close it.</p>
      <label>Your agent's name <input name="name" required maxlength="64" autocomplete="off" /></label>
      <p><button class="primary" ?disabled=${this.#isBusy}>Get a key</button></p>
      <label>or one that you have <input name="key" type="password" autocomplete="off" @change=${(event: Event) => this.#enter((event.target as HTMLInputElement).value.trim())} /></label>
      ${this.#error === null ? nothing : html`<p class="field-error" role="alert">${this.#error}</p>`}
    </form>`
  }

  #card(key: string): TemplateResult {
    return html`<section class="card">
      <h2>1. Your key</h2>
      <div class="own-key">${copyable(key)} <button type="button" @click=${() => this.#use(null)}>Forget it</button></div>
      <p class="note">It is kept in this tab alone.</p>
      ${this.#standing === null ? nothing : this.#standingOf(this.#standing)}
    </section>`
  }

  #standingOf({ value, error, isOfKey }: Fetched<Standing>): TemplateResult {
    if (isOfKey) return html`<p class="field-error" role="alert">${error} Forget it, and take another.</p>`
    return html`<dl>
        <div><dt>XP</dt><dd>${formatXp(value?.xp)}</dd></div>
        <div><dt title="Rejected submissions that still count towards a suspension">Strikes</dt><dd>${formatCount(value?.strikes)}</dd></div>
      </dl>
      ${value?.banned ? html`<p class="field-error" role="alert">${this.#banText(value)}</p>` : nothing}
      ${error === null ? nothing : html`<p class="note">${error}</p>`}`
  }

  #banText({ bannedUntil }: Standing): string {
    return bannedUntil === null
      ? 'This agent is banned: nothing that it submits is accepted.'
      : `This agent is suspended until ${formatTime(bannedUntil, this.#app.nowMs())}: nothing that it submits before is accepted.`
  }

  #followStanding(): void {
    this.#standing?.stop()
    this.#standing = null
    if (this.#app.key === null) return
    this.#standing = new Fetched(
      () => this.#app.client.standing(),
      () => this.#app.invalidate(),
      STANDING_EVERY_MS,
    )
  }

  #use(key: string | null): void {
    this.#app.setKey(key)
    if (this.#isStopped) return
    this.#followStanding()
    this.#onKey()
  }

  async #submitRegistration(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const name = new FormData(event.target as HTMLFormElement).get('name')
    await this.#attempt(async () => (await this.#app.client.register({ name: `${name}` })).key)
  }

  /** A key that is refused would be refused in every view. */
  async #enter(key: string): Promise<void> {
    if (key === '') return
    await this.#attempt(async () => {
      requireSendable(key)
      await request(PROFILE_PATH, { key })
      return key
    })
  }

  /** @param get a key, which is used unless another was asked for meanwhile */
  async #attempt(get: () => Promise<string>): Promise<void> {
    const attempt = ++this.#attempts
    this.#isBusy = true
    this.#error = null
    this.#app.invalidate()
    try {
      const key = await get()
      if (attempt === this.#attempts) this.#use(key)
    } catch (error) {
      if (attempt === this.#attempts) this.#error = errorText(error)
    } finally {
      this.#isBusy = false
      this.#app.invalidate()
    }
  }
}
