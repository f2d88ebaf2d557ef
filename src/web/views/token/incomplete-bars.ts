// Marks the bars of a chart in which trades may be missing: a hatched ground behind them, so that no colour is needed to see it.
import type {
  IChartApi,
  IPrimitivePaneRenderer,
  IPrimitivePaneView,
  ISeriesPrimitive,
  Logical,
  PrimitivePaneViewZOrder,
  SeriesAttachedParameter,
} from 'lightweight-charts'
import type { MarkedSpan } from './marked-spans.ts'

type Target = Parameters<IPrimitivePaneRenderer['draw']>[0]

const HATCH_STEP_PX = 6
const GROUND_OPACITY = 0.1
const HATCH_OPACITY = 0.55

export class IncompleteBars implements ISeriesPrimitive, IPrimitivePaneView {
  readonly #chart: IChartApi
  /** The chart compares the array itself. */
  readonly #views: readonly IPrimitivePaneView[] = [this]
  #requestUpdate = (): void => {}
  #spans: readonly MarkedSpan[] = []
  #colour = ''

  constructor(chart: IChartApi) {
    this.#chart = chart
  }

  attached({ requestUpdate }: SeriesAttachedParameter): void {
    this.#requestUpdate = requestUpdate
  }

  /** Draws these spans and no others. */
  set(spans: readonly MarkedSpan[]): void {
    this.#spans = spans
    this.#requestUpdate()
  }

  recolour(colour: string): void {
    this.#colour = colour
  }

  paneViews(): readonly IPrimitivePaneView[] {
    return this.#views
  }

  zOrder(): PrimitivePaneViewZOrder {
    return 'bottom'
  }

  renderer(): IPrimitivePaneRenderer | null {
    return this.#spans.length === 0 ? null : { draw: (target) => this.#draw(target) }
  }

  #draw(target: Target): void {
    const scale = this.#chart.timeScale()
    const barPx = scale.options().barSpacing
    target.useMediaCoordinateSpace(({ context, mediaSize }) => {
      for (const { first, last, isOpen } of this.#spans) {
        const left = scale.logicalToCoordinate(first as Logical)
        const right = scale.logicalToCoordinate(last as Logical)
        if (left === null || right === null) continue
        const fromPx = Math.max(0, left - barPx / 2)
        const toPx = Math.min(mediaSize.width, isOpen ? mediaSize.width : right + barPx / 2)
        // A gap between two bars that are drawn side by side is still told.
        this.#hatch(context, fromPx, Math.max(toPx, fromPx + 2), mediaSize.height)
      }
    })
  }

  #hatch(context: CanvasRenderingContext2D, fromPx: number, toPx: number, heightPx: number): void {
    context.save()
    context.beginPath()
    context.rect(fromPx, 0, toPx - fromPx, heightPx)
    context.clip()
    context.fillStyle = this.#colour
    context.strokeStyle = this.#colour
    context.globalAlpha = GROUND_OPACITY
    context.fill()
    context.globalAlpha = HATCH_OPACITY
    context.beginPath()
    for (let at = fromPx - heightPx; at < toPx; at += HATCH_STEP_PX) {
      context.moveTo(at, heightPx)
      context.lineTo(at + heightPx, 0)
    }
    context.lineWidth = 0.5
    context.stroke()
    context.restore()
  }
}
