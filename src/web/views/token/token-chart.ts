// The chart of a token: candles with volume, moved by the stream. Drawn by TradingView's Lightweight Charts. Its own logo needs
// an inline style, which the page's Content-Security-Policy refuses: the token's view shows the attribution instead.
import {
  type CandlestickData,
  CandlestickSeries,
  createChart,
  createSeriesMarkers,
  type HistogramData,
  HistogramSeries,
  type IChartApi,
  type ISeriesApi,
  type ISeriesMarkersPluginApi,
  PriceScaleMode,
  type Time,
  type WhitespaceData,
} from 'lightweight-charts'
import type { Bar, ListedAnalysis } from '../../../client/index.ts'
import type { ToldGap } from '../../../schema/event.ts'
import { formatAmount, formatAxisPrices, formatPrice, formatUsd, NO_PRICE_MAX } from '../../format.ts'
import { analysesByBar, toMarkers } from './analysis-marks.ts'
import { ChartTime } from './chart-time.ts'
import { IncompleteBars } from './incomplete-bars.ts'
import { markedSpans } from './marked-spans.ts'

/** An empty interval is drawn as a hole, at most so many in a row: a token may sleep for weeks, and what it did is what the chart is for. */
const HOLES_MAX = 10
/** Room for $1,234,567, so that the axis does not grow with each longer price. */
const AXIS_WIDTH_PX = 92
/** A chart opens on its newest bars, so many at most, and none narrower than BAR_PX_MIN; a few stand in the middle, no wider than if they were `BARS_SHOWN_MIN`. */
const BARS_SHOWN_MAX = 160
const BAR_PX_MIN = 5
const BARS_SHOWN_MIN = 24
/** What stays free at the right, so that the next bars have room: a share of the bars shown. */
const MARGIN_SHARE = 0.06
const MARGIN_BARS_MIN = 2

/** What stays free above the bars, of the height; on a phone the legend takes several lines there (style.css). */
const TOP_SHARE = 0.12
const PHONE = '(max-width: 720px)'
const PHONE_LEGEND_PX = 92

/** How prices are shown. */
export interface ChartLook {
  isLog: boolean
  /** What a price is multiplied by: the supply, where market capitalisation is shown; else 1. */
  factor: number
  isCap: boolean
}

export class TokenChart {
  readonly #container: HTMLElement
  readonly #chart: IChartApi
  readonly #candles: ISeriesApi<'Candlestick'>
  readonly #volumes: ISeriesApi<'Histogram'>
  readonly #incomplete: IncompleteBars
  readonly #markers: ISeriesMarkersPluginApi<Time>
  readonly #barMs: number
  readonly #time: ChartTime
  #look: ChartLook = { isLog: false, factor: 1, isCap: false }
  #colours = { up: '', down: '', dim: '' }
  /** Of all that is drawn, holes included. */
  #timesMs: number[] = []
  #gaps: readonly ToldGap[] = []
  #analyses: readonly ListedAnalysis[] = []
  #isFitted = false
  #axisWidthPx = AXIS_WIDTH_PX

