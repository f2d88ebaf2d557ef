// Stops the running work on Ctrl-C, SIGTERM, a closed terminal or a time limit, and remembers which of them it was.
import type { Terminal } from './terminal.ts'

/** The work was stopped by a signal or a time limit. */
export class Stopped extends Error {
  readonly reason: 'interrupted' | 'timedOut'

  constructor(reason: Stopped['reason'], afterMs = 0) {
    super(reason === 'timedOut' ? `ended after ${afterMs / 1_000} s; see --timeout` : 'interrupted')
    this.reason = reason
  }
}

/** Can stop one piece of work. */
export class Stop {
  /** Interrupts what is running, where that does not follow `signal`. The work sets it. */
  act: () => void = () => {}
  readonly #stopping = new AbortController()
  /** Is aborted with Stopped once the work has to stop. */
  readonly signal: AbortSignal = this.#stopping.signal
  readonly #timer: NodeJS.Timeout | undefined
  readonly #forget: () => void

  /** `timeoutMs` 0 means no time limit. */
  constructor(terminal: Terminal, timeoutMs = 0) {
    if (timeoutMs > 0)
      this.#timer = setTimeout(() => this.#stop(new Stopped('timedOut', timeoutMs)), timeoutMs)
    this.#forget = terminal.onInterrupt(() => this.#stop(new Stopped('interrupted')))
  }

  /** Throws Stopped once the work has to stop. */
  check(): void {
    this.signal.throwIfAborted()
  }

  /** Runs the work. An error that `isEnd` recognises as caused by the interruption becomes Stopped. */
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
      clearTimeout(this.#timer)
      this.#forget()
    }
  }

  #stop(reason: Stopped): void {
    this.#stopping.abort(reason)
    this.act()
  }
}
