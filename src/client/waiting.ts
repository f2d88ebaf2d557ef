// Time limits, waits that can be aborted, and the back-off between attempts.
import { BACKOFF_MS_MAX, BACKOFF_MS_MIN } from './limits.ts'

/** The longest time that a timer can be told, ms: a longer one would fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1

/** Calls `act` after `ms`, however many: Infinity is never. @returns what takes that back */
function after(ms: number, act: () => void): () => void {
  const timerMs = Math.min(ms, TIMER_MS_MAX)
  let stop = () => clearTimeout(timer)
  const timer = setTimeout(() => {
    if (ms > timerMs) stop = after(ms - timerMs, act)
    else act()
  }, timerMs)
  return () => stop()
}

/**
 * A signal that is aborted when a time has passed or when the caller's own signal is. `end` must be called: until then a timer
 * runs and the caller's signal refers to this one.
 */
export class Deadline {
  readonly #controller = new AbortController()
  readonly #parent: AbortSignal | undefined
  #stop: () => void = () => {}
  /** Whether the time has passed. */
  isOver = false

  constructor(ms: number, parent?: AbortSignal) {
    this.#parent = parent
    if (parent?.aborted) this.#follow()
    else parent?.addEventListener('abort', this.#follow)
    this.restart(ms)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Begins to count anew. */
  restart(ms: number): void {
    this.#stop()
    this.#stop = after(ms, () => {
      this.isOver = true
      this.#controller.abort()
    })
  }

  /** Stops counting until `restart`. */
  pause(): void {
    this.#stop()
  }

  /** Ends the request, if it is still running, and everything that waits for it. */
  end(): void {
    this.#stop()
    this.#parent?.removeEventListener('abort', this.#follow)
    this.#controller.abort()
  }

  readonly #follow = (): void => this.#controller.abort(this.#parent?.reason)
}

/** Resolves after `ms`. Rejects with the reason of the signal when it is aborted. */
export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const end = (): void => {
      stop()
      reject(signal?.reason)
    }
    const stop = after(ms, () => {
      signal?.removeEventListener('abort', end)
      resolve()
    })
    signal?.addEventListener('abort', end, { once: true })
  })
}

/** The longest and the shortest back-off, ms. */
export interface BackoffBounds {
  minMs: number
  maxMs: number
}
export const BACKOFF: BackoffBounds = { minMs: BACKOFF_MS_MIN, maxMs: BACKOFF_MS_MAX }

/** The wait before the attempt after `failures` (from 1): doubles up to a maximum, of which a random half is taken off, so that
 *  clients that failed together do not return together. */
export function backoffMs(failures: number, { minMs, maxMs }: BackoffBounds): number {
  const longestMs = Math.min(maxMs, minMs * 2 ** Math.min(failures, 30))
  return longestMs * (0.5 + Math.random() / 2)
}
