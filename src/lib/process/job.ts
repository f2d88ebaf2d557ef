// A job: a task for a process of its own, and the chunks and the result that come of it. A job that is stopped, takes too long or
// fails ends its process, so that nothing of it goes on.

import type { ChildProcess } from 'node:child_process'
import { assert } from '../assert.ts'
import { errorMessage } from '../error-text.ts'
import type { StartOptions } from './start-process.ts'

/** Why a job has no result. */
export type JobFault =
  /** It waited too long for its turn. */
  | 'waited'
  | 'not started'
  | 'late'
  | 'stopped'
  /** No job is begun any more. */
  | 'closing'
  /** Its process ended by itself. */
  | 'ended'
  /** Its work threw. */
  | 'failed'

/** What the process tells of an error: its message, and what else the caller needs to know. */
export interface Failure {
  message: string
}

export class JobError extends Error {
  readonly fault: JobFault
  /** Of a job that has failed. */
  readonly failure: Failure | null

  constructor(fault: JobFault, message: string, failure: Failure | null = null) {
    super(message)
    this.fault = fault
    this.failure = failure
  }
}

export interface JobOptions<Task> extends StartOptions {
  /** For errors, such as `the process of the checkpoint`. */
  name: string
  /** How long a job may take, ms, its reader's time included. */
  msMax: number
  /** How long a job may wait for its turn, ms; default: as long as it takes. */
  waitMsMax?: number
  /** Chunks that a job may send before they are taken; default: one. */
  chunksAhead?: number
  /** The error of a job, once for each that has one; default: the same. */
  explain?(error: JobError): Error
  /** Removes what the job of a task has left, once no process works on it. Never rejects. */
  cleanUp?(task: Task): Promise<void>
}

/** `more`: a chunk was taken. */
export type ToWorker<Task> = { task: Task; chunksAhead: number } | 'more'

/** Chunks, then what came of the task. After that the process can take another one. */
export type FromWorker<Result, Chunk> = { chunk: Chunk } | { result: Result } | { failure: Failure }

export class Job<Task, Result, Chunk = never> {
  /** What its work returned. Rejects where there is nothing. */
  readonly result: Promise<Result>
  /** Resolves once its process is free or has ended, and all chunks were taken or are not wanted. */
  readonly ended: Promise<void>
  /** Chunks that were not taken yet. */
  readonly held: Chunk[] = []
  /** When its turn came, by `performance.now()`; null: it has not. */
  beganMs: number | null = null
  readonly #task: Task
  readonly #options: JobOptions<Task>
  readonly #result = Promise.withResolvers<Result>()
  readonly #ended = Promise.withResolvers<void>()
  #reader: PromiseWithResolvers<Chunk | null> | null = null
  #process: ChildProcess | null = null
  #timer: NodeJS.Timeout | undefined
  /** The result is there, or never will be. */
  #isDecided = false
  #error: Error | null = null
  /** No process works on it, and nothing is left of it. */
  #isTidy = true

  constructor(task: Task, options: JobOptions<Task>) {
    this.#task = task
    this.#options = options
    this.result = this.#result.promise
    this.ended = this.#ended.promise
    // Whoever reads the chunks need not look at the result.
    this.result.catch(() => {})
    if (options.waitMsMax !== undefined) this.#limit('waited', 'was not free for', options.waitMsMax)
  }

  /** The next chunk; null at the end. Rejects as the result does. */
  async next(): Promise<Chunk | null> {
    assert(this.#reader === null, 'one reader at a time')
    const chunk = this.held.shift()
    if (chunk !== undefined) {
      this.#askForMore()
      this.#settle()
      return chunk
    }
    if (this.#error !== null) throw this.#error
    if (this.#isDecided) return null
    this.#reader = Promise.withResolvers()
    return this.#reader.promise
  }

  /** Gives the job up, and ends its process at once. May be called at any time. */
  stop(): void {
    this.fail('stopped', 'was stopped')
  }

  /** Its turn has come. @param startProcess gives a process, or throws */
  begin(startProcess: () => ChildProcess): void {
    if (this.#isDecided) return
    this.beganMs = performance.now()
    this.#limit('late', 'took more than', this.#options.msMax)
    try {
      this.#process = startProcess()
    } catch (error) {
      this.fail('not started', `could not be started: ${errorMessage(error)}`)
      return
    }
    this.#isTidy = false
    // Where this fails the process ends, or has ended.
    this.#process.send({ task: this.#task, chunksAhead: this.#options.chunksAhead ?? 1 }, () => {})
  }

  /** Takes what its process has sent. @returns whether that was the result */
  receive(message: FromWorker<Result, Chunk>): boolean {
    if (this.#isDecided) return false
    if ('failure' in message) this.fail('failed', message.failure.message, message.failure)
    else if ('result' in message) {
      this.#result.resolve(message.result)
      this.#reader?.resolve(null)
      this.#decide()
      return true
    } else if (this.#reader === null) this.held.push(message.chunk)
    else {
      this.#reader.resolve(message.chunk)
      this.#reader = null
      this.#askForMore()
    }
    return false
  }

  /** It has no result, or its reader does not get all chunks. */
  fail(fault: JobFault, text: string, failure: Failure | null = null): void {
    if (this.#isDecided && this.held.length === 0) return
    const message = failure === null ? `${this.#options.name} ${text}` : text
    const error = new JobError(fault, message, failure)
    this.#error = this.#options.explain?.(error) ?? error
    this.held.length = 0
    this.#result.reject(this.#error)
    this.#reader?.reject(this.#error)
    this.#process?.kill('SIGKILL')
    this.#decide()
  }

  /** Its process is free, or has ended. @param how for the error, where it has no result yet */
  async leave(how: string): Promise<void> {
    if (!this.#isDecided) this.fail('ended', how)
    this.#process = null
    await this.#options.cleanUp?.(this.#task)
    this.#isTidy = true
    this.#settle()
  }

  #limit(fault: JobFault, what: string, ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.fail(fault, `${what} ${ms} ms`), ms)
  }

  #askForMore(): void {
    if (!this.#isDecided) this.#process?.send('more', () => {})
  }

  #decide(): void {
    this.#isDecided = true
    this.#reader = null
    this.#settle()
  }

  #settle(): void {
    if (!this.#isDecided || this.held.length > 0) return
    clearTimeout(this.#timer)
    if (this.#isTidy) this.#ended.resolve()
  }
}
