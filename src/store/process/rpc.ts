// In: requests to a lake process. Out: its replies, each within a time limit. Never leaves a caller waiting: a late reply
// and a process that ended are answers.
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { messageOf } from '../../lib/messages.ts'
import { StoreError, unavailable } from '../errors.ts'
import { LAKE_PROCESS_ARENAS, LAKE_PROCESS_HEAP_MB } from '../limits.ts'
import type { LakeTrouble } from '../types.ts'
import type {
  FromLakeProcess,
  LakeProcessOptions,
  LogLine,
  Reply,
  RequestKind,
  Requests,
} from './protocol.ts'

export interface LakeProcessEvents {
  log(line: LogLine): void
  /** Something else is wrong with the lake than before. */
  onTrouble(trouble: LakeTrouble): void
  /** Called once, when the process has ended for any reason. */
  onExit(): void
}

interface Pending {
  resolve(answer: unknown): void
  reject(error: StoreError): void
  timer: NodeJS.Timeout
}

const PROGRAM = fileURLToPath(new URL('./main.ts', import.meta.url))

function startChild(options: LakeProcessOptions): ChildProcess {
  try {
    return fork(PROGRAM, [JSON.stringify(options)], {
      execArgv: ['--no-warnings', `--max-old-space-size=${LAKE_PROCESS_HEAP_MB}`],
      // Of glibc; other systems take no notice. What the operator says counts.
      env: { MALLOC_ARENA_MAX: String(LAKE_PROCESS_ARENAS), ...process.env },
      // Bars travel as arrays of numbers, which JSON would spell out.
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
  } catch (error) {
    // Some of what keeps a process from being started is thrown, the rest is told as an event.
    throw unavailable(`the lake process could not be started: ${messageOf(error)}`)
  }
}

export class LakeProcess {
  readonly #child: ChildProcess
  readonly #pending = new Map<number, Pending>()
  readonly #exited: Promise<void>
  readonly #log: (line: LogLine) => void
  #lastId = 0
  #hasEnded = false

  constructor(options: LakeProcessOptions, { log, onTrouble, onExit }: LakeProcessEvents) {
    this.#log = log
    this.#child = startChild(options)
    this.#child.on('message', (message: FromLakeProcess) => {
      if ('log' in message) log(message.log)
      else if ('trouble' in message) onTrouble(message.trouble)
      else this.#settle(message)
    })
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#exited = promise
    const end = (): void => {
      if (this.#hasEnded) return
      this.#refuseAll()
      onExit()
      resolve()
    }
    this.#child.once('exit', end)
    // A process that could not be started has no exit.
    this.#child.once('error', (error) => {
      log({ level: 'error', message: 'the lake process failed', fields: { error: String(error) } })
      if (this.#child.pid === undefined) end()
    })
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  request<K extends RequestKind>(
    kind: K,
    ask: Requests[K]['ask'],
    timeoutMs: number,
  ): Promise<Requests[K]['answer']> {
    if (this.#hasEnded || !this.#child.connected)
      return Promise.reject(unavailable('the lake process is being started anew'))
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id)
        reject(unavailable(`the lake process did not answer (${kind}) within ${timeoutMs} ms`))
      }, timeoutMs)
      this.#pending.set(id, { resolve: resolve as (answer: unknown) => void, reject, timer })
      this.#child.send({ id, kind, ask }, (error) => {
        // Its end is told to every caller; a message that could not be sent is part of that.
        if (error !== null)
          this.#log({
            level: 'warn',
            message: 'the lake process was not reached',
            fields: { kind, error: error.message },
          })
      })
    })
  }

  /** Resolves when the process has ended: of itself, or after `timeoutMs` whatever it is doing. */
  async end(timeoutMs: number): Promise<void> {
    if (this.#hasEnded) return
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), timeoutMs)
    await this.#exited
    clearTimeout(timer)
  }

  #settle(reply: Reply): void {
    const waiting = this.#pending.get(reply.id)
    if (waiting === undefined) return
    this.#pending.delete(reply.id)
    clearTimeout(waiting.timer)
    if (reply.ok) waiting.resolve(reply.answer)
    else waiting.reject(new StoreError(reply.code, reply.message))
  }

  #refuseAll(): void {
    this.#hasEnded = true
    for (const { reject, timer } of this.#pending.values()) {
      clearTimeout(timer)
      reject(unavailable('the lake process ended before it answered'))
    }
    this.#pending.clear()
  }
}