  /**
   * @param barMs length of a bar, for the holes between bars.
   * @param onHover called with the start of the bar under the crosshair, Unix ms; null: the pointer has left.
   */
  constructor(container: HTMLElement, barMs: number, onHover: (barStartMs: number | null) => void) {
    this.#container = container
    this.#barMs = barMs
    this.#time = new ChartTime(barMs)
    this.#chart = createChart(container, {
      autoSize: true,
      layout: { background: { color: 'transparent' }, attributionLogo: false },
      timeScale: {
        timeVisible: true,
        secondsVisible: barMs < 60_000,
        minBarSpacing: 1,
        tickMarkFormatter: this.#time.tick.bind(this.#time),
      },
      localization: {
        priceFormatter: (price: number) => this.#formatPrice(price),
        tickmarksPriceFormatter: (prices: readonly number[]) => this.#formatAxis(prices),
        timeFormatter: (time: Time) => this.#time.full(this.#time.toMs(time)),
      },
    })
    this.#candles = this.#chart.addSeries(CandlestickSeries, {
      priceFormat: {
        type: 'custom',
        minMove: 1e-12,
        formatter: (price: number) => this.#formatPrice(price),
      },
    })
    this.#volumes = this.#chart.addSeries(HistogramSeries, {
      priceScaleId: 'volume',
      priceFormat: { type: 'custom', minMove: 0.01, formatter: (volume: number) => formatAmount(volume) },
      lastValueVisible: false,
      priceLineVisible: false,
    })
    this.#chart.priceScale('volume').applyOptions({ scaleMargins: { top: 0.82, bottom: 0 } })
    const legendPx = matchMedia(PHONE).matches ? PHONE_LEGEND_PX : 0
    const top = Math.max(TOP_SHARE, Math.min(0.4, legendPx / container.clientHeight || 0))
    this.#candles.priceScale().applyOptions({ scaleMargins: { top, bottom: 0.24 } })
    this.#incomplete = new IncompleteBars(this.#chart)
    this.#candles.attachPrimitive(this.#incomplete)
    this.#markers = createSeriesMarkers(this.#candles)
    this.#chart.subscribeCrosshairMove(({ time }) =>
      onHover(time === undefined ? null : this.#time.toMs(time)),
    )
    this.recolour()
  }

  /** Takes the colours of the theme. */
  recolour(): void {
    const style = getComputedStyle(this.#container)
    const colour = (name: string) => style.getPropertyValue(name).trim()
    const [up, down, line, dim] = [colour('--up'), colour('--down'), colour('--line'), colour('--dim')]
    this.#colours = { up, down, dim }
    this.#chart.applyOptions({
      layout: { textColor: dim, fontFamily: style.fontFamily },
      grid: { vertLines: { color: line }, horzLines: { color: line } },
      rightPriceScale: { borderColor: line, minimumWidth: this.#axisWidthPx },
      timeScale: { borderColor: line },
    })
    this.#candles.applyOptions({
      // Hollow: up and down differ by shape too. The label of the price takes the colour without its transparency.
      upColor: `${up}00`,
      borderUpColor: up,
      wickUpColor: up,
      downColor: down,
      borderDownColor: down,
      wickDownColor: down,
    })
    this.#incomplete.recolour(colour('--warn'))
    this.#drawMarks()
  }

  /** Prices on a scale whose steps are equal shares, and as market capitalisation. Bars are drawn so by the next `replace`. */
  show(look: ChartLook): void {
    this.#look = look
    this.#candles
      .priceScale()
      .applyOptions({ mode: look.isLog ? PriceScaleMode.Logarithmic : PriceScaleMode.Normal })
  }

  /** When a bar begins, in the zone of the page. */
  timeText(ms: number): string {
    return this.#time.full(ms)
  }

  /** Marks the bars that these gaps touch. */
  mark(gaps: readonly ToldGap[]): void {
    this.#gaps = gaps
    this.#incomplete.set(markedSpans(this.#timesMs, this.#barMs, gaps))
  }

  /** Marks what agents said. */
  markAnalyses(analyses: readonly ListedAnalysis[]): void {
    this.#analyses = analyses
    this.#drawMarks()
  }

  /** Draws these bars and no others. */
  replace(bars: readonly Bar[]): void {
    this.#keepAxisWidth()
    const candles: (CandlestickData | WhitespaceData)[] = []
    const volumes: HistogramData[] = []
    let previousMs = 0
    for (const bar of bars) {
      if (previousMs > 0) candles.push(...this.#holes(previousMs, bar.t))
      candles.push(this.#toCandle(bar))
      volumes.push(this.#toVolume(bar))
      previousMs = bar.t
    }
    this.#candles.setData(candles)
    this.#volumes.setData(volumes)
    this.#timesMs = candles.map(({ time }) => this.#time.toMs(time))
    this.mark(this.#gaps)
    this.#drawMarks()
    this.#fit()
  }

  /** Draws a new bar, or the newest one anew. @returns false for an older bar, which only `replace` can draw. */
  update(bar: Bar): boolean {
    const lastMs = this.#timesMs.at(-1) ?? 0
    if (bar.t < lastMs) return false
    this.#keepAxisWidth()
    const holes = lastMs > 0 ? this.#holes(lastMs, bar.t) : []
    for (const hole of holes) this.#candles.update(hole)
    this.#candles.update(this.#toCandle(bar))
    this.#volumes.update(this.#toVolume(bar))
    if (bar.t > lastMs) {
      this.#timesMs.push(...holes.map(({ time }) => this.#time.toMs(time)), bar.t)
      if (this.#gaps.length > 0) this.mark(this.#gaps)
    }
    return true
  }

  remove(): void {
    this.#chart.remove()
  }

  /** Shows the newest bars with a free margin behind them. Where somebody has scrolled to afterwards stays. */
  #fit(): void {
    const count = this.#timesMs.length
    if (this.#isFitted || count === 0) return
    this.#isFitted = true
    const widthPx = this.#container.clientWidth - AXIS_WIDTH_PX
    const shown = Math.min(count, BARS_SHOWN_MAX, Math.max(BARS_SHOWN_MIN, Math.floor(widthPx / BAR_PX_MIN)))
    const margin = Math.max(MARGIN_BARS_MIN, Math.round(shown * MARGIN_SHARE))
    const padding = Math.max(0, BARS_SHOWN_MIN - shown - margin) / 2
    const from = count - shown - 0.5 - padding
    const to = count - 0.5 + margin + padding
    this.#chart.timeScale().applyOptions({ rightOffset: to - count })
    this.#chart.timeScale().setVisibleLogicalRange({ from, to })
  }

  /** The axis stays as wide as its longest prices were: the bars do not move to and fro with them. */
  #keepAxisWidth(): void {
    const widthPx = this.#chart.priceScale('right').width()
    if (widthPx <= this.#axisWidthPx) return
    this.#axisWidthPx = widthPx
    this.#chart.applyOptions({ rightPriceScale: { minimumWidth: widthPx } })
  }

  #drawMarks(): void {
    const byBar = analysesByBar(this.#timesMs, this.#analyses)
    this.#markers.setMarkers(toMarkers(byBar, (ms) => this.#time.toTime(ms), this.#colours))
  }

  #formatPrice(price: number): string {
    if (price < NO_PRICE_MAX) return ''
    return this.#look.isCap ? formatUsd(price) : formatPrice(price)
  }

  /** On a logarithmic axis each price stands for itself: there is no step. */
  #formatAxis(prices: readonly number[]): string[] {
    if (this.#look.isCap || this.#look.isLog) return prices.map((price) => this.#formatPrice(price))
    return formatAxisPrices(prices)
  }

  #holes(fromMs: number, toMs: number): WhitespaceData[] {
    const count = Math.min(HOLES_MAX, Math.floor((toMs - fromMs) / this.#barMs) - 1)
    return Array.from({ length: Math.max(0, count) }, (_, at) => ({
      time: this.#time.toTime(toMs - (count - at) * this.#barMs),
    }))
  }

  #toCandle({ t, o, h, l, c }: Bar): CandlestickData {
    const { factor } = this.#look
    return {
      time: this.#time.toTime(t),
      open: o * factor,
      high: h * factor,
      low: l * factor,
      close: c * factor,
    }
  }

  /** In the colour of the way that the price went, faint: the candles are what is looked at. */
  #toVolume({ t, o, c, v }: Bar): HistogramData {
    const { up, down } = this.#colours
    return { time: this.#time.toTime(t), value: v, color: `${c >= o ? up : down}70` }
  }
}
