// Has requests carried out by another node, and tries again where that is safe, so that clients see what they would see of a
// single process.
import { setTimeout as sleep } from 'node:timers/promises'
import { NO_BYTES } from '../../http/context.ts'
import { overloaded } from '../../http/response/rate-limit-headers.ts'
import type { Log } from '../../lib/log.ts'
import { SingleFlight } from '../../lib/single-flight.ts'
import type { Bus } from '../bus.ts'
import { TroubleLog } from '../trouble-log.ts'
import { UnansweredError, unavailable } from './errors.ts'
import {
  ABSENCE_LOOK_MS,
  ANSWER_MS_MAX,
  APPLIED_WAIT_MS_MAX,
  ASK_MS_MAX,
  PASSED_ON_MAX,
  RETRY_MS_TOTAL,
  RETRY_PAUSE_MS,
  UNREACHABLE_MS_MAX,
  WRITER_GONE_MS,
  WRITER_HOLD_MS,
} from './limits.ts'
import type { NodeAddress } from './node-gate.ts'
import { NodeHttp, type PassedAnswer, type PassedRequest } from './node-http.ts'
import { type Position, positionOf } from './position.ts'
import { ask } from './questions.ts'

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
  readonly #asking = new SingleFlight(() => this.#ask(), 0)
  readonly #looking: NodeJS.Timeout
  /** As the writer has told it; null: it is to be asked. */
  #writer: NodeAddress | null = null
  /** The run of which the stream told when it was asked. */
  #askedInRun: string | null = null
  /** Whether the bus told of no writer when it was asked. */
  #hasNobody = false
  /** All who try again do so together, and one asks for all of them. */
  #pause: Promise<void> | null = null
  /** Requests that are not answered yet. */
  inFlight = 0

  constructor(options: PassingOnOptions) {
    this.#options = options
    this.#troubles = new TroubleLog(
      options.log,
      'warn',
      'the writer is not reached at its address',
      'the writer is reached at its address',
    )
    this.#looking = setInterval(() => this.#giveUp(), ABSENCE_LOOK_MS).unref()
  }

  /** Why the writer was not reached at its address the last time, as a sentence; null: it was, or there is none. */
  get trouble(): string | null {
    return this.#hasNobody ? null : this.#troubles.trouble
  }

  /** Whether the last writer that there was is not known to be reached at its address. That it has ended changes nothing. */
  get isUnreached(): boolean {
    return this.#troubles.trouble !== null
  }

  /** Asks the writer for a checkpoint of now. Rejects where there is no writer that begins one. */
  async askCheckpoint(): Promise<void> {
    const { bus } = this.#options
    await ask(bus, bus.names.writer, 'checkpoint', ASK_MS_MAX)
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
    clearInterval(this.#looking)
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
   * Has a node that keeps a list carry out a request, once: the first one that says so. Null: none keeps it.
   * @param findMsMax how long that may take to be said
   * @throws UnansweredError; ServiceError as `toWriter`
   */
  toKeeper(list: string, request: PassedRequest, findMsMax: number): Promise<PassedAnswer | null> {
    const { bus } = this.#options
    return this.#counted(async () => {
      const node = await ask(bus, bus.names.list(list), 'address', findMsMax).catch((error) => {
        if (isNobody(error)) return null
        throw error
      })
      return node && this.#http.send(node, request)
    })
  }

  /** Carries out `send`, which counts as a request that is not answered yet. */
  async #counted<Result>(send: () => Promise<Result>): Promise<Result> {
    if (this.inFlight >= PASSED_ON_MAX)
      throw overloaded('The server passes on as many requests as it may; try again.')
    this.inFlight++
    try {
      return await send()
    } finally {
      this.inFlight--
    }
  }

  async #repeat(request: PassedRequest): Promise<PassedAnswer> {
    const untilMs = performance.now() + RETRY_MS_TOTAL
    /** Whether it may have been carried out by an attempt whose answer was lost. */
    let isDoubtful = false
    let unreachableMs: number | null = null
    for (;;) {
      const made = await this.#attempt(request).catch((error: unknown) => {
        if (error instanceof UnansweredError) return error
        throw isDoubtful ? unavailable(true) : error
      })
      const reason = made instanceof UnansweredError ? made.reason : null
      if (!(made instanceof UnansweredError)) {
        if (!isDoubtful || !UNDECIDED_STATUSES.includes(made.status)) return made
        discard(made)
      } else if (request.repeats !== 'read') isDoubtful ||= made.mayHaveArrived
      const nowMs = performance.now()
      if (reason === 'unreachable') unreachableMs ??= nowMs
      const mayRepeat = isDoubtful
        ? request.repeats !== 'once'
        : this.#mayPass(reason, nowMs - (unreachableMs ?? nowMs))
      if (!mayRepeat || nowMs + RETRY_PAUSE_MS >= untilMs || request.signal?.aborted)
        throw unavailable(isDoubtful)
      this.#pause ??= sleep(RETRY_PAUSE_MS).then(() => {
        this.#pause = null
      })
      await this.#pause
    }
  }

  /** Whether what has certainly not been carried out is tried again. A writer that ends is back, or replaced, within seconds most often. */
  #mayPass(reason: UnansweredError['reason'] | null, unreachableForMs: number): boolean {
    const { stream } = this.#options
    if (reason === 'nobody') return stream !== null && stream.silentMs() < WRITER_HOLD_MS
    if (reason === 'unreachable') return unreachableForMs < UNREACHABLE_MS_MAX
    return reason === 'silent' || reason === 'late' || reason === 'foreign'
  }

  /** @throws UnansweredError; ServiceError as `toWriter` */
  async #attempt(request: PassedRequest): Promise<PassedAnswer> {
    const writer = await this.#askWriter()
    try {
      const answer = await this.#http.send(writer, request, true)
      this.#troubles.note(null)
      return answer
    } catch (error) {
      // Who has left says nothing of the writer.
      if (!(error instanceof UnansweredError) || request.signal?.aborted) throw error
      // While the bus is away nobody tells of another one, and this one may answer the next request.
      const { isConnected } = this.#options.bus.watch
      if (isConnected && this.#writer === writer) this.#writer = null
      // Who got the request, and has not answered in time, is at its address.
      if (error.mayHaveArrived)
        this.#troubles.note(error.message + (error.reason === 'late' ? '' : ADDRESS_HINT))
      // One that has ended is not told of any more, which is no fault of its address. Another one may be elsewhere by now.
      else if (isConnected && isSame(await this.#askWriter(), writer))
        this.#troubles.note(error.message + ADDRESS_HINT)
      throw error
    }
  }

  /** An answer that does not come, since the writer has ended meanwhile, is not waited for. */
  #giveUp(): void {
    const silentMs = this.#options.stream?.silentMs() ?? 0
    // What was sent later went to a process that began meanwhile.
    if (silentMs >= WRITER_GONE_MS) this.#http.giveUp(performance.now() - silentMs + WRITER_GONE_MS / 2)
  }

  /** One asks for all who wait. @throws UnansweredError, ServiceError */
  #askWriter(): Promise<NodeAddress> {
    // One that another has followed may still answer: it is cut off from the bus, and does not know it yet.
    const runId = this.#options.stream?.runId() ?? null
    if (runId !== this.#askedInRun) this.#writer = null
    this.#askedInRun = runId
    return this.#writer === null ? this.#asking.get() : Promise.resolve(this.#writer)
  }

  async #ask(): Promise<NodeAddress> {
    const { bus, writerUrl } = this.#options
    try {
      const told = await ask(bus, bus.names.writer, 'address', ASK_MS_MAX)
      this.#hasNobody = false
      this.#writer = writerUrl === '' ? told : { ...told, url: writerUrl }
      return this.#writer
    } catch (error) {
      this.#hasNobody = isNobody(error)
      throw error
    }
  }
}

const isNobody = (error: unknown): boolean => error instanceof UnansweredError && error.reason === 'nobody'
const isSame = (one: NodeAddress, other: NodeAddress): boolean =>
  one.nodeId === other.nodeId && one.url === other.url
