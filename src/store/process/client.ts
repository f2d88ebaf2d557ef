// The server's access to the lake process. Starts a new process when one ends, with growing delays until one works.

import type { ChildProcess } from 'node:child_process'
import { backoffMs } from '../../lib/backoff.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { Waiters } from '../../lib/waiters.ts'
import { unavailable } from '../errors.ts'
import {
  CLOSE_TIMEOUT_MS,
  LAKE_PROCESS_END_MS,
  OPEN_TIMEOUT_MS,
  RESTART_DELAY_MS,
  RESTART_DELAY_MS_MAX,
} from '../limits.ts'
import type { StatePiece } from '../state/read-state.ts'
import { type LakeTrouble, type LogLine, NO_TROUBLE, type StoreLog } from '../types.ts'
import type { LakeProcessOptions, RequestKind, Requests } from './protocol.ts'
import { LakeProcess } from './rpc.ts'

export interface LakeClientOptions extends LakeProcessOptions {
  /** A lake process that was forked before and waits for its options. */
  forked?: ChildProcess | null
  /** Wall time, whole milliseconds. */
  now(): number
  log: StoreLog
}

export class LakeClient {
  readonly #options: LakeClientOptions
  /** The process that has opened the lake. */
  #process: LakeProcess | null = null
  /** A process that has not opened the lake yet. */
  #starting: LakeProcess | null = null
  #starts = 0
  #failedStarts = 0
  #isClosing = false
  #restartTimer: NodeJS.Timeout | null = null
  /** Requests that wait for a process. */
  readonly #waiters = new Waiters()
  #lastFailure: string | null = null
  #trouble = NO_TROUBLE

  constructor(options: LakeClientOptions) {
    this.#options = options
  }

  get isRunning(): boolean {
    return this.#process !== null
  }

  /** How many processes have been started so far. */
  get starts(): number {
    return this.#starts
  }

  /** Why no process runs; null while one does. */
  get lastFailure(): string | null {
    return this.#process === null ? this.#lastFailure : null
  }

  /** What is wrong with the lake, as last reported by a lake process. */
  get trouble(): LakeTrouble {
    return this.#trouble
  }

  /** Starts the first process. Rejects where that fails. When it ends later, another is started in the background. */
  async open(): Promise<Requests['open']['answer']> {
    try {
      const started = this.#startProcess()
      this.#starting = started
      const opened = await started.request('open', { nowMs: this.#options.now() }, OPEN_TIMEOUT_MS)
      if (this.#isClosing) throw unavailable('the store is closing')
      this.#process = started
      this.#starts++
      this.#failedStarts = 0
      this.#waiters.check()
      return opened
    } catch (error) {
      this.#lastFailure = errorMessage(error)
      await this.#starting?.end(0)
      throw error
    } finally {
      this.#starting = null
    }
  }

  /** The state as of the last flush, once, and before the first flush. One piece is read while the one before it is used. */
  async *savedState(): AsyncGenerator<StatePiece, void, void> {
    const ask = (): Promise<Requests['state']['answer']> => {
      const asked = this.ask('state', {}, OPEN_TIMEOUT_MS)
      // Where the reader gives up meanwhile, nobody waits for it.
      asked.catch(() => {})
      return asked
    }
    for (let asked = ask(); ; ) {
      const { piece } = await asked
      if (piece === null) return
      asked = ask()
      yield piece
    }
  }

  /** Rejects with `unavailable` where no process runs or it does not answer in time. */
  ask<K extends RequestKind>(
    kind: K,
    ask: Requests[K]['ask'],
    timeoutMs: number,
  ): Promise<Requests[K]['answer']> {
    if (this.#process === null) return Promise.reject(unavailable('the lake process is being restarted'))
    return this.#process.request(kind, ask, timeoutMs)
  }

  /** Like `ask`, but waits for a process to start, and asks the next one where a process ends before it answers. */
  async askPatiently<K extends RequestKind>(
    kind: K,
    ask: Requests[K]['ask'],
    timeoutMs: number,
  ): Promise<Requests[K]['answer']> {
    const untilMs = performance.now() + timeoutMs
    for (;;) {
      await this.#waiters.until(() => this.#process !== null, untilMs - performance.now())
      const asked = this.#process
      try {
        return await this.ask(kind, ask, Math.max(1, untilMs - performance.now()))
      } catch (error) {
        if (asked === null || asked === this.#process || performance.now() >= untilMs) throw error
      }
    }
  }

  /** Ends the process: after its current work where `isGraceful`, else at once. Nothing acknowledged is lost either way. */
  async close(isGraceful = true): Promise<void> {
    this.#isClosing = true
    this.#waiters.end()
    if (this.#restartTimer !== null) clearTimeout(this.#restartTimer)
    // Once this returns, another server may use the folder: a process that is starting must be gone.
    await this.#starting?.end(0)
    const last = this.#process
    this.#process = null
    if (last === null) return
    if (!isGraceful) return last.end(0)
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

  /** A failpoint of a test counts for the first process only. */
  #startProcess(): LakeProcess {
    const { forked, now: _now, log: _log, ...settings } = this.#options
    const isFirst = this.#starts === 0
    return new LakeProcess(
      { ...settings, crash: isFirst ? settings.crash : null },
      {
        log: this.#writeLog,
        onTrouble: (trouble) => {
          this.#trouble = trouble
        },
        onExit: (ended) => this.#onExit(ended),
      },
      isFirst ? forked : null,
    )
  }

  readonly #writeLog = ({ level, message, fields }: LogLine): void =>
    this.#options.log[level](fields, message)

  #onExit(ended: LakeProcess): void {
    if (this.#process !== ended) return
    this.#process = null
    this.#lastFailure = 'the lake process ended'
    this.#options.log.error({}, 'the lake process ended; starting another')
    this.#scheduleRestart()
  }

  #scheduleRestart(): void {
    if (this.#isClosing) return
    const delayMs = backoffMs(this.#failedStarts, RESTART_DELAY_MS, RESTART_DELAY_MS_MAX)
    this.#restartTimer = setTimeout(() => void this.#restart(), delayMs)
  }

  async #restart(): Promise<void> {
    try {
      await this.open()
      this.#options.log.info({}, 'the lake process is running again')
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
