// Has requests carried out by another node, and tries again where that is safe, so that clients see what they would see of a
// single process.
import { setTimeout as sleep } from 'node:timers/promises'
import { NO_BYTES } from '../../http/context.ts'
import type { Log } from '../../lib/log.ts'
import type { Bus } from '../bus.ts'
import { TroubleLog } from '../trouble-log.ts'
import { overloaded, UnansweredError, unavailable } from './errors.ts'
import {
  ANSWER_MS_MAX,
  APPLIED_WAIT_MS_MAX,
  ASK_MS_MAX,
  PASSED_ON_MAX,
  RETRY_MS_TOTAL,
  RETRY_PAUSE_MS,
  UNREACHABLE_MS_MAX,
} from './limits.ts'
import type { NodeAddress } from './node-gate.ts'
import { NodeHttp, type PassedAnswer, type PassedRequest } from './node-http.ts'
import { type Position, positionOf } from './position.ts'
import { ask, ForeignAnswerError } from './questions.ts'
import { WriterAbsence } from './writer-absence.ts'

export interface StreamOfWriter {
  /** For how long it has had nothing of the writer, ms; 0: it has, or that is not known at present. */
  silentMs(): number
  /** Of the writer that has published last; null: it was not told yet. */
  runId(): string | null
}

export interface PassingOnOptions {
  bus: Bus
  /** Where the writer is reached instead of where it says; '': there. */
  writerUrl: string
  /** Resolves when this node has applied that, and after `msMax` in any case. */
  untilApplied(position: Position, msMax: number): Promise<void>
  /** What the stream tells of the writer; null: nothing is known, and nobody waits for one. */
  stream: StreamOfWriter | null
  log: Log
}

/** In doubt these say nothing of the request itself: it is being carried out, or the writer is not ready yet. */
const UNDECIDED_STATUSES = [409, 503]

const ADDRESS_HINT =
  ' (its --host or --node-url says where it is; --reader writer-url of this reader says otherwise)'

const LOOK: PassedRequest = {
  method: 'GET',
  path: '/readyz',
  query: '',
  headers: {},
  body: NO_BYTES,
  repeats: 'read',
  answerMsMax: ANSWER_MS_MAX,
}

/** Gives an answer up. */
export const discard = ({ body }: PassedAnswer): void => {
  if (!Buffer.isBuffer(body)) body.stop()
}

export class PassingOn {
  readonly #troubles: TroubleLog
  readonly #options: PassingOnOptions
  readonly #http = new NodeHttp()
  readonly #absence: WriterAbsence | null
  /** As the writer has told it; null: it is to be asked. */
  #writer: NodeAddress | null = null
  /** The run of which the stream told when it was asked. */
  #askedInRun: string | null = null
  #asking: Promise<NodeAddress> | null = null
  /** Whether the bus told of no writer when it was asked. */
  #hasNobody = false
  #inFlight = 0

