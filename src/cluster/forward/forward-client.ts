// Has requests carried out by another node, and tries again where that is safe, so that clients see what they would see of a
// single process.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { NatsConnection } from '@nats-io/transport-node'
import { ServiceError } from '../../schema/errors.ts'
import type { BusNames } from '../bus.ts'
import type { ConnectionWatch } from '../connection-watch.ts'
import { chunkBytesOf } from './chunk-bytes.ts'
import {
  APPLIED_WAIT_MS_MAX,
  FORWARDED_MAX,
  REPLY_MS_MAX,
  RETRY_AFTER_MS,
  RETRY_MS_TOTAL,
  RETRY_PAUSE_MS,
  UNREPEATABLE_REPLY_MS_MAX,
} from './limits.ts'
import { NodeLink, type SingleAsk, UnansweredError } from './node-link.ts'
import {
  type AnswerReply,
  ForeignMessageError,
  type ForwardedRequest,
  type Position,
  type Reply,
} from './protocol.ts'
import { RequestGroups } from './request-groups.ts'
import { WriterAbsence } from './writer-absence.ts'

export interface ForwardClientOptions {
  connection: NatsConnection
  watch: ConnectionWatch
  names: BusNames
  /** Resolves when this node has applied that, and after `msMax` in any case. */
  untilApplied(position: Position, msMax: number): Promise<void>
  /** See `WriterAbsenceOptions`; null: nothing is known of the writer, and nobody waits for one. */
  writerSilentMs: (() => number) | null
}

/** A request that another node is to carry out. */
export interface Errand {
  request: Omit<ForwardedRequest, 'call' | 'body'>
  body: Buffer
  /**
   * `read`: it changes nothing. `keyed`: it has an Idempotency-Key, so that it is carried out once however often it arrives.
   * `once`: it is not tried again where it may have been carried out.
   */
  repeats: 'read' | 'keyed' | 'once'
  /** How long one attempt waits for a reply; by default that follows from `repeats`. */
  replyMsMax?: number
  /** Whether nobody waits for the answer any more. */
  isAbandoned(): boolean
}

/** An answer, and where the rest of it is. */
export interface Answered {
  reply: AnswerReply
  subject: string
  call: string
  /** Whether it was sent more than once. */
  isRepeated: boolean
}

interface Attempted {
  reply: Reply
  subject: string
  call: string
}

/** In doubt these say nothing of the request itself: it is being carried out, or the writer is not ready yet. */
const UNDECIDED_STATUSES = [409, 503]

const retryAfter = (ms: number) => ({ 'Retry-After': `${Math.ceil(ms / 1_000)}` })

/** @param mayBeStored whether the request may have been carried out */
export const unavailable = (mayBeStored: boolean, sentence?: string): ServiceError =>
  new ServiceError(
    'store_unavailable',
    sentence ??
      (mayBeStored
        ? 'The writer of this cluster has not answered: the request may have been carried out.'
        : 'The writer of this cluster cannot be reached; try again.'),
    { ...(mayBeStored && { mayBeStored }), retryAfterMs: RETRY_AFTER_MS },
    retryAfter(RETRY_AFTER_MS),
  )

const overloaded = (sentence: string): ServiceError =>
  new ServiceError('overloaded', sentence, { retryAfterMs: 1_000 }, retryAfter(1_000))

export class ForwardClient {
  readonly link: NodeLink
  readonly #options: ForwardClientOptions
  readonly #absence: WriterAbsence | null
  /** Submissions that are on their way to the writer. */
  readonly #submissions: RequestGroups
  #inFlight = 0

  constructor(options: ForwardClientOptions) {
    const { connection, watch, names, writerSilentMs } = options
    this.#options = options
    this.link = new NodeLink(connection, watch)
    this.#submissions = new RequestGroups(this.link, names.writer)
    this.#absence =
      writerSilentMs &&
      new WriterAbsence({ silentMs: writerSilentMs, isThere: () => this.isThere(names.writer) })
  }

