// The chart of a token: candles with volume, moved by the stream. Drawn by TradingView's Lightweight Charts. Its own logo needs
// an inline style, which the page's Content-Security-Policy refuses: the token's view shows the attribution instead.
import {
  type CandlestickData,
  CandlestickSeries,
  createChart,
  type HistogramData,
  HistogramSeries,
  type IChartApi,
  type ISeriesApi,
  type Time,
  type WhitespaceData,
} from 'lightweight-charts'
import type { Bar } from '../../../client/index.ts'
import type { ToldGap } from '../../../schema/event.ts'
import { formatAmount, formatPrice } from '../../format.ts'
import { IncompleteBars } from './incomplete-bars.ts'
import { markedSpans } from './marked-spans.ts'

/** An empty interval is drawn as a hole, at most so many in a row: a token may sleep for weeks. */
const HOLES_MAX = 200
/** Room for $1,234,567, so that the axis does not grow with each longer price. */
const AXIS_WIDTH_PX = 82

/** The axis reaches below zero, where there are no prices; what is this near to zero is a rounding error. */
const NO_PRICE_MAX = 1e-13
const formatAxisPrice = (price: number): string => (price < NO_PRICE_MAX ? '' : formatPrice(price))

const toTime = (ms: number): Time => (ms / 1_000) as Time
const toMs = (time: Time): number => Number(time) * 1_000

export class TokenChart {
  readonly #container: HTMLElement
  readonly #chart: IChartApi
  readonly #candles: ISeriesApi<'Candlestick'>
  readonly #volumes: ISeriesApi<'Histogram'>
  readonly #incomplete: IncompleteBars
  readonly #barMs: number
  /** Of all that is drawn, holes included. */
  #timesMs: number[] = []
  #gaps: readonly ToldGap[] = []

  /** @param barMs length of a bar, for the holes between bars. */
  constructor(container: HTMLElement, barMs: number) {
    this.#container = container
    this.#barMs = barMs
    this.#chart = createChart(container, {
      autoSize: true,
      layout: { background: { color: 'transparent' }, attributionLogo: false },
      timeScale: { timeVisible: true, secondsVisible: barMs < 60_000 },
      localization: { priceFormatter: formatAxisPrice },
    })
    this.#candles = this.#chart.addSeries(CandlestickSeries, {
      priceFormat: { type: 'custom', minMove: 1e-12, formatter: formatAxisPrice },
    })
    this.#volumes = this.#chart.addSeries(HistogramSeries, {
      priceScaleId: 'volume',
      priceFormat: { type: 'custom', minMove: 0.01, formatter: (volume: number) => formatAmount(volume) },
      lastValueVisible: false,
      priceLineVisible: false,
    })
    this.#chart.priceScale('volume').applyOptions({ scaleMargins: { top: 0.82, bottom: 0 } })
    this.#candles.priceScale().applyOptions({ scaleMargins: { top: 0.08, bottom: 0.24 } })
    this.#incomplete = new IncompleteBars(this.#chart)
    this.#candles.attachPrimitive(this.#incomplete)
    this.recolour()
  }

  /** Takes the colours of the theme. */
  recolour(): void {
    const style = getComputedStyle(this.#container)
    const colour = (name: string) => style.getPropertyValue(name).trim()
    const [up, down, line] = [colour('--up'), colour('--down'), colour('--line')]
    this.#chart.applyOptions({
      layout: { textColor: colour('--dim') },
      grid: { vertLines: { color: line }, horzLines: { color: line } },
      rightPriceScale: { borderColor: line, minimumWidth: AXIS_WIDTH_PX },
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
    this.#volumes.applyOptions({ color: colour('--line-strong') })
    this.#incomplete.recolour(colour('--warn'))
  }

  /** Marks the bars that these gaps touch. */
  mark(gaps: readonly ToldGap[]): void {
    this.#gaps = gaps
    this.#incomplete.set(markedSpans(this.#timesMs, this.#barMs, gaps))
  }

  /** Draws these bars and no others. */
  replace(bars: readonly Bar[]): void {
    const candles: (CandlestickData | WhitespaceData)[] = []
    const volumes: HistogramData[] = []
    let previousMs = 0
    for (const bar of bars) {
      if (previousMs > 0) candles.push(...this.#holes(previousMs, bar.t))
      candles.push(toCandle(bar))
      volumes.push({ time: toTime(bar.t), value: bar.v })
      previousMs = bar.t
    }
    this.#candles.setData(candles)
    this.#volumes.setData(volumes)
    this.#timesMs = candles.map(({ time }) => toMs(time))
    this.mark(this.#gaps)
    this.#chart.timeScale().scrollToRealTime()
  }

  /** Draws a new bar, or the newest one anew. @returns false for an older bar, which only `replace` can draw. */
  update(bar: Bar): boolean {
    const lastMs = this.#timesMs.at(-1) ?? 0
    if (bar.t < lastMs) return false
    const holes = lastMs > 0 ? this.#holes(lastMs, bar.t) : []
    for (const hole of holes) this.#candles.update(hole)
    this.#candles.update(toCandle(bar))
    this.#volumes.update({ time: toTime(bar.t), value: bar.v })
    if (bar.t > lastMs) {
      this.#timesMs.push(...holes.map(({ time }) => toMs(time)), bar.t)
      if (this.#gaps.length > 0) this.mark(this.#gaps)
    }
    return true
  }

  remove(): void {
    this.#chart.remove()
  }

  #holes(fromMs: number, toMs: number): WhitespaceData[] {
    const count = Math.min(HOLES_MAX, Math.floor((toMs - fromMs) / this.#barMs) - 1)
    return Array.from({ length: Math.max(0, count) }, (_, at) => ({
      time: toTime(toMs - (count - at) * this.#barMs),
    }))
  }
}

const toCandle = ({ t, o, h, l, c }: Bar): CandlestickData => ({
  time: toTime(t),
  open: o,
  high: h,
  low: l,
  close: c,
})
