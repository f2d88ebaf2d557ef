// The card with the chart of a token: its bars, live, with timeframe, scale and value to choose, the values under the crosshair, and
// what the chart marks.
import { html, nothing, type TemplateResult } from 'lit-html'
import { createRef, type Ref, ref } from 'lit-html/directives/ref.js'
import type { Bar, DataPoint, ListedAnalysis } from '../../../client/index.ts'
import type { ToldGap } from '../../../schema/event.ts'
import { TIMEFRAME_MS, TIMEFRAMES, type Timeframe } from '../../../schema/timeframe.ts'
import type { App } from '../../app.ts'
import { changeClass, formatChange, formatCount, formatPrice, formatUsd, sentence } from '../../format.ts'
import { gapReason, gapTimes, touches } from '../../gaps.ts'
import { replaceQuery, routeHref } from '../../router.ts'
import { onThemeChange } from '../../theme.ts'
import { onZoneChange, zoneName } from '../../time-zone.ts'
import { analysesByBar, becameText } from './analysis-marks.ts'
import type { TokenChart } from './token-chart.ts'

const DEFAULT_TF: Timeframe = '1m'

/** What an address says of the chart. */
const toLook = (query: URLSearchParams) => ({
  tf: TIMEFRAMES.find((tf) => tf === query.get('tf')) ?? DEFAULT_TF,
  isLog: query.get('scale') === 'log',
  isCap: query.get('value') === 'cap',
})

const BARS = 500
/** A page may stay open for days: of so many bars the newest `BARS_KEPT` are kept. */
const BARS_MAX = 4 * BARS
const BARS_KEPT = 2 * BARS
/** By so small a share a supply differs that is the same. */
const SUPPLY_ROUNDING = 1e-9
/** Gaps that are told in words; all are marked. */
const GAPS_TOLD_MAX = 3
/** Different analyses of one bar that the legend tells. */
const SAID_TOLD_MAX = 3

export class ChartPanel {
  readonly #tf: Timeframe
  readonly #app: App
  readonly #mint: string
  readonly #onError: (message: string, code: string) => void
  readonly #element: Ref<HTMLElement> = createRef()
  readonly #unsubscribes: (() => void)[]
  #isLog: boolean
  #isCap: boolean
  /** Tokens that there are: market capitalisation is the price times these. Null: not known. */
  #supply: number | null = null
  #bars: Bar[] = []
  #hasBars = false
  #analyses: readonly ListedAnalysis[] = []
  #chart: TokenChart | null = null
  #isMakingChart = false
  /** Why its bars cannot be followed. */
  #error: string | null = null
  /** Whether the chart's module could not be loaded. */
  #isWithoutChart = false
  #isStopped = false
  #needsReplace = false
  #hoveredMs: number | null = null
  /** Gaps of these bars that the page was not told; null before they were asked for. */
  #olderGaps: readonly ToldGap[] | null = null
  #gapChanges = -1

