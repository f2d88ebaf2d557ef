// Charts as SVG text.

export interface Series {
  name: string
  /** Class of its colour. */
  colour: string
  points: readonly { atMs: number; value: number }[]
}

const [WIDTH, HEIGHT] = [860, 220]
const [LEFT, RIGHT, TOP, BOTTOM] = [62, 10, 12, 26]
/** Times that the axis names; of values it names about as many, round ones. */
const TICKS = 4
const ROUND_STEPS = [1, 2, 2.5, 5, 10]

interface Scale {
  x(atMs: number): string
  y(value: number): string
}

export const escapeText = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

const clockTime = (atMs: number): string => new Date(atMs).toISOString().slice(5, 16).replace('T', ' ')

function scaleOf(fromMs: number, toMs: number, low: number, high: number): Scale {
  const [spanMs, span] = [Math.max(1, toMs - fromMs), high - low || 1]
  return {
    x: (atMs) => (LEFT + ((WIDTH - LEFT - RIGHT) * (atMs - fromMs)) / spanMs).toFixed(1),
    y: (value) => (HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * (value - low)) / span).toFixed(1),
  }
}

interface Bounds {
  fromMs: number
  toMs: number
  low: number
  high: number
  /** Between two lines of the grid. */
  step: number
  unit: string
}

/** Widens an interval of values until it begins and ends at multiples of a round number; of counts, a whole one. */
function roundBounds(low: number, high: number, areCounts = false): Pick<Bounds, 'low' | 'high' | 'step'> {
  const wanted = Math.max((high - low) / TICKS, areCounts ? 1 : 0) || 1
  const power = 10 ** Math.floor(Math.log10(wanted))
  const steps = ROUND_STEPS.map((factor) => factor * power)
  const step =
    steps.find((each) => each >= wanted * 0.999 && (!areCounts || Number.isInteger(each))) ?? wanted
  const from = Math.floor(low / step) * step
  return { low: from, high: Math.max(Math.ceil(high / step) * step, from + step), step }
}

function axes(scale: Scale, { fromMs, toMs, low, high, step, unit }: Bounds): string {
  const parts: string[] = []
  for (let line = 0; line <= Math.round((high - low) / step); line++) {
    const value = low + line * step
    const y = scale.y(value)
    parts.push(`<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y}" y2="${y}"/>`)
    parts.push(`<text x="${LEFT - 6}" y="${y}" dy="4" text-anchor="end">${shortNumber(value)}${unit}</text>`)
  }
  for (let tick = 0; tick <= TICKS; tick++) {
    const atMs = fromMs + ((toMs - fromMs) * tick) / TICKS
    const anchor = tick === 0 ? 'start' : tick === TICKS ? 'end' : 'middle'
    parts.push(
      `<text x="${scale.x(atMs)}" y="${HEIGHT - 8}" text-anchor="${anchor}">${clockTime(atMs)}</text>`,
    )
  }
  return parts.join('')
}

const shortNumber = (value: number): string =>
  Math.abs(value) >= 10_000 ? `${Number((value / 1_000).toPrecision(4))}k` : `${Number(value.toPrecision(4))}`

const svg = (title: string, body: string): string =>
  `<div class="wide"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeText(title)}"><title>${escapeText(title)}</title>${body}</svg></div>`

/** Lines that keep their value until the next point. */
export function stepChart(
  title: string,
  series: readonly Series[],
  { fromMs, toMs, start }: { fromMs: number; toMs: number; start: number },
): string {
  let [least, most] = [start, start]
  for (const { points } of series)
    for (const { value } of points) [least, most] = [Math.min(least, value), Math.max(most, value)]
  const bounds = { fromMs, toMs, ...roundBounds(least, most), unit: '' }
  const scale = scaleOf(fromMs, toMs, bounds.low, bounds.high)
  const lines = series.map(({ name, colour, points }) => {
    let [path, last] = [`M${scale.x(fromMs)} ${scale.y(start)}`, start]
    for (const { atMs, value } of points) {
      path += `H${scale.x(atMs)}V${scale.y(value)}`
      last = value
    }
    return `<path class="line ${colour}" d="${path}H${scale.x(toMs)}"><title>${escapeText(name)}: ${shortNumber(last)}</title></path>`
  })
  return svg(title, axes(scale, bounds) + lines.join(''))
}

/** Points, each in the colour of its kind. */
export function dotChart(
  title: string,
  dots: readonly { atMs: number; value: number; colour: string; name: string }[],
  { fromMs, toMs, high, unit }: { fromMs: number; toMs: number; high: number; unit: string },
): string {
  const bounds = { fromMs, toMs, ...roundBounds(0, high), unit }
  const scale = scaleOf(fromMs, toMs, 0, bounds.high)
  const marks = dots.map(
    ({ atMs, value, colour, name }) =>
      `<circle class="dot ${colour}" cx="${scale.x(atMs)}" cy="${scale.y(Math.min(value, high))}" r="3"><title>${escapeText(name)}</title></circle>`,
  )
  return svg(title, axes(scale, bounds) + marks.join(''))
}

/** Columns over equal parts of the time, each divided by kind. */
export function columnChart<Kind extends string>(
  title: string,
  kinds: readonly { name: Kind; colour: string }[],
  columns: readonly Readonly<Record<Kind, number>>[],
  { fromMs, toMs }: { fromMs: number; toMs: number },
): string {
  const widthMs = Math.max(1, (toMs - fromMs) / columns.length)
  const highest = Math.max(...columns.map((counts) => kinds.reduce((sum, { name }) => sum + counts[name], 0)))
  const bounds = { fromMs, toMs, ...roundBounds(0, highest, true), unit: '' }
  const scale = scaleOf(fromMs, toMs, 0, bounds.high)
  const parts: string[] = []
  for (const [column, counts] of columns.entries()) {
    const [x, next] = [column, column + 1].map((at) => Number(scale.x(fromMs + at * widthMs))) as [
      number,
      number,
    ]
    let below = 0
    for (const { name, colour } of kinds) {
      const count = counts[name]
      if (count === 0) continue
      const [bottom, top] = [Number(scale.y(below)), Number(scale.y(below + count))]
      const size = `x="${x.toFixed(1)}" y="${top.toFixed(1)}" width="${Math.max(1, next - x - 1).toFixed(1)}" height="${(bottom - top).toFixed(1)}"`
      parts.push(`<rect class="area ${colour}" ${size}><title>${count} ${escapeText(name)}</title></rect>`)
      below += count
    }
  }
  return svg(title, axes(scale, bounds) + parts.join(''))
}
