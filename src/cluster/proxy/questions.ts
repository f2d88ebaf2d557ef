// What nodes ask each other on the bus: who answers at a subject, and where it takes requests over HTTP; and the writer for a checkpoint.
import {
  type Msg,
  type NatsConnection,
  NoRespondersError,
  PermissionViolationError,
  RequestError,
  type Subscription,
} from '@nats-io/transport-node'
import { pack } from 'msgpackr'
import { z } from 'zod'
import { safeParse } from '../../lib/safe-parse.ts'
import type { Bus } from '../bus.ts'
import { DENIED_RETRY_MS } from '../limits.ts'
import { PROTOCOL, unpackSent, versionTrouble } from '../messages.ts'
import { UnansweredError, unavailable } from './errors.ts'
import type { NodeAddress } from './node-gate.ts'

const questionSchema = z.object({
  /** `checkpoint`: make one of now. The answer, which is the same, does not wait for it. */
  kind: z.enum(['address', 'checkpoint']),
})
export type Question = z.infer<typeof questionSchema>['kind']

const answerSchema = z.object({
  protocol: z.literal(PROTOCOL),
  nodeId: z.string().min(1),
  url: z.url({ protocol: /^https?$/ }),
  secret: z.string().min(1),
})

/** A subject at which this process answers. */
export type Answering = Pick<Subscription, 'unsubscribe'>

/** @throws ServiceError where the answer is of another version, or of something else */
function decodeAnswer(data: Uint8Array): NodeAddress {
  const value = unpackSent(data)
  const answer = safeParse(answerSchema, value)
  if (answer.success) return answer.data
  const trouble = versionTrouble(value, 'the other node') ?? 'an answer on the bus is not one of Mintlake'
  throw unavailable(false, `${trouble}.`)
}

const isOf = (error: unknown, kind: typeof NoRespondersError | typeof PermissionViolationError): boolean =>
  error instanceof kind || (error instanceof RequestError && error.cause instanceof kind)

/** Asks who answers at a subject: the first one that does. @throws UnansweredError, ServiceError */
export async function ask(
  { connection, watch }: Pick<Bus, 'connection' | 'watch'>,
  subject: string,
  kind: Question,
  msMax: number,
): Promise<NodeAddress> {
  // The client would keep the question until it is connected again, when nobody waits for it any more.
  if (!watch.isConnected) throw new UnansweredError('disconnected')
  const question = pack({ protocol: PROTOCOL, kind })
  const { data } = await connection.request(subject, question, { timeout: msMax }).catch((error: unknown) => {
    if (isOf(error, NoRespondersError)) throw new UnansweredError('nobody', '', error)
    throw new UnansweredError(isOf(error, PermissionViolationError) ? 'denied' : 'silent', '', error)
  })
  return decodeAnswer(data)
}

/**
 * Answers at a subject until it is unsubscribed, also after the connection was lost. All processes that do are asked at once. Where the
 * bus denies it, it is tried again: the operator may permit it while this process runs.
 */
export function answerAt(
  connection: NatsConnection,
  subject: string,
  address: () => NodeAddress,
  onAsked: (kind: Question) => void = () => {},
): Answering {
  let isEnded = false
  let isDenied = false
  const callback = (error: Error | null, message: Msg) => {
    if (isEnded || connection.isClosed()) return
    if (error !== null) {
      if (!isDenied) setTimeout(subscribe, DENIED_RETRY_MS).unref()
      isDenied = true
      return
    }
    const question = safeParse(questionSchema, unpackSent(message.data))
    message.respond(pack({ protocol: PROTOCOL, ...address() }))
    if (question.success) onAsked(question.data.kind)
  }
  let subscription = connection.subscribe(subject, { callback })
  function subscribe() {
    isDenied = false
    if (!isEnded && !connection.isClosed()) subscription = connection.subscribe(subject, { callback })
  }
  const unsubscribe = () => {
    isEnded = true
    subscription.unsubscribe()
  }
  return { unsubscribe }
}