  /** Requests that are not answered yet. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Whether a process answers at that subject. */
  isThere(subject: string): Promise<boolean> {
    return this.#isDone(subject, 'ping')
  }

  /** Asks the writer for a checkpoint of now. @returns false where there is no writer that begins one */
  askCheckpoint(): Promise<boolean> {
    return this.#isDone(this.#options.names.writer, 'checkpoint')
  }

  async #isDone(subject: string, kind: 'ping' | 'checkpoint'): Promise<boolean> {
    try {
      return (await this.link.ask(subject, { kind }, REPLY_MS_MAX)).kind === 'done'
    } catch {
      return false
    }
  }

  /**
   * Has the process at `subject` carry out a request.
   * @throws ServiceError `store_unavailable`, `overloaded`, `invalid_parameter`
   */
  async send(subject: string, errand: Errand): Promise<Answered> {
    return this.#counted(async () => {
      const answered = await this.#repeat(subject, errand)
      const { position } = answered.reply
      if (position !== null) await this.#options.untilApplied(position, APPLIED_WAIT_MS_MAX)
      return answered
    })
  }

  /**
   * The id of a node that answers at a subject, the first of those that do; null: there is none.
   * @throws UnansweredError where none has replied within `msMax`; ServiceError as `send`
   */
  find(subject: string, msMax: number): Promise<string | null> {
    return this.#counted(async () => {
      try {
        const reply = await this.link.ask(subject, { kind: 'ping' }, msMax)
        return reply.kind === 'done' ? reply.nodeId : null
      } catch (error) {
        if (error instanceof UnansweredError && error.reason === 'nobody') return null
        throw error
      }
    })
  }

  /** As `send`, once, and whatever the answer is. @throws UnansweredError where there is none; ServiceError as `send` */
  sendOnce(subject: string, errand: Errand): Promise<Answered> {
    return this.#counted(async () => {
      const { reply, ...where } = await this.#attempt(subject, errand)
      if (reply.kind === 'answer') return { reply, ...where, isRepeated: false }
      throw reply.kind === 'refused'
        ? refused(reply.reason, reply.sentence)
        : new ForeignMessageError('the other node has answered something else than it was asked')
    })
  }

  /** Carries out `send`, which counts as a request that is not answered yet. */
  async #counted<Result>(send: () => Promise<Result>): Promise<Result> {
    if (this.#inFlight >= FORWARDED_MAX)
      throw overloaded('The server passes on as many requests as it may; try again.')
    this.#inFlight++
    try {
      return await send()
    } catch (error) {
      if (error instanceof ForeignMessageError) throw unavailable(false, `${error.message}.`)
      throw error
    } finally {
      this.#inFlight--
    }
  }

  async #repeat(subject: string, errand: Errand): Promise<Answered> {
    const untilMs = performance.now() + RETRY_MS_TOTAL
    /** Whether it may have been carried out by an attempt whose answer was lost. */
    let isDoubtful = false
    for (let attempts = 1; ; attempts++) {
      let mayPass = isDoubtful
      let isNobodyThere = false
      try {
        const { reply, ...where } = await this.#attemptWhileThere(subject, errand)
        const isDecided = reply.kind === 'answer' && !UNDECIDED_STATUSES.includes(reply.status)
        if (reply.kind === 'answer' && (isDecided || !isDoubtful))
          return { reply, ...where, isRepeated: attempts > 1 }
        if (reply.kind === 'refused' && !isDoubtful) throw refused(reply.reason, reply.sentence)
      } catch (error) {
        if (!(error instanceof UnansweredError)) throw error
        mayPass ||= error.mayHaveArrived
        isNobodyThere = error.reason === 'nobody'
        if (errand.repeats !== 'read') isDoubtful ||= error.mayHaveArrived
      }
      const isLast = performance.now() + RETRY_PAUSE_MS >= untilMs
      if (isLast || errand.isAbandoned()) throw unavailable(isDoubtful)
      const absence = isNobodyThere ? this.#absenceOf(subject) : null
      if (absence !== null && (await absence.over(untilMs))) continue
      if (absence !== null || errand.repeats === 'once' || !mayPass) throw unavailable(isDoubtful)
      await sleep(RETRY_PAUSE_MS)
    }
  }

  #absenceOf(subject: string): WriterAbsence | null {
    return subject === this.#options.names.writer ? this.#absence : null
  }

  /** @throws UnansweredError, ForeignMessageError */
  async #attemptWhileThere(subject: string, errand: Errand): Promise<Attempted> {
    const attempt = this.#attempt(subject, errand)
    const absence = this.#absenceOf(subject)
    if (absence === null) return attempt
    const made = await absence.answerOf(attempt)
    if (made === undefined) throw new UnansweredError('late')
    return made
  }

  /** @throws UnansweredError, ForeignMessageError */
  async #attempt(at: string, errand: Errand): Promise<Attempted> {
    const { request, body } = errand
    const call = randomUUID()
    const isWhole = body.length <= chunkBytesOf(this.link.connection)
    const target = isWhole ? at : await this.#sendBody(at, call, body)
    const { replyMsMax = errand.repeats === 'once' ? UNREPEATABLE_REPLY_MS_MAX : REPLY_MS_MAX } = errand
    let subject = target
    const asked = { ...request, call, body: isWhole ? body : null }
    const isGrouped = errand.repeats === 'keyed' && target === this.#options.names.writer
    let reply = isGrouped
      ? await this.#submissions.ask(asked)
      : await this.link.ask(target, asked, replyMsMax)
    while (reply.kind === 'pending') {
      subject = this.#options.names.node(reply.nodeId)
      if (errand.isAbandoned()) this.link.tell(subject, { kind: 'cancel', call })
      reply = await this.#askBegun(subject, call)
    }
    // An export that the node made and could not send is no different from one that was lost on its way.
    if (reply.kind === 'refused' && reply.reason === 'failed')
      throw new UnansweredError('late', reply.sentence)
    if (reply.kind === 'answer') subject = this.#options.names.node(reply.nodeId)
    return { reply, subject, call }
  }

  /** Asks for the answer of a request that was begun: whatever happens now, it may have been carried out. */
  async #askBegun(subject: string, call: string): Promise<Reply> {
    try {
      return await this.link.askAgain(subject, { kind: 'next', call, at: 0 })
    } catch (error) {
      throw error instanceof UnansweredError ? new UnansweredError('late', error) : error
    }
  }

  /** Sends a body that is too large for one message. @returns the subject of the process that has it */
  async #sendBody(at: string, call: string, body: Buffer): Promise<string> {
    const found = await this.#ask(at, { kind: 'ping' })
    const subject = this.#options.names.node(found.nodeId)
    const partBytes = chunkBytesOf(this.link.connection)
    for (let part = 0; part * partBytes < body.length; part++) {
      const bytes = body.subarray(part * partBytes, (part + 1) * partBytes)
      await this.#ask(subject, { kind: 'part', call, at: part, bytes })
    }
    return subject
  }

  /** Asks for something that is before the request itself: where it is not answered, nothing was carried out. */
  async #ask(subject: string, ask: SingleAsk): Promise<Extract<Reply, { kind: 'done' }>> {
    let reply: Reply
    try {
      reply = await this.link.ask(subject, ask, REPLY_MS_MAX)
    } catch (error) {
      throw error instanceof UnansweredError ? new UnansweredError('nobody', error) : error
    }
    if (reply.kind === 'done') return reply
    throw reply.kind === 'refused'
      ? refused(reply.reason, reply.sentence)
      : new ForeignMessageError('the other node has answered something else than it was asked')
  }
}

function refused(reason: Extract<Reply, { kind: 'refused' }>['reason'], sentence: string): ServiceError {
  if (reason === 'overloaded') return overloaded(sentence)
  if (reason === 'invalid') return new ServiceError('invalid_parameter', sentence)
  return unavailable(reason === 'failed', reason === 'version' ? `${sentence}.` : undefined)
}
