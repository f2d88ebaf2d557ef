// What nodes ask each other on the bus: who answers at a subject, and where it takes requests over HTTP; and the writer for a checkpoint.
import {
  type NatsConnection,
  NoRespondersError,
  PermissionViolationError,
  RequestError,
} from '@nats-io/transport-node'
import { Packr } from 'msgpackr'
import { z } from 'zod'
import { safeParse } from '../../lib/safe-parse.ts'
import type { Bus } from '../bus.ts'
import { PROTOCOL } from '../messages.ts'
import { UnansweredError } from './errors.ts'
import { LastingSubscription } from './lasting-subscription.ts'
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
const protocolSchema = z.object({ protocol: z.string() })

const packr = new Packr({ useRecords: false })

/** An answer of another version, or of something else. The sentence is for operators. */
export class ForeignAnswerError extends Error {}

/** @throws ForeignAnswerError */
function decodeAnswer(data: Uint8Array): NodeAddress {
  const value = unpack(data)
  const answer = safeParse(answerSchema, value)
  if (answer.success) return answer.data
  const head = safeParse(protocolSchema, value)
  if (!head.success || head.data.protocol === PROTOCOL)
    throw new ForeignAnswerError('an answer on the bus is not one of Mintlake')
  throw new ForeignAnswerError(
    `the other node speaks version ${head.data.protocol} of the bus, this one version ${PROTOCOL}: ` +
      'run the same version of Mintlake everywhere',
  )
}

function unpack(data: Uint8Array): unknown {
  try {
    return packr.unpack(data)
  } catch {
    return null
  }
}

const isNobodyThere = (error: unknown): boolean =>
  error instanceof NoRespondersError ||
  (error instanceof RequestError && (error.isNoResponders() || error.cause instanceof NoRespondersError))

const isDenied = (error: unknown): boolean =>
  error instanceof PermissionViolationError ||
  (error instanceof RequestError && error.cause instanceof PermissionViolationError)

/** Asks who answers at a subject: the first one that does. @throws UnansweredError, ForeignAnswerError */
export async function ask(
  { connection, watch }: Pick<Bus, 'connection' | 'watch'>,
  subject: string,
  kind: Question,
  msMax: number,
): Promise<NodeAddress> {
  // The client would keep the question until it is connected again, when nobody waits for it any more.
  if (!watch.isConnected) throw new UnansweredError('disconnected')
  const question = packr.pack({ protocol: PROTOCOL, kind })
  try {
    const { data } = await connection.request(subject, question, { timeout: msMax })
    return decodeAnswer(data)
  } catch (error) {
    if (error instanceof ForeignAnswerError) throw error
    if (isNobodyThere(error)) throw new UnansweredError('nobody', '', error)
    throw new UnansweredError(isDenied(error) ? 'denied' : 'silent', '', error)
  }
}

/** Answers at a subject until it is unsubscribed, also after the connection was lost. All processes that do are asked at once. */
export const answerAt = (
  connection: NatsConnection,
  subject: string,
  address: () => NodeAddress,
  onAsked: (kind: Question) => void = () => {},
): LastingSubscription =>
  new LastingSubscription(connection, subject, (message) => {
    if (connection.isClosed()) return
    const question = safeParse(questionSchema, unpack(message.data))
    message.respond(packr.pack({ protocol: PROTOCOL, ...address() }))
    if (question.success) onAsked(question.data.kind)
  })
