// Carries out what other nodes ask of this process: requests of their clients, which pass the same code as those that come here.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Msg, NatsConnection } from '@nats-io/transport-node'
import type { Relay } from '../../http/server.ts'
import { errorMessage } from '../../lib/error-text.ts'
import type { Log } from '../../lib/log.ts'
import { within } from '../../lib/wait.ts'
import type { BusNames } from '../bus.ts'
import { Call } from './call.ts'
import { chunkBytesOf } from './chunk-bytes.ts'
import { LastingSubscription } from './lasting-subscription.ts'
import {
  ACCOUNTS_WAIT_MS_MAX,
  CALL_IDLE_MS_MAX,
  CALL_SWEEP_MS,
  CALLS_MAX,
  OPEN_ANSWERS_MAX,
} from './limits.ts'
import {
  type Ask,
  decodeAsk,
  encodeReply,
  ForeignMessageError,
  type ForwardedRequest,
  type MessageReply,
  type Position,
  type RefusalReason,
  type Reply,
} from './protocol.ts'
import { Bodies } from './uploads.ts'

export interface ForwardServerOptions {
  connection: NatsConnection
  names: BusNames
  nodeId: string
  /** Whether requests to the writer come here, besides those to this node. */
  isWriter: boolean
  /** Of this process's HTTP server. */
  relay: Relay
  /** What a node must have applied to know all that has happened so far. Asked after a request that has changed something; null
   *  on nodes where none does. @param waitMsMax how long it may wait for what is on its way to the bus */
  position: ((waitMsMax: number) => Promise<Position>) | null
  /** Makes a checkpoint of now and uploads it; null: this node makes none. */
  makeCheckpoint: (() => Promise<void>) | null
  log: Log
}

const refusal = (reason: RefusalReason, sentence: string): Reply => ({
  kind: 'refused',
  ...{ reason, sentence },
})
const BUSY = refusal(
  'overloaded',
  'The node carries out as many requests of other nodes as it may; try again.',
)
/** How often one that stops looks whether all is answered. */
const STOP_LOOK_MS = 10
const GONE = refusal('failed', 'The answer is not there any more.')

export class ForwardServer {
  readonly #options: ForwardServerOptions
  readonly #calls = new Map<string, Call>()
  readonly #bodies = new Bodies()
  readonly #subscriptions: LastingSubscription[]
  readonly #sweeper: NodeJS.Timeout
  #checkpoint: Promise<void> | null = null

