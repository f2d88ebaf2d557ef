// One token: its chart, its DataPoint, and what agents said of it.
import { html, nothing, type TemplateResult } from 'lit-html'
import type { AnalysisPage, DataPoint } from '../../../client/index.ts'
import { Fetched } from '../../api.ts'
import type { App, View } from '../../app.ts'
import { emptyState, isStale, keyRemedy, staleBanner, waitingState } from '../../dom.ts'
import { changeClass, formatAge, formatChange, formatPrice, sentence, symbolText } from '../../format.ts'
import { tokenPicture } from '../../picture.ts'
import { type Route, routeHref } from '../../router.ts'
import { analysesTable } from '../analyses-table.ts'
import { ChartPanel } from './chart-panel.ts'
import { creatorTexts, fieldGroups, holdersTable, securityFlags, tradesTable } from './datapoint-fields.ts'

const ANALYSES_EVERY_MS = 60_000
/** Figures of windows, such as the volume of a minute, change without a trade, which the stream does not tell: they are read so
 *  often where none came for so long. */
const RENEW_MS = 30_000
/** Analyses that are listed below the chart and marked on it. */
const ANALYSES = 100

export class TokenView implements View {
  readonly #app: App
  readonly #mint: string
  readonly #analyses: Fetched<AnalysisPage>
  #unsubscribe: () => void
  /** Ends the wait for a token that the market does not hold; null: nothing is waited for. */
  #stopAwaiting: (() => void) | null = null
  #panel: ChartPanel
  #point: DataPoint | null = null
  #isGone = false
  #error: { message: string; code: string } | null = null
  readonly #renewing = setInterval(() => void this.#renewPoint(), RENEW_MS)

