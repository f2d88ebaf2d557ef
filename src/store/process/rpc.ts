// The server's end of the connection to one lake process: sends requests and matches replies. Every request is settled: by
// its reply, by its time limit, or by the end of the process.

import type { ChildProcess } from 'node:child_process'
import { errorMessage } from '../../lib/error-text.ts'
import { unlessLate, within } from '../../lib/wait.ts'
import { StoreError, unavailable } from '../errors.ts'
import { LAKE_PROCESS_EXIT_MS } from '../limits.ts'
import type { LakeTrouble, LogLine } from '../types.ts'
import { forkLakeProcess } from './fork.ts'
import type { FromLakeProcess, LakeProcessOptions, Reply, RequestKind, Requests } from './protocol.ts'

export interface LakeProcessEvents {
  log(line: LogLine): void
  /** The list of what is wrong with the lake has changed. */
  onTrouble(trouble: LakeTrouble): void
  /** Called once, when the process has ended for any reason. */
  onExit(ended: LakeProcess): void
}

/** @param waiting a process that was forked before, if it still runs */
function startChild(waiting: ChildProcess | null): ChildProcess {
  try {
    return waiting?.connected ? waiting : forkLakeProcess()
  } catch (error) {
    // `fork` throws some errors and reports the others as an event.
    throw unavailable(`the lake process could not be started: ${errorMessage(error)}`)
  }
}

export class LakeProcess {
  readonly #child: ChildProcess
  readonly #pending = new Map<number, Pick<PromiseWithResolvers<unknown>, 'resolve' | 'reject'>>()
  readonly #exited = Promise.withResolvers<void>()
  readonly #log: (line: LogLine) => void
  #lastId = 0
  #hasEnded = false

  /** @param waiting a process that was forked before and is used by nobody; null: one is forked now */
  constructor(
    options: LakeProcessOptions,
    { log, onTrouble, onExit }: LakeProcessEvents,
    waiting: ChildProcess | null = null,
  ) {
    this.#log = log
    this.#child = startChild(waiting)
    // Where this fails the first request does too, or the process ends.
    this.#child.send(options, () => {})
    this.#child.on('message', (message: FromLakeProcess) => {
      if ('log' in message) log(message.log)
      else if ('trouble' in message) onTrouble(message.trouble)
      else this.#settle(message)
    })
    const onEnd = (): void => {
      if (this.#hasEnded) return
      this.#hasEnded = true
      this.#rejectPending('the lake process ended before it answered')
      onExit(this)
      this.#exited.resolve()
    }
    this.#child.once('exit', onEnd)
    this.#child.once('error', (error) => {
      log({ level: 'error', message: 'the lake process failed', fields: { error: String(error) } })
      // A process that could not be started emits no exit.
      if (this.#child.pid === undefined) onEnd()
    })
  }

  /** Rejects with `unavailable` where the process has ended, ends meanwhile, or does not reply within `timeoutMs`. */
  async request<K extends RequestKind>(
    kind: K,
    ask: Requests[K]['ask'],
    timeoutMs: number,
  ): Promise<Requests[K]['answer']> {
    if (this.#hasEnded || !this.#child.connected) throw unavailable('the lake process is being restarted')
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.#pending.set(id, { resolve, reject })
    try {
      this.#child.send({ id, kind, ask }, (error) => {
        // The request itself is rejected when the process ends, or by its time limit.
        if (error !== null)
          this.#log({
            level: 'warn',
            message: 'a request could not be sent to the lake process',
            fields: { kind, error: error.message },
          })
      })
      const answer = await unlessLate(timeoutMs, promise, () => {
        throw unavailable(`the lake process did not answer (${kind}) within ${timeoutMs} ms`)
      })
      // The protocol guarantees the type: a reply has the answer to the request of its number.
      return answer as Requests[K]['answer']
    } finally {
      this.#pending.delete(id)
    }
  }

  /**
   * Waits up to `timeoutMs` for the process to end, then kills it. The kernel ends a killed process only after its pending
   * disk operation: where a disk hangs it may not end at all. So this waits LAKE_PROCESS_EXIT_MS at most, logs an error and
   * resolves. Requests are rejected by then, and a later start waits for the old process (PREDECESSOR_WAIT_MS) or is refused.
   */
  async end(timeoutMs: number): Promise<void> {
    if (this.#hasEnded) return
    if (await within(timeoutMs, this.#exited.promise)) return
    this.#child.kill('SIGKILL')
    if (!(await within(LAKE_PROCESS_EXIT_MS, this.#exited.promise))) this.#abandon()
  }

  #abandon(): void {
    this.#log({
      level: 'error',
      message: 'the lake process was killed and has not ended: its disk may hang; it is not waited for',
      fields: { pid: this.#child.pid },
    })
    this.#rejectPending('the lake process did not end')
    // It must not keep the server from exiting.
    this.#child.unref()
    if (this.#child.connected) this.#child.disconnect()
  }

  #settle(reply: Reply): void {
    const pending = this.#pending.get(reply.id)
    if (reply.ok) pending?.resolve(reply.answer)
    else pending?.reject(new StoreError(reply.code, reply.message))
  }

  #rejectPending(reason: string): void {
    for (const { reject } of this.#pending.values()) reject(unavailable(reason))
  }
}