  /** Begins to take requests. They come again by themselves after the connection was lost. */
  constructor(options: ForwardServerOptions) {
    const { connection, names, nodeId, isWriter } = options
    this.#options = options
    const subscribe = (subject: string, queue?: string) =>
      new LastingSubscription(connection, subject, queue, (message) => void this.#receive(message))
    this.#subscriptions = [subscribe(names.node(nodeId))]
    // One process of the group gets a request, also in the moment in which there are two writers.
    if (isWriter) this.#subscriptions.push(subscribe(names.writer, 'writer'))
    this.#sweeper = setInterval(() => this.#sweep(), CALL_SWEEP_MS).unref()
  }

  /** Requests that are being carried out, and the memory of their bodies. */
  stats(): { calls: number; bodyBytes: number } {
    return { calls: this.#calls.size, bodyBytes: this.#bodies.heldBytes }
  }

  /**
   * Takes no more requests: other nodes are told at once that there is nobody. Those that run, and those that were on their way here, are
   * answered within `msMax`.
   */
  async stop(msMax = 0): Promise<void> {
    const [own, ...shared] = this.#subscriptions
    const untilMs = performance.now() + msMax
    await within(msMax, Promise.allSettled(shared.map((subscription) => subscription.drain())))
    while (this.#calls.size > 0 && performance.now() < untilMs) await sleep(STOP_LOOK_MS)
    own?.unsubscribe()
    clearInterval(this.#sweeper)
    for (const id of this.#calls.keys()) this.#end(id)
  }

  async #receive(message: Msg): Promise<void> {
    const reply = await this.#answer(message.data).catch((error: unknown) => {
      if (error instanceof ForeignMessageError) return refusal('version', error.message)
      return refusal('failed', errorMessage(error))
    })
    try {
      if (reply !== null) message.respond(encodeReply(reply))
    } catch (error) {
      // The bus takes no such message, or the connection is closed: the other node sees a time-out.
      this.#options.log.warn({ err: error }, 'an answer to another node could not be sent')
    }
  }

  /** Null: no reply is expected. */
  async #answer(data: Uint8Array): Promise<MessageReply | null> {
    const ask: Ask = decodeAsk(data)
    const { nodeId } = this.#options
    switch (ask.kind) {
      case 'request':
        return this.#request(ask, this.#chunkBytes)
      case 'requests':
        return { kind: 'replies', replies: await this.#requestAll(ask.requests) }
      case 'next':
        return this.#chunk(ask.call, ask.at)
      case 'part':
        return this.#bodies.addPart(ask.call, ask.at, ask.bytes) ? { kind: 'done', nodeId } : BUSY
      case 'keep': {
        const call = this.#calls.get(ask.call)
        if (call !== undefined) call.askedAtMs = performance.now()
        return call === undefined ? GONE : { kind: 'done', nodeId }
      }
      case 'cancel':
        this.#end(ask.call)
        this.#bodies.drop(ask.call)
        return null
      case 'checkpoint':
        return this.#beginCheckpoint()
      case 'ping':
        return { kind: 'done', nodeId }
    }
  }

  /** Replies to all as soon as each is answered, or pending. Together they are no larger than one may be. */
  #requestAll(requests: readonly ForwardedRequest[]): Promise<Reply[]> {
    const chunkBytes = Math.floor(this.#chunkBytes / requests.length)
    return Promise.all(requests.map((request) => this.#request(request, chunkBytes)))
  }

  get #chunkBytes(): number {
    return chunkBytesOf(this.#options.connection)
  }

  /** Begins a request; where the same came before and is not answered, goes on with that. */
  #request(ask: ForwardedRequest, chunkBytes: number): Promise<Reply> | Reply {
    if (this.#calls.has(ask.call)) return this.#chunk(ask.call, 0)
    const body = this.#calls.size >= CALLS_MAX ? null : this.#bodyOf(ask)
    if (body === null) {
      this.#bodies.drop(ask.call)
      return BUSY
    }
    const { nodeId, relay } = this.#options
    const response = relay({ ...ask, body }, chunkBytes, () => this.#bodies.release(body.length))
    const position = (status: number) => this.#positionAfter(ask.method, status)
    this.#calls.set(ask.call, new Call(response, { nodeId, position, chunkBytes }))
    return this.#chunk(ask.call, 0)
  }

  /** Null: there is no memory for it. */
  #bodyOf({ call, body }: ForwardedRequest): Uint8Array | null {
    if (body === null) return this.#bodies.claim(call)
    return this.#bodies.take(body.length) ? body : null
  }

  async #chunk(id: string, at: number): Promise<Reply> {
    const call = this.#calls.get(id)
    if (call === undefined) return GONE
    let reply: Reply
    try {
      reply = await call.chunk(at)
    } catch (error) {
      this.#end(id)
      return refusal('failed', errorMessage(error))
    }
    const isLast = (reply.kind === 'answer' || reply.kind === 'chunk') && !reply.more
    if (isLast) this.#calls.delete(id)
    if (reply.kind !== 'answer' || isLast || this.#openAnswers() <= OPEN_ANSWERS_MAX) return reply
    this.#end(id)
    return BUSY
  }

  #openAnswers(): number {
    let open = 0
    for (const call of this.#calls.values()) if (call.isOpen) open++
    return open
  }

  #positionAfter(method: string, status: number): Promise<Position | null> {
    const { position } = this.#options
    const hasChanged = method !== 'GET' && status < 300
    return hasChanged && position !== null ? position(ACCOUNTS_WAIT_MS_MAX) : Promise.resolve(null)
  }

  #beginCheckpoint(): Reply {
    const { makeCheckpoint, log, nodeId } = this.#options
    if (makeCheckpoint === null) return refusal('invalid', 'This node makes no checkpoints.')
    this.#checkpoint ??= makeCheckpoint()
      .catch((error) => log.warn({ err: error }, 'a checkpoint that a reader asked for has failed'))
      .finally(() => {
        this.#checkpoint = null
      })
    return { kind: 'done', nodeId }
  }

  #end(id: string): void {
    this.#calls.get(id)?.stop()
    this.#calls.delete(id)
  }

  #sweep(): void {
    const nowMs = performance.now()
    for (const [id, call] of this.#calls) if (nowMs - call.askedAtMs > CALL_IDLE_MS_MAX) this.#end(id)
    this.#bodies.dropIdle(nowMs)
  }
}
