// One token: its bars, its DataPoint, and what agents said of it.
import { html, nothing, type TemplateResult } from 'lit-html'
import { createRef, type Ref, ref } from 'lit-html/directives/ref.js'
import type { AnalysisPage, Bar, DataPoint } from '../../../client/index.ts'
import type { ToldGap } from '../../../schema/event.ts'
import { TIMEFRAME_MS, TIMEFRAMES, type Timeframe } from '../../../schema/timeframe.ts'
import { Fetched } from '../../api.ts'
import type { App, View } from '../../app.ts'
import { emptyState, waitingState } from '../../dom.ts'
import { changeClass, formatAge, formatChange, formatPrice } from '../../format.ts'
import { gapReason, gapTimes, touches } from '../../gaps.ts'
import { tokenPicture } from '../../picture.ts'
import { type Route, routeHref } from '../../router.ts'
import { onThemeChange } from '../../theme.ts'
import { analysesTable } from '../analyses-table.ts'
import { creatorTexts, fieldGroups, holdersTable, securityFlags, tradesTable } from './datapoint-fields.ts'
import type { TokenChart } from './token-chart.ts'

const DEFAULT_TF: Timeframe = '1m'

const toTimeframe = (text: string | null): Timeframe => TIMEFRAMES.find((tf) => tf === text) ?? DEFAULT_TF
const BARS = 500
const ANALYSES_EVERY_MS = 60_000
/** Gaps that are told in words; all are marked. */
const GAPS_TOLD_MAX = 3

class TokenView implements View {
  readonly #app: App
  readonly #mint: string
  readonly #tf: Timeframe
  readonly #chartElement: Ref<HTMLElement> = createRef()
  readonly #analyses: Fetched<AnalysisPage>
  readonly #unsubscribes: (() => void)[]
  #point: DataPoint | null = null
  #bars: Bar[] = []
  #hasBars = false
  #chart: TokenChart | null = null
  #isMakingChart = false
  #isStopped = false
  #needsReplace = false
  /** Gaps of these bars that the page was not told; null before they were asked for. */
  #olderGaps: readonly ToldGap[] | null = null
  #gapChanges = -1
  #isGone = false
  #error: string | null = null