  constructor(options: PassingOnOptions) {
    const { stream, log } = options
    this.#options = options
    this.#troubles = new TroubleLog(
      log,
      'warn',
      'the writer is not reached at its address',
      'the writer is reached at its address',
    )
    const isThere = () => this.#isThere('address')
    this.#absence = stream && new WriterAbsence(() => stream.silentMs(), isThere)
  }

  /** Why the writer was not reached at its address the last time, as a sentence; null: it was, or there is none. */
  get trouble(): string | null {
    return this.#hasNobody ? null : this.#troubles.trouble
  }

  /** Whether the last writer that there was is not known to be reached at its address. That it has ended changes nothing. */
  get isUnreached(): boolean {
    return this.#troubles.trouble !== null
  }

  /** Requests that are not answered yet. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Asks the writer for a checkpoint of now. @returns false where there is no writer that begins one */
  askCheckpoint(): Promise<boolean> {
    return this.#isThere('checkpoint')
  }

  /** Looks whether the writer is reached at its address, so that an operator knows before a client does. Never rejects. */
  async look(): Promise<void> {
    await this.#attempt(LOOK).then(discard, () => undefined)
  }

  /** Has the writer see a key that was used here. Rejects where it has refused to look. */
  async showKey(key: string): Promise<void> {
    const headers = { Authorization: `Bearer ${key}` }
    const answer = await this.toWriter({ ...LOOK, path: '/api/v1/agent/profile', headers })
    discard(answer)
    if (answer.status !== 200) throw new Error(`the writer answered ${answer.status}`)
  }

  /** Ends the connections to other nodes. */
  close(): void {
    this.#http.close()
  }

  /** Has the writer carry out a request. @throws ServiceError `store_unavailable`, `overloaded`, `invalid_parameter` */
  toWriter(request: PassedRequest): Promise<PassedAnswer> {
    return this.#counted(async () => {
      const answer = await this.#repeat(request)
      const position = positionOf(answer.headers)
      if (position !== null) await this.#options.untilApplied(position, APPLIED_WAIT_MS_MAX)
      return answer
    })
  }

  /**
   * The node that answers at a subject, the first of those that do; null: there is none.
   * @throws UnansweredError where none has said so within `msMax`; ServiceError as `toWriter`
   */
  find(subject: string, msMax: number): Promise<NodeAddress | null> {
    return this.#counted(async () => {
      try {
        return await ask(this.#options.bus, subject, 'address', msMax)
      } catch (error) {
        if (error instanceof UnansweredError && error.reason === 'nobody') return null
        throw error
      }
    })
  }

  /** Sends a request to a node, once. @throws UnansweredError; ServiceError as `toWriter` */
  toNode(address: NodeAddress, request: PassedRequest): Promise<PassedAnswer> {
    return this.#counted(() => this.#http.send(address, request))
  }

  async #isThere(kind: 'address' | 'checkpoint'): Promise<boolean> {
    try {
      const { bus } = this.#options
      await ask(bus, bus.names.writer, kind, ASK_MS_MAX)
      return true
    } catch {
      return false
    }
  }

  /** Carries out `send`, which counts as a request that is not answered yet. */
  async #counted<Result>(send: () => Promise<Result>): Promise<Result> {
    if (this.#inFlight >= PASSED_ON_MAX)
      throw overloaded('The server passes on as many requests as it may; try again.')
    this.#inFlight++
    try {
      return await send()
    } catch (error) {
      if (error instanceof ForeignAnswerError) throw unavailable(false, `${error.message}.`)
      throw error
    } finally {
      this.#inFlight--
    }
  }

  async #repeat(request: PassedRequest): Promise<PassedAnswer> {
    const { repeats } = request
    const untilMs = performance.now() + RETRY_MS_TOTAL
    /** Whether it may have been carried out by an attempt whose answer was lost. */
    let isDoubtful = false
    let unreachableMs: number | null = null
    for (;;) {
      const made = await this.#attemptWhileThere(request).catch((error) => {
        throw isDoubtful ? unavailable(true) : error
      })
      if (!(made instanceof UnansweredError)) {
        if (!isDoubtful || !UNDECIDED_STATUSES.includes(made.status)) return made
        discard(made)
      } else if (repeats !== 'read') isDoubtful ||= made.mayHaveArrived
      const nowMs = performance.now()
      const reason = made instanceof UnansweredError ? made.reason : null
      if (nowMs + RETRY_PAUSE_MS >= untilMs || request.signal?.aborted) throw unavailable(isDoubtful)
      if (reason === 'nobody' && this.#absence !== null) {
        if (await this.#absence.over(untilMs)) continue
        throw unavailable(isDoubtful)
      }
      if (reason === 'unreachable') unreachableMs ??= nowMs
      if (isDoubtful ? repeats === 'once' : !mayPass(reason, nowMs - (unreachableMs ?? nowMs)))
        throw unavailable(isDoubtful)
      await sleep(RETRY_PAUSE_MS)
    }
  }

  /** An answer that does not come, since the writer has ended meanwhile, is not waited for. Rejects with ForeignAnswerError, ServiceError. */
  async #attemptWhileThere(request: PassedRequest): Promise<PassedAnswer | UnansweredError> {
    const attempt = this.#attempt(request).catch((error: unknown) => {
      if (error instanceof UnansweredError) return error
      throw error
    })
    if (this.#absence === null) return attempt
    const made = await this.#absence.answerOf(attempt)
    if (made !== undefined) return made
    this.#writer = null
    attempt.then((late) => late instanceof UnansweredError || discard(late)).catch(() => undefined)
    return new UnansweredError('late')
  }

  /** @throws UnansweredError, ForeignAnswerError */
  async #attempt(request: PassedRequest): Promise<PassedAnswer> {
    const writer = await this.#askWriter()
    try {
      return await this.#send(writer, request)
    } catch (error) {
      const { watch } = this.#options.bus
      if (!(error instanceof UnansweredError) || error.reason !== 'unreachable' || !watch.isConnected)
        throw error
      // One that has ended is not told of any more, which is no fault of its address. Another one may be elsewhere by now.
      const next = await this.#askWriter()
      if (next.nodeId !== writer.nodeId || next.url !== writer.url) return await this.#send(next, request)
      this.#noteTrouble(error)
      throw error
    }
  }

  async #send(address: NodeAddress, request: PassedRequest): Promise<PassedAnswer> {
    try {
      const answer = await this.#http.send(address, request)
      this.#troubles.note(null)
      return answer
    } catch (error) {
      // While the bus is away nobody tells of another one, and this one may answer the next request.
      if (this.#writer === address && this.#options.bus.watch.isConnected) this.#writer = null
      if (error instanceof UnansweredError && error.mayHaveArrived) this.#noteTrouble(error)
      throw error
    }
  }

  /** Who got the request, and has not answered in time, is at its address. */
  #noteTrouble({ message, reason }: UnansweredError): void {
    this.#troubles.note(reason === 'late' ? message : message + ADDRESS_HINT)
  }

  /** One that another has followed may still answer: it is cut off from the bus, and does not know it yet. */
  #knownWriter(): NodeAddress | null {
    const runId = this.#options.stream?.runId() ?? null
    if (runId !== this.#askedInRun) this.#writer = null
    this.#askedInRun = runId
    return this.#writer
  }

  /** One asks for all who wait. @throws UnansweredError, ForeignAnswerError */
  #askWriter(): Promise<NodeAddress> {
    const known = this.#knownWriter()
    if (known !== null) return Promise.resolve(known)
    const { bus, writerUrl } = this.#options
    this.#asking ??= ask(bus, bus.names.writer, 'address', ASK_MS_MAX)
      .then((told) => {
        this.#hasNobody = false
        this.#writer = writerUrl === '' ? told : { ...told, url: writerUrl }
        return this.#writer
      })
      .catch((error: unknown) => {
        this.#hasNobody = error instanceof UnansweredError && error.reason === 'nobody'
        throw error
      })
      .finally(() => {
        this.#asking = null
      })
    return this.#asking
  }
}

/** Whether what has certainly not been carried out is tried again. @param reason null: it was answered */
function mayPass(reason: UnansweredError['reason'] | null, unreachableForMs: number): boolean {
  if (reason === 'unreachable') return unreachableForMs < UNREACHABLE_MS_MAX
  return reason === 'silent' || reason === 'late' || reason === 'foreign'
}
