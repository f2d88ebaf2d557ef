// Requests that wait for market time.

import { within } from '../lib/wait.ts'
import type { ServiceError } from '../schema/errors.ts'
import { TIME_WAIT_LOOK_MS, TIME_WAIT_MS_MAX, TIME_WAITS_MAX } from './limits.ts'
import { overloaded } from './response/rate-limit-headers.ts'

interface Waiting {
  untilMs: number
  key: string
  wake(): void
}

export class TimeWaits {
  readonly #market: { readonly timeMs: number }
  readonly #isStepped: boolean
  readonly #waiting = new Set<Waiting>()
  #timer: NodeJS.Timeout | undefined

  /** @param isStepped whoever takes the market on calls `wakeNext` after each step; otherwise the time is looked at by itself */
  constructor(market: { readonly timeMs: number }, isStepped = false) {
    this.#market = market
    this.#isStepped = isStepped
  }

  /** Requests that wait. */
  get size(): number {
    return this.#waiting.size
  }

  /** With which key each of them came; empty: without one. */
  keys(): string[] {
    return Array.from(this.#waiting, ({ key }) => key)
  }

  /**
   * Resolves when market time is `untilMs`, or after TIME_WAIT_MS_MAX: whoever has to wait longer asks again. Where the market is
   * stepped, one whose time has come waits for its turn instead, however long those before it take.
   * @param onGone is given what ends the wait of a client that has disconnected. @throws ServiceError `overloaded`
   */
  async until(untilMs: number, onGone: (gone: () => void) => void, key = ''): Promise<void> {
    if (this.#market.timeMs >= untilMs) return
    if (this.#waiting.size >= TIME_WAITS_MAX) throw tooMany()
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = { untilMs, key, wake: resolve }
    this.#waiting.add(waiting)
    if (!this.#isStepped) this.#timer ??= setInterval(() => this.#wakeDue(), TIME_WAIT_LOOK_MS)
    onGone(resolve)
    await within(TIME_WAIT_MS_MAX, promise)
    if (this.#isStepped && this.#market.timeMs >= untilMs) await promise
    this.#waiting.delete(waiting)
    if (this.#waiting.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Whether there is one whose time has come. */
  get isDue(): boolean {
    return this.#due().length > 0
  }

  /**
   * Ends the wait that was due first of those whose time has come; of equal ones that whose key is of the lowest rank, then the one that
   * came first. @returns whether there was one
   */
  wakeNext(rankOf: (key: string) => number): boolean {
    const [next] = this.#due().sort((a, b) => a.untilMs - b.untilMs || rankOf(a.key) - rankOf(b.key))
    if (next === undefined) return false
    this.#waiting.delete(next)
    next.wake()
    return true
  }

  /** Ends every wait, before its time. */
  wakeAll(): void {
    for (const { wake } of this.#waiting) wake()
  }

  #wakeDue(): void {
    for (const { wake } of this.#due()) wake()
  }

  #due(): Waiting[] {
    const { timeMs } = this.#market
    return [...this.#waiting].filter(({ untilMs }) => untilMs <= timeMs)
  }
}

const tooMany = (): ServiceError =>
  overloaded(`${TIME_WAITS_MAX} requests wait for market time already; ask without until, or try again.`)
