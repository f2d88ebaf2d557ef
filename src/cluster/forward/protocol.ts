// The messages with which nodes ask each other, msgpack: a request, its body in parts where it is large, and its answer, which is
// asked for chunk by chunk, so that neither side holds more than one. Small requests that come together
// go in one message.
import { Packr } from 'msgpackr'
import { z } from 'zod'
import { safeParse } from '../../lib/safe-parse.ts'
import { PROTOCOL } from '../messages.ts'

const bytes = z.custom<Uint8Array>((value) => value instanceof Uint8Array)
/** Chosen by the node that asks: names a request until it is answered. */
const call = z.string().min(1).max(64)
const count = z.number().int().min(0)

const requestSchema = z.object({
  kind: z.literal('request'),
  call,
  method: z.enum(['GET', 'POST', 'DELETE']),
  path: z.string(),
  /** As it was sent, without its question mark. */
  query: z.string(),
  /** By name, as they were sent. */
  headers: z.record(z.string(), z.string()),
  /** The client, as the node that asks counts its requests. */
  client: z.string(),
  /** The whole body; null: it came before, in parts. */
  body: bytes.nullable(),
})
export type ForwardedRequest = z.infer<typeof requestSchema>

const askSchema = z.discriminatedUnion('kind', [
  requestSchema,
  /** Several, each with its body in it. The reply has those of all. */
  z.object({ kind: z.literal('requests'), requests: z.array(requestSchema) }),
  /** A part of a body, from 0 on. */
  z.object({ kind: z.literal('part'), call, at: count, bytes }),
  /** The chunk `at` of an answer. To ask for the same again is harmless. */
  z.object({ kind: z.literal('next'), call, at: count }),
  /** The client is slow: the answer is still wanted. */
  z.object({ kind: z.literal('keep'), call }),
  /** Nobody wants the answer any more. It has no reply. */
  z.object({ kind: z.literal('cancel'), call }),
  /** Asks for a checkpoint of now. The reply does not wait for it. */
  z.object({ kind: z.literal('checkpoint') }),
  z.object({ kind: z.literal('ping') }),
])
export type Ask = z.infer<typeof askSchema>

const positionSchema = z.object({
  /** The writer's last event. */
  eventNo: z.number(),
  /** Revision of the accounts on the bus. */
  accounts: z.number(),
})
/** What a node must have applied to know all that a request changed. */
export type Position = z.infer<typeof positionSchema>

/** `overloaded`, `invalid`, `version`: nothing was done. `failed`: it may have been. */
const reason = z.enum(['overloaded', 'invalid', 'version', 'failed'])
export type RefusalReason = z.infer<typeof reason>

const singleReplySchema = z.discriminatedUnion('kind', [
  /** Chunk 0 of an answer. */
  z.object({
    kind: z.literal('answer'),
    nodeId: z.string(),
    status: z.number().int(),
    headers: z.array(z.tuple([z.string(), z.string()])),
    bytes,
    more: z.boolean(),
    /** Null: nothing was changed. */
    position: positionSchema.nullable(),
  }),
  z.object({ kind: z.literal('chunk'), bytes, more: z.boolean() }),
  /** The answer is not there yet: ask for chunk 0. */
  z.object({ kind: z.literal('pending'), nodeId: z.string() }),
  z.object({ kind: z.literal('done'), nodeId: z.string() }),
  z.object({ kind: z.literal('refused'), reason, sentence: z.string() }),
])
/** To one request, or to anything else that is asked for. */
export type Reply = z.infer<typeof singleReplySchema>
export type AnswerReply = Extract<Reply, { kind: 'answer' }>

const replySchema = z.discriminatedUnion('kind', [
  singleReplySchema,
  /** In the order of the requests. */
  z.object({ kind: z.literal('replies'), replies: z.array(singleReplySchema) }),
])
/** To a message. */
export type MessageReply = z.infer<typeof replySchema>

const packr = new Packr({ useRecords: false })

export const encodeAsk = (ask: Ask): Uint8Array => packr.pack({ protocol: PROTOCOL, ...ask })
export const encodeReply = (reply: MessageReply): Uint8Array => packr.pack({ protocol: PROTOCOL, ...reply })

/** A message of another version, or of something else. The sentence is for operators. */
export class ForeignMessageError extends Error {}

const headSchema = z.object({ protocol: z.string() })

function decode<Schema extends z.ZodType>(schema: Schema, data: Uint8Array): z.output<Schema> {
  const value = unpack(data)
  const head = safeParse(headSchema, value)
  if (head.success && head.data.protocol !== PROTOCOL)
    throw new ForeignMessageError(
      `the other node speaks version ${head.data.protocol} of the bus, this one version ${PROTOCOL}: ` +
        'run the same version of Mintlake everywhere',
    )
  const message = safeParse(schema, value)
  if (!message.success) throw new ForeignMessageError('a message on the bus is not one of Mintlake')
  return message.data
}

function unpack(data: Uint8Array): unknown {
  try {
    return packr.unpack(data)
  } catch {
    return null
  }
}

/** @throws ForeignMessageError */
export const decodeAsk = (data: Uint8Array): Ask => decode(askSchema, data)
/** @throws ForeignMessageError */
export const decodeReply = (data: Uint8Array): MessageReply => decode(replySchema, data)
