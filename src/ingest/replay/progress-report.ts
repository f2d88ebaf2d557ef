// How far a replay is, for people: a bar on a terminal, which is drawn over itself, elsewhere a line of the log now and then.
import type { LogLevel } from '../../lib/log.ts'
import { REPLAY_LINE_MS } from '../limits.ts'
import type { FeedLog } from '../types.ts'

export interface ReplayedPart {
  /** Rows or events. */
  done: number
  /** Null where it is not known how many there are. */
  total: number | null
  percent: number | null
  perSecond: number
  /** Time until the end at the rate so far. */
  etaMs: number | null
}

/** Where a bar is drawn. */
export interface BarTerminal {
  write(text: string): unknown
}

const BAR_CELLS = 30
/** Back to the beginning of the line, and clears it. */
const CLEAR_LINE = '\r\x1b[2K'

export class ProgressReport {
  readonly #unit: 'rows' | 'events'
  readonly #log: FeedLog
  readonly #terminal: BarTerminal | null
  readonly #nowMs: () => number
  #saidAtMs: number

  /** @param terminal null: lines go to the log */
  constructor(
    unit: 'rows' | 'events',
    log: FeedLog,
    terminal: BarTerminal | null,
    nowMs = () => performance.now(),
  ) {
    this.#unit = unit
    this.#log = log
    this.#terminal = terminal
    this.#nowMs = nowMs
    this.#saidAtMs = nowMs()
  }

  /** Called about once a second, and at the end. @param details further fields of the line in the log */
  note(part: ReplayedPart, details: object): void {
    if (this.#terminal !== null) {
      this.#terminal.write(`${CLEAR_LINE}${barOf(part)}${tellPart(part, this.#unit)}`)
      return
    }
    if (this.#nowMs() - this.#saidAtMs < REPLAY_LINE_MS) return
    this.#saidAtMs = this.#nowMs()
    this.#log.info(details, `replay: ${tellPart(part, this.#unit)}`)
  }

  /** Removes the bar: what the replay came to is told in the log. */
  end(): void {
    this.#terminal?.write(CLEAR_LINE)
  }
}

function barOf({ percent }: ReplayedPart): string {
  if (percent === null) return ''
  const full = Math.round((BAR_CELLS * percent) / 100)
  return `${'█'.repeat(full)}${'░'.repeat(BAR_CELLS - full)} `
}

/** Such as `45 %, 1234567 of 2700000 rows, 41000 a second, 36 s left`. */
function tellPart({ done, total, percent, perSecond, etaMs }: ReplayedPart, unit: string): string {
  const parts = [
    ...(percent === null ? [] : [`${Math.floor(percent)} %`]),
    total === null ? `${done} ${unit}` : `${done} of ${total} ${unit}`,
    `${perSecond} a second`,
    ...(etaMs === null ? [] : [`${tellTime(etaMs)} left`]),
  ]
  return parts.join(', ')
}

function tellTime(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** The terminal of the program, if it has one and its log is no quiet one. */
export const barTerminal = (level: LogLevel): BarTerminal | null =>
  process.stderr.isTTY === true && (level === 'debug' || level === 'info') ? process.stderr : null
