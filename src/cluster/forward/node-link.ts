// Sends one message to another node and waits for its reply. Tells apart what has certainly not arrived from what may have.

import { setTimeout as sleep } from 'node:timers/promises'
import {
  type NatsConnection,
  NoRespondersError,
  PermissionViolationError,
  RequestError,
} from '@nats-io/transport-node'
import type { ConnectionWatch } from '../connection-watch.ts'
import { REPLY_MS_MAX, RETRY_MS_TOTAL, RETRY_PAUSE_MS } from './limits.ts'
import {
  type Ask,
  decodeReply,
  encodeAsk,
  ForeignMessageError,
  type ForwardedRequest,
  type MessageReply,
  type Reply,
} from './protocol.ts'

/** `nobody`, `disconnected`, `denied`: the message has certainly not arrived. */
type Reason = 'nobody' | 'disconnected' | 'denied' | 'late'
const SENTENCES: Readonly<Record<Reason, string>> = {
  nobody: 'no process answers to that name on the bus',
  disconnected: 'there is no connection to the bus',
  denied: 'the bus does not take messages to that name from this process',
  late: 'there was no reply in time',
}

/** There was no reply. */
export class UnansweredError extends Error {
  readonly reason: Reason

  constructor(reason: Reason, cause?: unknown) {
    super(SENTENCES[reason], { cause })
    this.reason = reason
  }

  /** Whether the other node may have got the message. */
  get mayHaveArrived(): boolean {
    return this.reason === 'late'
  }
}

const isNobodyThere = (error: unknown): boolean =>
  error instanceof NoRespondersError ||
  (error instanceof RequestError && (error.isNoResponders() || error.cause instanceof NoRespondersError))

const isDenied = (error: unknown): boolean =>
  error instanceof PermissionViolationError ||
  (error instanceof RequestError && error.cause instanceof PermissionViolationError)

/** What has one reply. */
export type SingleAsk = Exclude<Ask, { kind: 'requests' }>

export class NodeLink {
  readonly #connection: NatsConnection
  readonly #watch: ConnectionWatch

  constructor(connection: NatsConnection, watch: ConnectionWatch) {
    this.#connection = connection
    this.#watch = watch
  }

  get connection(): NatsConnection {
    return this.#connection
  }

  /** @throws UnansweredError, ForeignMessageError */
  async ask(subject: string, ask: SingleAsk, msMax: number): Promise<Reply> {
    const reply = await this.#ask(subject, ask, msMax)
    if (reply.kind === 'replies') throw new ForeignMessageError('the other node has answered something else')
    return reply
  }

  /** Asks for several in one message. @returns a reply to each, in their order. @throws UnansweredError, ForeignMessageError */
  async askTogether(
    subject: string,
    requests: readonly ForwardedRequest[],
    msMax: number,
  ): Promise<readonly Reply[]> {
    const [only] = requests
    if (only !== undefined && requests.length === 1) return [await this.ask(subject, only, msMax)]
    const reply = await this.#ask(subject, { kind: 'requests', requests: [...requests] }, msMax)
    // What is refused as a whole is refused to each.
    const replies = reply.kind === 'replies' ? reply.replies : requests.map(() => reply)
    if (replies.length !== requests.length)
      throw new ForeignMessageError('a message on the bus lacks replies')
    return replies
  }

  async #ask(subject: string, ask: Ask, msMax: number): Promise<MessageReply> {
    // The client would keep the message until it is connected again, when nobody waits for it any more.
    if (!this.#watch.isConnected) throw new UnansweredError('disconnected')
    let data: Uint8Array
    try {
      ;({ data } = await this.#connection.request(subject, encodeAsk(ask), { timeout: msMax }))
    } catch (error) {
      if (isNobodyThere(error)) throw new UnansweredError('nobody', error)
      if (isDenied(error)) throw new UnansweredError('denied', error)
      throw new UnansweredError('late', error)
    }
    return decodeReply(data)
  }

  /** Asks for what is harmless to ask for twice, and does so for RETRY_MS_TOTAL unless nobody is there any more. */
  async askAgain(subject: string, ask: SingleAsk): Promise<Reply> {
    const untilMs = performance.now() + RETRY_MS_TOTAL
    for (;;) {
      try {
        return await this.ask(subject, ask, REPLY_MS_MAX)
      } catch (error) {
        const mayPass =
          error instanceof UnansweredError && (error.mayHaveArrived || error.reason === 'disconnected')
        if (!mayPass || performance.now() > untilMs) throw error
      }
      await sleep(RETRY_PAUSE_MS)
    }
  }

  /** Sends what has no reply. */
  tell(subject: string, ask: Ask): void {
    if (this.#watch.isConnected && !this.#connection.isClosed())
      this.#connection.publish(subject, encodeAsk(ask))
  }
}
