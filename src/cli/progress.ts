// Progress on standard error: a bar on a terminal, else a plain line now and then.
import { Presets, SingleBar } from 'cli-progress'
import { PROGRESS_LINE_MS, PROGRESS_MS } from './limits.ts'
import type { Terminal } from './terminal.ts'

export interface Progress {
  /** Rows done since the beginning. */
  set(done: number): void
  /** Removes the bar. */
  end(): void
}

const FORMAT = '{bar} {percentage}% | {value}/{total} rows | {eta_formatted} left'

function bar(total: number, { stderr }: Terminal): Progress {
  const options = {
    format: FORMAT,
    stream: stderr,
    clearOnComplete: true,
    hideCursor: true,
  }
  const shown = new SingleBar(
    { ...options, fps: 1_000 / PROGRESS_MS, etaBuffer: 50, emptyOnZero: true },
    Presets.shades_classic,
  )
  shown.start(total, 0)
  return { set: (done) => shown.update(Math.min(total, done)), end: () => shown.stop() }
}

function lines(total: number, { stderr }: Terminal): Progress {
  let saidAtMs = performance.now()
  return {
    set(done) {
      if (performance.now() - saidAtMs < PROGRESS_LINE_MS) return
      saidAtMs = performance.now()
      const percent = total === 0 ? 100 : Math.floor((100 * Math.min(total, done)) / total)
      stderr.write(`mintlake: ${Math.min(total, done)} of ${total} rows, ${percent} %\n`)
    },
    end() {},
  }
}

/** Shows progress towards `total` rows. */
export const progressOf = (total: number, terminal: Terminal): Progress =>
  terminal.isWatched ? bar(total, terminal) : lines(total, terminal)