  constructor(app: App, mint: string, onError: (message: string, code: string) => void) {
    this.#app = app
    this.#mint = mint
    this.#onError = onError
    const { tf, isLog, isCap } = toLook(app.route.query)
    this.#tf = tf
    this.#isLog = isLog
    this.#isCap = isCap
    this.#unsubscribes = [
      this.#follow(),
      onThemeChange(() => this.#recolour()),
      onZoneChange(() => this.#remake()),
    ]
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe()
    this.#isStopped = true
    this.#chart?.remove()
    this.#chart = null
  }

  /** Whether it is as an address says. */
  isOf(query: URLSearchParams): boolean {
    const { tf, isLog, isCap } = toLook(query)
    return tf === this.#tf && isLog === this.#isLog && isCap === this.#isCap
  }

  setAnalyses(analyses: readonly ListedAnalysis[]): void {
    this.#analyses = analyses
    this.#chart?.markAnalyses(analyses)
  }

  setPoint({ marketCap, priceUsd }: DataPoint): void {
    const before = this.#supply ?? 0
    const supply = marketCap === null || !priceUsd ? null : marketCap / priceUsd
    // With each price the quotient rounds to another last digit.
    if (Math.abs((supply ?? 0) - before) <= SUPPLY_ROUNDING * before) return
    this.#supply = supply
    if (this.#isCap) this.#look()
  }

  render(nowMs: number): TemplateResult {
    return html`<div class="card chart-card">
      <div class="chart-bar">
        <nav class="tabs" aria-label="Timeframe">
          ${TIMEFRAMES.map((tf) => html`<a href=${routeHref('token', this.#mint, this.#query(tf))} aria-current=${tf === this.#tf ? 'page' : nothing}>${tf}</a>`)}
        </nav>
        <div class="chips" role="group" aria-label="Chart">
          ${this.#switch('log', this.#isLog, 'Equal steps are equal shares', () => (this.#isLog = !this.#isLog))}
          ${this.#switch('market cap', this.#isCap, 'Market capitalisation instead of the price', () => (this.#isCap = !this.#isCap))}
        </div>
      </div>
      <div class="chart-room">
        <div class="chart" role="img" aria-label=${this.#label()} ${ref(this.#element)}></div>
        ${this.#legend()}
        ${this.#missing()}
      </div>
      ${this.#gapsTold(nowMs)}
      <p class="note chart-foot"><span>Times in ${zoneName(nowMs)}. Arrows and dots: analyses with their verdict and the price since.</span>
        <span>Charts by <a href="https://www.tradingview.com/" target="_blank" rel="noopener noreferrer">TradingView Lightweight Charts™</a></span></p>
    </div>`
  }

  /** What stands in the place of a chart. */
  #missing(): TemplateResult | typeof nothing {
    if (this.#isWithoutChart)
      return html`<p class="note" role="alert">The chart could not be loaded. <button type="button" @click=${() => location.reload()}>Reload the page</button></p>`
    if (this.#error !== null) return html`<p class="note" role="alert">${sentence(this.#error)}</p>`
    if (!this.#hasBars) return nothing
    return this.#bars.length === 0 ? html`<p class="note">No trade yet in this timeframe.</p>` : nothing
  }

  drawn(): void {
    const container = this.#element.value
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

  #query(tf: Timeframe): Record<string, string> {
    return {
      tf: tf === DEFAULT_TF ? '' : tf,
      scale: this.#isLog ? 'log' : '',
      value: this.#isCap ? 'cap' : '',
    }
  }

  #switch(label: string, isOn: boolean, title: string, turn: () => void): TemplateResult {
    const click = () => {
      turn()
      replaceQuery(this.#app.route, this.#query(this.#tf))
      this.#look()
    }
    return html`<button type="button" class="chip" title=${title} aria-pressed=${isOn} @click=${click}>${label}</button>`
  }

  get #factor(): number {
    return this.#isCap ? (this.#supply ?? 1) : 1
  }

  #look(): void {
    const isCap = this.#isCap && this.#supply !== null
    this.#chart?.show({ isLog: this.#isLog, factor: this.#factor, isCap })
    this.#needsReplace = true
    this.#app.invalidate()
  }

  #recolour(): void {
    this.#chart?.recolour()
    this.#needsReplace = true
    this.#app.invalidate()
  }

  /** Its axis is made for one zone. */
  #remake(): void {
    // One whose library is still on its way is made for the zone of then.
    if (this.#chart === null) return
    this.#chart.remove()
    this.#chart = null
    this.#isMakingChart = false
    this.#app.invalidate()
  }

  /** The library of the chart is the largest file of the page: only this view loads it. */
  async #makeChart(container: HTMLElement): Promise<void> {
    if (this.#isMakingChart) return
    this.#isMakingChart = true
    try {
      const { TokenChart } = await import('./token-chart.ts')
      if (this.#isStopped) return
      this.#chart = new TokenChart(container, TIMEFRAME_MS[this.#tf], (ms) => this.#hover(ms))
      this.#chart.markAnalyses(this.#analyses)
      this.#gapChanges = -1
      this.#look()
    } catch {
      // Browsers remember that a module could not be loaded, as long as the page is open: to ask again brings nothing.
      this.#isWithoutChart = true
      this.#app.invalidate()
    }
  }

  #hover(barStartMs: number | null): void {
    if (barStartMs === this.#hoveredMs) return
    this.#hoveredMs = barStartMs
    this.#app.invalidate()
  }

  /** The values of the bar under the crosshair, of the newest one otherwise. */
  #legend(): TemplateResult | typeof nothing {
    const hoveredMs = this.#hoveredMs
    const bar = hoveredMs === null ? this.#bars.at(-1) : this.#bars.find(({ t }) => t === hoveredMs)
    if (this.#chart === null || (bar === undefined && hoveredMs === null)) return nothing
    if (bar === undefined)
      return html`<div class="chart-legend"><span class="dim">${this.#chart.timeText(hoveredMs ?? 0)}</span> <span class="dim">no trade</span></div>`
    const format = this.#factor === 1 ? formatPrice : formatUsd
    const changePct = bar.o === 0 ? null : 100 * (bar.c / bar.o - 1)
    const values = [
      ['O', bar.o],
      ['H', bar.h],
      ['L', bar.l],
      ['C', bar.c],
    ] as const
    return html`<div class="chart-legend">
      <span class="dim">${this.#chart.timeText(bar.t)}</span>
      ${values.map(([name, usd]) => html`<span><b>${name}</b> ${format(usd * this.#factor)}</span>`)}
      <span class=${changeClass(changePct)}>${formatChange(changePct)}</span>
      <span><b>V</b> ${formatUsd(bar.v)}</span>
      <span class="dim">${formatCount(bar.n)} ${bar.n === 1 ? 'trade' : 'trades'}</span>
      ${this.#saidOf(bar.t)}
    </div>`
  }

  /** What agents said while this bar was open. */
  #saidOf(barMs: number): TemplateResult | typeof nothing {
    const said = analysesByBar(
      this.#bars.map(({ t }) => t),
      this.#analyses,
    ).get(barMs)
    if (said === undefined) return nothing
    const counts = new Map<string, number>()
    for (const analysis of said) {
      const { sentiment, score } = analysis
      const says = sentiment === null ? 'withheld' : `${sentiment} ${score ?? ''}`
      const text = `${says} ${becameText(analysis)}`
      counts.set(text, (counts.get(text) ?? 0) + 1)
    }
    const texts = [...counts].map(([text, count]) => (count === 1 ? text : `${count} × ${text}`))
    const more = texts.length > SAID_TOLD_MAX ? ` and ${texts.length - SAID_TOLD_MAX} more` : ''
    return html`<span class="said">${texts.slice(0, SAID_TOLD_MAX).join(', ')}${more}</span>`
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

  /** The legend of what the chart marks as incomplete. */
  #gapsTold(nowMs: number): TemplateResult | typeof nothing {
    const firstMs = this.#bars[0]?.t ?? nowMs
    const lastMs = (this.#bars.at(-1)?.t ?? nowMs) + TIMEFRAME_MS[this.#tf]
    const gaps = this.#gaps().filter((gap) => gap.to === null || touches(gap, firstMs, lastMs))
    if (gaps.length === 0) return nothing
    const told = gaps.slice(0, GAPS_TOLD_MAX).map((gap) => `${gapReason(gap)} ${gapTimes(gap, nowMs)}.`)
    const more = gaps.length > told.length ? ` And ${gaps.length - told.length} more.` : ''
    return html`<p class="note incomplete" role="status"><i class="hatch" aria-hidden="true"></i> Hatched: trades may be missing. ${told.join(' ')}${more}</p>`
  }

  #label(): string {
    const last = this.#bars.at(-1)
    return last === undefined
      ? 'Price chart without bars'
      : `Price chart of ${this.#bars.length} bars of ${this.#tf}; the last closed at ${formatPrice(last.c)}`
  }

  #follow(): () => void {
    return this.#app.live.subscribe(
      { topic: 'ohlc', mint: this.#mint, tf: this.#tf, limit: BARS },
      {
        onRows: (rows, kind) => this.#take(rows, kind),
        onError: (message, code) => {
          this.#error = message
          this.#onError(message, code)
        },
      },
    )
  }

  #take(bars: readonly Bar[], kind: 'snapshot' | 'changes'): void {
    this.#hasBars = true
    this.#error = null
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
    if (this.#bars.length >= BARS_MAX) {
      this.#bars = this.#bars.slice(-BARS_KEPT)
      this.#needsReplace = true
    }
    // A chart that is to be replaced need not grow: in a tab that nobody looks at that may be long from now.
    if (!this.#needsReplace && this.#chart?.update(bar) === false) this.#needsReplace = true
  }
}