  constructor(app: App) {
    this.#app = app
    this.#mint = app.route.id
    this.#tf = toTimeframe(app.route.query.get('tf'))
    this.#analyses = new Fetched(
      () => app.client.analyses({ mint: this.#mint, limit: 20 }),
      () => app.invalidate(),
    )
    this.#analyses.start(ANALYSES_EVERY_MS)
    const recolour = onThemeChange(() => this.#chart?.recolour())
    this.#unsubscribes = [this.#followToken(), this.#followBars(), recolour]
  }

  get title(): string {
    return this.#point === null ? 'Token' : `${this.#point.symbol} ${formatPrice(this.#point.priceUsd)}`
  }

  update(route: Route): boolean {
    return (
      route.view === 'token' && route.id === this.#mint && toTimeframe(route.query.get('tf')) === this.#tf
    )
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe()
    this.#analyses.stop()
    this.#isStopped = true
    this.#chart?.remove()
  }

  render(): TemplateResult {
    const point = this.#point
    if (point === null)
      return this.#error === null
        ? html`<section class="token" aria-busy="true"><h1 id="view-title">Token</h1><p class="mono">${this.#mint}</p>${waitingState(this.#app.live)}</section>`
        : html`<section class="token"><h1 id="view-title">Token</h1>${html`${emptyState('This token is not here', this.#error)}<p class="empty"><a href=${routeHref('market')}>Choose one from the market</a></p>`}</section>`
    const nowMs = this.#app.nowMs()
    return html`<section class="token" aria-labelledby="view-title">
      ${this.#header(point, nowMs)}
      ${this.#isGone ? html`<p class="banner floats" role="status">The market holds this token no longer: it made room for more active ones. What you see is the last that was known.</p>` : nothing}
      <div class="card chart-card">
        <nav class="tabs" aria-label="Timeframe">
          ${TIMEFRAMES.map((tf) => html`<a href=${routeHref('token', this.#mint, { tf: tf === DEFAULT_TF ? '' : tf })} aria-current=${tf === this.#tf ? 'page' : nothing}>${tf}</a>`)}
        </nav>
        <div class="chart-room">
          <div class="chart" role="img" aria-label=${this.#chartLabel()} ${ref(this.#chartElement)}></div>
          ${this.#hasBars && this.#bars.length === 0 ? html`<p class="note">No trade yet in this timeframe.</p>` : nothing}
        </div>
        ${this.#gapsTold(nowMs)}
        <p class="note">Charts by
          <a href="https://www.tradingview.com/" target="_blank" rel="noopener noreferrer">TradingView Lightweight Charts™</a>
        </p>
      </div>
      ${fieldGroups(point)}
      ${this.#analysesCard(nowMs)}
      <div class="groups wide">
        <div class="pile">${securityFlags(point, nowMs)} ${creatorTexts(point)}</div>
        ${tradesTable(point, nowMs)} ${holdersTable(point)}
      </div>
    </section>`
  }

  drawn(): void {
    const container = this.#chartElement.value
    if (container === undefined) return
    if (this.#chart === null) {
      void this.#makeChart(container)
      return
    }
    if (this.#needsReplace) {
      this.#needsReplace = false
      this.#chart.replace(this.#bars)
    }
    const { gaps } = this.#app
    if (gaps.changeCount === this.#gapChanges) return
    this.#gapChanges = gaps.changeCount
    this.#chart.mark(this.#gaps())
    if (this.#olderGaps === null && gaps.ended.length > 0) void this.#readGaps()
  }

  /** The library of the chart is the largest file of the page: only this view loads it. */
  async #makeChart(container: HTMLElement): Promise<void> {
    if (this.#isMakingChart) return
    this.#isMakingChart = true
    try {
      const { TokenChart } = await import('./token-chart.ts')
      if (this.#isStopped) return
      this.#chart = new TokenChart(container, TIMEFRAME_MS[this.#tf])
      this.#needsReplace = true
      this.#app.invalidate()
    } catch {
      // The server is away: the next drawing tries again.
      this.#isMakingChart = false
    }
  }

  /** The newest first. */
  #gaps(): ToldGap[] {
    const { open, ended } = this.#app.gaps
    const oldestMs = ended.at(-1)?.from ?? Number.POSITIVE_INFINITY
    return [...open, ...ended, ...(this.#olderGaps ?? []).filter(({ from }) => from < oldestMs)]
  }

  /** `/health` tells the latest gaps of the market, and the answer with the bars all of theirs. */
  async #readGaps(): Promise<void> {
    this.#olderGaps = []
    try {
      const { meta } = await this.#app.client.bars({ mint: this.#mint, tf: this.#tf, limit: BARS })
      this.#olderGaps = (meta.incomplete ?? []).filter(({ to }) => to !== null).toReversed()
      this.#gapChanges = -1
      this.#app.invalidate()
    } catch {
      // The latest gaps are marked all the same.
    }
  }

  #header(point: DataPoint, nowMs: number): TemplateResult {
    const { symbol, name, priceUsd, priceChange1h, snapshotAt, isLive, viewerCount } = point
    return html`<header class="token-head">
      ${tokenPicture(this.#mint, point.imageUri)}
      <div class="token-names"><h1 id="view-title" title=${symbol}>${symbol}</h1><p title=${name}>${name}</p></div>
      <div class="price-now"><b>${formatPrice(priceUsd)}</b><span class=${changeClass(priceChange1h)}>${formatChange(priceChange1h)} 1h</span></div>
      ${isLive ? html`<span class="badge live">live${viewerCount === null ? '' : `, ${viewerCount} watch`}</span>` : nothing}
      <p class="note">as of ${formatAge(snapshotAt, nowMs)} ago · <a href=${routeHref('try', this.#mint)}>submit an analysis</a></p>
    </header>`
  }

  /** The legend of what the chart marks. */
  #gapsTold(nowMs: number): TemplateResult | typeof nothing {
    const firstMs = this.#bars[0]?.t ?? nowMs
    const lastMs = (this.#bars.at(-1)?.t ?? nowMs) + TIMEFRAME_MS[this.#tf]
    const gaps = this.#gaps().filter((gap) => gap.to === null || touches(gap, firstMs, lastMs))
    if (gaps.length === 0) return nothing
    const told = gaps.slice(0, GAPS_TOLD_MAX).map((gap) => `${gapReason(gap)} ${gapTimes(gap, nowMs)}.`)
    const more = gaps.length > told.length ? ` And ${gaps.length - told.length} more.` : ''
    return html`<p class="note incomplete" role="status"><i class="hatch" aria-hidden="true"></i> Hatched: trades may be missing. ${told.join(' ')}${more}</p>`
  }

  #chartLabel(): string {
    const last = this.#bars.at(-1)
    return last === undefined
      ? 'Price chart without bars'
      : `Price chart of ${this.#bars.length} bars of ${this.#tf}; the last closed at ${formatPrice(last.c)}`
  }

  #analysesCard(nowMs: number): TemplateResult {
    const { value, error } = this.#analyses
    return html`<section class="card">
      <h2>Analyses of this token</h2>
      <div class="analyses-room">${
        value === null
          ? html`<p class="note">${error ?? 'Loading'}</p>`
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
          if (newest === undefined) return
          this.#point = newest
          this.#isGone = false
          this.#app.changed()
        },
        onLeft: () => {
          this.#isGone = true
          this.#app.invalidate()
        },
        onError: (message) => this.#fail(message),
      },
    )
  }

  #followBars(): () => void {
    return this.#app.live.subscribe(
      { topic: 'ohlc', mint: this.#mint, tf: this.#tf, limit: BARS },
      {
        onRows: (rows, kind) => this.#takeBars(rows, kind),
        onError: (message) => this.#fail(message),
      },
    )
  }

  #takeBars(bars: readonly Bar[], kind: 'snapshot' | 'changes'): void {
    this.#hasBars = true
    if (kind === 'snapshot') {
      this.#bars = [...bars]
      this.#needsReplace = true
    } else for (const bar of bars) this.#takeBar(bar)
    this.#app.changed()
  }

  #takeBar(bar: Bar): void {
    const at = this.#bars.findLastIndex(({ t }) => t <= bar.t)
    if (this.#bars[at]?.t === bar.t) this.#bars[at] = bar
    else this.#bars.splice(at + 1, 0, bar)
    if (this.#chart?.update(bar) === false) this.#needsReplace = true
  }

  #fail(message: string): void {
    this.#error = message
    this.#app.invalidate()
  }
}

export const tokenView = (app: App): View => new TokenView(app)
