// In: Ctrl-C, SIGTERM, a time limit. Out: an end of what is running, and the reason for it. Never ends the process.
import type { Terminal } from './terminal.ts'

/** The work was ended from outside. */
export class Stopped extends Error {
  readonly reason: 'interrupted' | 'timedOut'

  constructor(reason: Stopped['reason'], afterMs: number) {
    super(reason === 'timedOut' ? `ended after ${afterMs / 1_000} s; see --timeout` : 'interrupted')
    this.reason = reason
  }
}

/** Watches over one piece of work. */
export class Stop {
  /** Ends what is running; set by the work. */
  act: () => void = () => {}
  readonly #timeoutMs: number
  readonly #timer: NodeJS.Timeout | null
  readonly #forget: () => void
  #reason: Stopped['reason'] | null = null

  /** `timeoutMs` 0: no limit. */
  constructor(terminal: Terminal, timeoutMs = 0) {
    this.#timeoutMs = timeoutMs
    this.#timer = timeoutMs === 0 ? null : setTimeout(() => this.#stop('timedOut'), timeoutMs)
    this.#forget = terminal.onInterrupt(() => this.#stop('interrupted'))
  }

  /** Throws once the work shall end. */
  check(): void {
    if (this.#reason !== null) throw new Stopped(this.#reason, this.#timeoutMs)
  }

  /** Does the work. What fails because the work was ended is told as its end; `isEnd` tells such failures. */
  async during<Result>(
    work: () => Promise<Result>,
    isEnd: (error: unknown) => boolean = () => true,
  ): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      if (isEnd(error)) this.check()
      throw error
    } finally {
      this.#end()
    }
  }

  #end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#forget()
  }

  #stop(reason: Stopped['reason']): void {
    this.#reason ??= reason
    this.act()
  }
}
