// Whether labels came true: scores and sentiments against what the price did afterwards, with 95 % intervals.

import { html, nothing, svg, type TemplateResult } from 'lit-html'
import type { Calibration, CalibrationGroup } from '../../schema/api/calibration.ts'
import { HORIZON_NAMES, type Horizon } from '../../schema/vocabulary.ts'
import { Fetched } from '../api.ts'
import type { App, View } from '../app.ts'
import { emptyState, missingState, namedAgentCommand, staleBanner, wideTable } from '../dom.ts'
import { changeClass, formatChange, formatCount, formatSigned, formatTime } from '../format.ts'
import { roundTicks } from '../round-ticks.ts'
import { type Route, routeHref } from '../router.ts'

/** Null: the shortest that has rows. */
export const toHorizon = (text: string | null): Horizon | null =>
  HORIZON_NAMES.find((each) => each === text) ?? null

/** The shortest time after which something is known. */
export const shortestKnown = (groups: readonly CalibrationGroup[]): Horizon | null =>
  HORIZON_NAMES.find((horizon) => groups.some((group) => group.horizon === horizon && group.count > 0)) ??
  null
const EVERY_MS = 60_000

/** Chooses the time after an analysis at which a view looks; all else of its address stays. */
export const horizonTabs = (shown: Horizon, view: string, id = ''): TemplateResult => html`
  <nav class="tabs" aria-label="Time after the analysis"><span class="note wide-only">after</span>
    ${HORIZON_NAMES.map((horizon) => html`<a href=${routeHref(view, id, { horizon })} aria-current=${horizon === shown ? 'page' : nothing}>${horizon}</a>`)}
  </nav>`

export class CalibrationView implements View {
  readonly title = 'Calibration'
  readonly #app: App
  /** As the address says. */
  readonly #chosen: Horizon | null
  readonly #calibration: Fetched<Calibration>

  constructor(app: App) {
    this.#app = app
    this.#chosen = toHorizon(app.route.query.get('horizon'))
    this.#calibration = new Fetched(
      () => app.client.calibration(),
      () => app.invalidate(),
      EVERY_MS,
    )
  }

  update({ query }: Route): boolean {
    return toHorizon(query.get('horizon')) === this.#chosen
  }

  stop(): void {
    this.#calibration.stop()
  }

  render(): TemplateResult {
    const { value } = this.#calibration
    return html`<section aria-labelledby="view-title">
      <header class="toolbar">
        <h1 id="view-title">Calibration</h1>
        ${horizonTabs(this.#horizon, 'calibration')}
        <p class="status own-line">${value === null ? nothing : html`as of ${formatTime(value.asOfMs, this.#app.nowMs())}`}</p>
      </header>
      ${staleBanner(this.#calibration)} ${value === null ? missingState(this.#calibration) : this.#groups(value)}
    </section>`
  }

  get #horizon(): Horizon {
    const { value } = this.#calibration
    const known = value && shortestKnown([...value.sentiments, ...value.scores])
    return this.#chosen ?? known ?? '5m'
  }

  #groups({ sentiments, scores }: Calibration): TemplateResult {
    const shown = this.#horizon
    const isOfHorizon = ({ horizon, count }: CalibrationGroup) => horizon === shown && count > 0
    const [bySentiment, byScore] = [sentiments.filter(isOfHorizon), scores.filter(isOfHorizon)]
    if (bySentiment.length + byScore.length === 0)
      return emptyState(
        `Too few outcomes after ${shown} yet`,
        'A group is shown from five analyses of three agents on, once the time has passed and their labels are shown. Let three example agents submit meanwhile, each in a terminal and with a key file of its own:',
        ...['one', 'two', 'three'].map(namedAgentCommand),
      )
    return html`<div class="columns">
      ${groupCard('By sentiment', 'A bullish analysis should be followed by a higher price than a bearish one.', bySentiment)}
      ${groupCard('By score', 'A higher score should be followed by a higher return.', byScore)}
    </div>`
  }
}

export const groupCard = (
  title: string,
  text: string,
  groups: readonly CalibrationGroup[],
): TemplateResult => html`
  <section class="card">
    <h2>${title}</h2>
    <p class="note">${text} Mean return and its 95 % interval.</p>
    ${groups.length === 0 ? html`<p class="note">No group is large enough yet.</p>` : groupsOf(groups)}
  </section>`

const groupsOf = (groups: readonly CalibrationGroup[]): TemplateResult => html`
    ${intervals(groups)}
    ${wideTable('Means and intervals', groupsTable(groups))}`

const groupsTable = (groups: readonly CalibrationGroup[]): TemplateResult => html`
    <table class="plain">
      <thead><tr><th>Group</th><th class="num">Analyses</th><th class="num wide-only">Tokens</th><th class="num">Mean</th><th class="num">95 % interval</th></tr></thead>
      <tbody>${groups.map(
        ({ label, count, tokens, meanPct, lowPct, highPct }) => html`<tr>
          <td>${label}</td><td class="num">${formatCount(count)}</td><td class="num wide-only">${formatCount(tokens)}</td>
          <td class="num ${changeClass(meanPct)}">${formatChange(meanPct)}</td>
          <td class="num">${lowPct === null || highPct === null ? '–' : `${formatSigned(lowPct)} to ${formatSigned(highPct)}%`}</td>
        </tr>`,
      )}</tbody>
    </table>`

const tickText = (percent: number): string =>
  `${percent < 0 ? '−' : percent > 0 ? '+' : ''}${Math.abs(percent)}%`

const PLOT_WIDTH = 320
const LINE_HEIGHT = 26
const LABEL_WIDTH = 84
const AXIS_HEIGHT = 16
/** Room for half of a number at the right end of the axis. */
const END_WIDTH = 22

/** Each group's mean as a point on its interval, all on one axis with zero marked. */
function intervals(groups: readonly CalibrationGroup[]): TemplateResult {
  const ends = groups
    .flatMap(({ lowPct, highPct, meanPct }) => [lowPct, highPct, meanPct])
    .filter((end) => end !== null)
  const ticks = roundTicks(Math.min(0, ...ends), Math.max(0, ...ends))
  const [low, high] = [ticks[0] ?? 0, ticks.at(-1) ?? 0]
  const span = high - low || 1
  const x = (percent: number) =>
    LABEL_WIDTH + ((percent - low) / span) * (PLOT_WIDTH - LABEL_WIDTH - END_WIDTH)
  const height = groups.length * LINE_HEIGHT
  return html`<svg class="intervals" viewBox="0 0 ${PLOT_WIDTH} ${height + AXIS_HEIGHT}" role="img" aria-label="Mean returns with intervals; the table below has the numbers">
    ${ticks.map((tick) => svg`<line class="grid" x1=${x(tick)} x2=${x(tick)} y1="0" y2=${height}></line><text class="tick" x=${x(tick)} y=${height + AXIS_HEIGHT - 3}>${tickText(tick)}</text>`)}
    ${svg`<line class="zero" x1=${x(0)} x2=${x(0)} y1="0" y2=${height}></line>`}
    ${groups.map(({ label, meanPct, lowPct, highPct }, at) => {
      const y = at * LINE_HEIGHT + LINE_HEIGHT / 2
      return svg`<text x="0" y=${y + 4}>${label}</text>
        ${lowPct === null || highPct === null ? '' : svg`<line class="interval" x1=${x(lowPct)} x2=${x(highPct)} y1=${y} y2=${y}></line>`}
        ${meanPct === null ? '' : svg`<circle cx=${x(meanPct)} cy=${y} r="4"></circle>`}`
    })}
  </svg>`
}
