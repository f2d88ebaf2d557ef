// In: requests for the lake. Out: their answers, from the lake process there is now. Starts a new process when the old one
// ended, until one works. Never holds anything that a process that ends would take with it.
import { errorMessage } from '../../lib/error-text.ts'
import { unavailable } from '../errors.ts'
import {
  CLOSE_TIMEOUT_MS,
  LAKE_PROCESS_END_MS,
  OPEN_TIMEOUT_MS,
  RESTART_DELAY_MS,
  RESTART_DELAY_MS_MAX,
} from '../limits.ts'
import type { SavedState } from '../state/state-database.ts'
import type { LakeTrouble, StoreLog } from '../types.ts'
import type { LakeProcessOptions, LogLine, RequestKind, Requests } from './protocol.ts'
import { LakeProcess } from './rpc.ts'

export interface LakeClientOptions extends LakeProcessOptions {
  now(): number
  log: StoreLog
}

export class LakeClient {
  readonly #options: LakeClientOptions
  readonly #settings: LakeProcessOptions
  #process: LakeProcess | null = null
  /** The one that has not opened the lake yet. */
  #starting: LakeProcess | null = null
  #starts = 0
  #isClosing = false
  #restarting: NodeJS.Timeout | null = null
  /** Callers that wait for a process. */
  readonly #waiting = new Set<() => void>()
  #lastFailure: string | null = null
  #trouble: LakeTrouble = { setAside: [], retentionHeld: null, stateRebuiltAtMs: null }
  #failedStarts = 0

  constructor(options: LakeClientOptions) {
    const { now: _now, log: _log, ...settings } = options
    this.#options = options
    this.#settings = settings
  }

  get isRunning(): boolean {
    return this.#process !== null
  }

  /** Counts the processes there have been. */
  get starts(): number {
    return this.#starts
  }

  get pid(): number | undefined {
    return this.#process?.pid
  }

  /** Why there is no process just now; null while there is one. */
  get lastFailure(): string | null {
    return this.#process === null ? this.#lastFailure : null
  }

  /** What is wrong with the lake, as the last process that looked has said. */
  get trouble(): LakeTrouble {
    return this.#trouble
  }

  /** Starts the first process. Rejects when that fails; later failures are healed in the background. */
  async open(): Promise<SavedState> {
    const crash = this.#starts === 0 ? this.#settings.crash : null
    let started: LakeProcess | null = null
    try {
      started = new LakeProcess(
        { ...this.#settings, crash },
        {
          log: this.#writeLog,
          onTrouble: (trouble) => {
            this.#trouble = trouble
          },
          onExit: () => {
            if (started !== null) this.#onExit(started)
          },
        },
      )
      this.#starting = started
      const { saved } = await started.request('open', { nowMs: this.#options.now() }, OPEN_TIMEOUT_MS)
      this.#process = started
      this.#starts++
      this.#failedStarts = 0
      for (const done of this.#waiting) done()
      return saved
    } catch (error) {
      this.#lastFailure = errorMessage(error)
      await started?.end(0)
      throw error
    } finally {
      this.#starting = null
    }
  }

  ask<K extends RequestKind>(
    kind: K,
    ask: Requests[K]['ask'],
    timeoutMs: number,
  ): Promise<Requests[K]['answer']> {
    if (this.#process === null) return Promise.reject(unavailable('the lake process is being started anew'))
    return this.#process.request(kind, ask, timeoutMs)
  }

  /** The same, of a process that may still have to start: it is waited for, and asked again when it ended meanwhile. */
  async askPatiently<K extends RequestKind>(
    kind: K,
    ask: Requests[K]['ask'],
    timeoutMs: number,
  ): Promise<Requests[K]['answer']> {
    const until = performance.now() + timeoutMs
    for (;;) {
      await this.#started(until - performance.now())
      const asked = this.#process
      try {
        return await this.ask(kind, ask, Math.max(1, until - performance.now()))
      } catch (error) {
        if (asked === null || asked === this.#process || performance.now() >= until) throw error
      }
    }
  }

  /** Ends the process; where it is `inOrder`, when it has finished what is under way. */
  async close(inOrder = true): Promise<void> {
    this.#isClosing = true
    for (const done of this.#waiting) done()
    if (this.#restarting !== null) clearTimeout(this.#restarting)
    // The folder may be another process's from here on.
    await this.#starting?.end(0)
    const last = this.#process
    this.#process = null
    if (last === null) return
    if (!inOrder) return last.end(0)
    try {
      await last.request('close', {}, CLOSE_TIMEOUT_MS)
      await last.end(LAKE_PROCESS_END_MS)
    } catch (error) {
      this.#options.log.error(
        { error: String(error) },
        'the lake process did not close in order; nothing acknowledged is lost',
      )
      await last.end(0)
    }
  }

  readonly #writeLog = ({ level, message, fields }: LogLine): void =>
    this.#options.log[level](fields, message)

  /** Resolves when there is a process or the time is over. */
  #started(timeoutMs: number): Promise<void> {
    if (this.#process !== null || this.#isClosing) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, timeoutMs)
      this.#waiting.add(done)
    })
  }

  #onExit(ended: LakeProcess): void {
    if (this.#process !== ended) return
    this.#process = null
    this.#lastFailure = 'the lake process ended'
    this.#options.log.error({}, 'the lake process ended; starting another')
    this.#scheduleRestart()
  }

  #scheduleRestart(): void {
    if (this.#isClosing) return
    const delayMs = Math.min(RESTART_DELAY_MS_MAX, RESTART_DELAY_MS * 2 ** this.#failedStarts)
    this.#restarting = setTimeout(() => void this.#restart(), delayMs)
  }

  async #restart(): Promise<void> {
    try {
      await this.open()
      if (this.#isClosing) {
        const started = this.#process
        this.#process = null
        return await started?.end(0)
      }
      this.#options.log.info({}, 'the lake process is at work again')
    } catch (error) {
      if (this.#isClosing) return
      if (this.#failedStarts++ === 0)
        this.#options.log.error(
          { error: String(error) },
          'the lake process could not be started; trying again',
        )
      this.#scheduleRestart()
    }
  }
}