  constructor(app: App) {
    this.#app = app
    this.#mint = app.route.id
    this.#panel = this.#createPanel()
    this.#analyses = new Fetched(
      () => app.client.analyses({ mint: this.#mint, limit: ANALYSES }),
      () => {
        this.#panel.setAnalyses(this.#analyses.value?.data ?? [])
        app.invalidate()
      },
      ANALYSES_EVERY_MS,
    )
    this.#unsubscribe = this.#followToken()
  }

  /** Isolated: a symbol may turn the direction of what follows it. */
  get title(): string {
    if (this.#point === null) return 'Token'
    const { symbol, priceUsd } = this.#point
    return `\u2068${symbolText(symbol, this.#mint)}\u2069 ${formatPrice(priceUsd)}`
  }

  /** Another timeframe, scale or value needs another chart, and nothing else of the view. */
  update({ id, query }: Route): boolean {
    if (id !== this.#mint) return false
    if (!this.#panel.isOf(query)) this.#renewPanel()
    return true
  }

  stop(): void {
    this.#stopAwaiting?.()
    clearInterval(this.#renewing)
    this.#unsubscribe()
    this.#analyses.stop()
    this.#panel.stop()
  }

  render(): TemplateResult {
    const point = this.#point
    if (point === null) return this.#missing()
    const nowMs = this.#app.nowMs()
    return html`<section class="token" aria-labelledby="view-title">
      ${this.#header(point, nowMs)}
      ${this.#isGone ? html`<p class="banner floats" role="status">The market holds this token no longer: it made room for more active ones, or the server began anew. What you see is the last that was known.</p>` : staleBanner(this.#analyses, 'The list of analyses was')}
      ${this.#panel.render(nowMs)}
      ${fieldGroups(point, nowMs)}
      ${this.#analysesCard(nowMs)}
      <div class="groups wide">
        <div class="pile">${securityFlags(point, nowMs)} ${creatorTexts(point)}</div>
        ${tradesTable(point, nowMs)} ${holdersTable(point, nowMs)}
      </div>
    </section>`
  }

  drawn(): void {
    this.#panel.drawn()
  }

  /** Before the token's first data. */
  #missing(): TemplateResult {
    if (this.#error === null)
      return html`<section class="token" aria-busy="true"><h1 id="view-title">Token</h1><p class="mono">${this.#mint}</p>${waitingState(this.#app.live)}</section>`
    const { message, code } = this.#error
    const title = code === 'token_not_found' ? 'This token is not here' : 'This token cannot be followed now'
    const later = this.#stopAwaiting === null ? '' : ' It appears here as soon as the market has it.'
    return html`<section class="token"><h1 id="view-title">Token</h1>
      ${emptyState(title, sentence(message) + later)}
      <p class="empty"><a href=${routeHref('market')}>Choose one from the market</a></p></section>`
  }

  #header(point: DataPoint, nowMs: number): TemplateResult {
    const { symbol, name, priceUsd, priceChange1h, snapshotAt, isLive, viewerCount } = point
    return html`<header class="token-head">
      ${tokenPicture(this.#mint, point.imageUri)}
      <div class="token-names"><h1 id="view-title" title=${symbol}>${symbolText(symbol, this.#mint)}</h1><p title=${name}>${name}</p></div>
      <div class="price-now"><b>${formatPrice(priceUsd)}</b><span class=${changeClass(priceChange1h)}>${formatChange(priceChange1h)} 1h</span></div>
      ${isLive ? html`<span class="badge live">live${viewerCount === null ? '' : `, ${viewerCount} watch`}</span>` : nothing}
      <p class="note">as of ${formatAge(snapshotAt, nowMs)} ago · <a href=${routeHref('try', this.#mint)}>submit an analysis</a></p>
    </header>`
  }

  #analysesCard(nowMs: number): TemplateResult {
    const { value, error, isOfKey } = this.#analyses
    return html`<section class="card">
      <h2>Analyses of this token</h2>
      <div class="analyses-room ${isStale(this.#analyses) ? 'old' : ''}">${
        value === null
          ? html`<p class="note">${error ?? 'Loading'} ${isOfKey ? keyRemedy() : nothing}</p>`
          : value.data.length === 0
            ? html`<p class="note">None yet: the first one earns a bonus. <a href=${routeHref('try', this.#mint)}>Submit it.</a></p>`
            : analysesTable(value.data, nowMs, 'ofToken')
      }</div>
    </section>`
  }

  #followToken(): () => void {
    return this.#app.live.subscribe(
      { topic: 'token', mint: this.#mint },
      {
        onRows: (rows) => {
          const newest = rows.at(-1)
          if (newest !== undefined) this.#take(newest)
        },
        onLeft: () => {
          this.#isGone = true
          this.#app.invalidate()
        },
        onError: (message, code) => this.#fail(message, code),
      },
    )
  }

  #take(point: DataPoint): void {
    this.#point = point
    this.#panel.setPoint(point)
    this.#isGone = false
    this.#error = null
    this.#app.changed()
  }

  async #renewPoint(): Promise<void> {
    const before = this.#point
    if (before === null || this.#isGone || document.hidden || this.#app.live.state !== 'live') return
    if (this.#app.nowMs() - before.snapshotAt < RENEW_MS) return
    try {
      const point = await this.#app.client.datapoint(this.#mint)
      if (this.#point === before && !this.#isGone) this.#take(point)
    } catch {
      // The page says how old its figures are, and asks again.
    }
  }

  #createPanel(): ChartPanel {
    return new ChartPanel(this.#app, this.#mint, (message, code) => this.#fail(message, code))
  }

  #renewPanel(): void {
    this.#panel.stop()
    this.#panel = this.#createPanel()
    this.#panel.setAnalyses(this.#analyses.value?.data ?? [])
    if (this.#point !== null) this.#panel.setPoint(this.#point)
  }

  #fail(message: string, code: string): void {
    this.#error = { message, code }
    if (code === 'token_not_found') {
      this.#isGone = true
      this.#awaitToken()
    }
    this.#app.invalidate()
  }

  /** Channels of a token are refused while the market does not hold it; a window of it alone tells when it does. */
  #awaitToken(): void {
    this.#stopAwaiting ??= this.#app.live.subscribeWindow(
      { mints: [this.#mint], limit: 1 },
      {
        onWindow: ({ total = 0 }) => {
          if (total > 0) this.#beginAnew()
        },
        onOpen: () => {},
        onError: () => {},
      },
    )
  }

  #beginAnew(): void {
    this.#stopAwaiting?.()
    this.#stopAwaiting = null
    this.#error = null
    this.#unsubscribe()
    this.#unsubscribe = this.#followToken()
    this.#renewPanel()
    void this.#analyses.refresh()
    this.#app.invalidate()
  }
}
