// What goes over a stream: lines of follow=1, and the messages of the WebSocket in both directions.
import { z } from 'zod'
import { barSchema, TIMEFRAMES } from '../bar.ts'
import { chosenDataPointSchema, dataPointSchema } from '../datapoint.ts'
import { gapSchema } from '../event.ts'
import { EXAMPLE_MINT } from '../example.ts'
import { chosenRowSchema, marketItemSchema } from '../market-item.ts'
import { ORDERS, OUTCOMES, SORTS, TABS } from '../vocabulary.ts'
import { heldFromSchema } from './bars.ts'
import { marketQuery } from './market.ts'
import { clampedSchema, ignoredNames, mintSchema, percent, unixMs } from './parts.ts'
import { problemSchema } from './problem.ts'

export const STREAM_OPERATIONS = ['subscribe', 'unsubscribe', 'ping'] as const
export const STREAM_TOPICS = ['market', 'window', 'token', 'ohlc', 'submissions'] as const
/** The names that a client may offer as Sec-WebSocket-Protocol. */
export const STREAM_PROTOCOLS = ['mintlake.json', 'mintlake.msgpack'] as const
/** A follower may be behind by as much, at least. */
export const CHANGES_KEPT_MINUTES = 5
/** Why the server ends a stream. */
export const BYE_REASONS = ['draining', 'slow_consumer', 'max_age', 'behind', 'overloaded'] as const

const seq = z.number().int().meta({ description: 'Position: all changes up to it have been sent' })
const since = z
  .number()
  .int()
  .min(0)
  .optional()
  .meta({ description: 'Resume: only what changed after this position' })
const ts = unixMs('Market time')
const from = unixMs(
  'Of bars: those that start then or later may still change; to resume, subscribe with it',
).optional()
const id = z.string().optional().meta({ description: 'The id of the message that it answers' })
const channel = z.string().meta({
  description: '`market:<tab>`, `window:<name>`, `token:<mint>`, `ohlc:<mint>:<tf>` or `submissions`',
  examples: ['market:live'],
})

/** A submission as the stream tells of it the moment it is durable. Its labels stay with its agent at first. */
export const streamedSubmissionSchema = z.object({
  analysisId: z.string(),
  agentId: z.string(),
  agentName: z.string(),
  mint: z.string(),
  symbol: z.string().nullable(),
  outcome: z.enum(OUTCOMES),
  deviationPct: percent('The largest deviation'),
  xpEarned: z.number(),
  createdAt: unixMs('When it was submitted'),
})
export type StreamedSubmission = z.infer<typeof streamedSubmissionSchema>

/** A row of the market list in a stream. A row that has changed has the position of its change. */
export const streamRowSchema = z.object({ ...marketItemSchema.shape, seq: seq.optional() })
export const chosenStreamRowSchema = z.object({ ...chosenRowSchema.shape, seq: seq.optional() })

/** Where a window is after the rows that came with it or before it. */
const windowTold = {
  seq,
  ts,
  offset: z.number().int().min(0).meta({ description: 'Rows of the list before the window' }),
  total: z.number().int().min(0).meta({ description: 'Rows of the list' }),
  order: z.array(z.string()).optional().meta({
    description:
      'The mints of the window, in order, where they are others than before. Rows that are not among them are gone',
  }),
}

const heartbeat = { event: z.literal('heartbeat'), seq: seq.optional(), ts }
const healed = z
  .literal(true)
  .optional()
  .meta({ description: 'The feed has brought what was missing: this interval is no gap' })
const gap = { event: z.literal('gap'), ...gapSchema.shape, healed, ts }
const GAP_TOLD =
  'A gap began (`to` is null) or ended: events of that interval may be missing. With `healUntil` its feed brings them; with ' +
  '`healed` it has, and what stays missing is told next'
const bye = {
  event: z.literal('bye'),
  reason: z.enum(BYE_REASONS),
  seq: seq.optional(),
  retryAfterMs: z.number().int().optional().meta({
    unit: 'ms',
    description: 'Of `overloaded`: when to connect again',
  }),
}

/** One line of `follow=1`: a row, or an object with `event` about the stream itself. */
export const streamLineSchema = z.union([
  streamRowSchema,
  chosenStreamRowSchema,
  z
    .object({ event: z.literal('window'), ...windowTold })
    .meta({ description: 'follow=window: the rows before this line are those that have changed' }),
  z.object(heartbeat),
  z
    .object({ event: z.literal('left'), mint: z.string(), seq })
    .meta({ description: 'The token was evicted' }),
  z
    .object({ event: z.literal('resync') })
    .meta({ description: 'Changes were missed: all rows follow again' }),
  z.object(gap).meta({ description: GAP_TOLD }),
  z.object(bye).meta({ description: 'The last line' }),
])

/** Texts are accepted for numbers, as in a query. */
const operationId = z.string().optional().meta({ description: 'Is in the reply' })
/** As in a query, or an array. */
const wordsOf = (schema: z.ZodType<string | undefined>) => z.union([schema, z.array(z.string())]).optional()
const fields = wordsOf(marketQuery.shape.fields)
const marketTopic = {
  topic: z.literal('market'),
  tab: z.enum(TABS).default('all').optional(),
  sort: z.enum(SORTS).optional(),
  order: z.enum(ORDERS).default('desc').optional(),
  limit: z
    .number()
    .int()
    .min(1)
    .optional()
    .meta({ description: 'Of the first rows; changes are not limited' }),
  offset: z.number().int().min(0).optional(),
  since,
  fields,
}
const windowTopic = z
  .object({ ...marketQuery.shape, mints: wordsOf(marketQuery.shape.mints), fields })
  .omit({ cursor: true, follow: true, since: true, format: true })
  .partial().shape
const tokenTopic = { topic: z.literal('token'), mint: mintSchema, since, fields }
const barsTopic = {
  topic: z.literal('ohlc'),
  mint: mintSchema,
  tf: z.enum(TIMEFRAMES).default('1m').optional(),
  limit: z.number().int().min(1).optional().meta({ description: 'Of the first bars, the newest ones' }),
  from: unixMs('Start of the first bar').optional(),
}
const submissionsTopic = { topic: z.literal('submissions'), since }

/** What a message that subscribes to a topic may have. */
export const SUBSCRIPTION_FIELDS: Readonly<Record<(typeof STREAM_TOPICS)[number], readonly string[]>> = {
  market: namesOf(marketTopic),
  window: namesOf({ topic: true, ...windowTopic }),
  token: namesOf(tokenTopic),
  ohlc: namesOf(barsTopic),
  submissions: namesOf(submissionsTopic),
}

function namesOf(shape: object): string[] {
  return ['op', 'id', ...Object.keys(shape)]
}

const about = <Op extends string, Shape extends z.ZodRawShape>(op: Op, shape: Shape) =>
  z.object({ op: z.literal(op), id: operationId, ...shape })

/** What a client sends on the WebSocket. */
export const streamRequestSchema = z
  .union([
    about('subscribe', marketTopic),
    about('subscribe', { topic: z.literal('window'), ...windowTopic }),
    about('subscribe', tokenTopic),
    about('subscribe', barsTopic),
    about('subscribe', submissionsTopic),
    about('unsubscribe', { topic: z.literal('market'), tab: marketTopic.tab }),
    about('unsubscribe', { topic: z.literal('window'), ...windowTopic }),
    about('unsubscribe', { channel }),
    about('unsubscribe', { topic: z.literal('token'), mint: mintSchema }),
    about('unsubscribe', { topic: z.literal('ohlc'), mint: mintSchema, tf: barsTopic.tf }),
    about('unsubscribe', { topic: z.literal('submissions') }),
    about('ping', {}),
  ])
  .meta({ examples: [{ op: 'subscribe', topic: 'token', mint: EXAMPLE_MINT, id: '1' }] })

export type StreamRequest = z.input<typeof streamRequestSchema>

const rows = z
  .union([
    z.array(streamRowSchema),
    z.array(chosenStreamRowSchema),
    z.array(dataPointSchema),
    z.array(chosenDataPointSchema),
    z.array(barSchema),
    z.array(streamedSubmissionSchema),
  ])
  .meta({ description: 'Rows of the list, the DataPoint of a token, bars, or submissions' })

/** What the server sends on the WebSocket. */
export const streamMessageSchema = z.union([
  z
    .object({
      event: z.literal('subscribed'),
      id,
      channel,
      seq: seq.optional(),
      clamped: clampedSchema.meta({
        description:
          'The maximum, where the `limit` that was sent is above it; of bars the limit, where it leaves out some since `from`',
      }),
      heldFrom: heldFromSchema,
      ignored: ignoredNames,
    })
    .meta({
      description: 'seq: the position from which it resumes; without it a snapshot or a resync follows',
    }),
  z.object({ event: z.literal('unsubscribed'), id, channel }),
  z
    .object({ event: z.literal('snapshot'), channel, seq: seq.optional(), from, last: z.boolean(), rows })
    .meta({ description: 'First rows. Only the last message of a snapshot has a position' }),
  z
    .object({ event: z.literal('changes'), channel, seq, from, rows })
    .meta({ description: 'Each row that changed, at its newest' }),
  z.object({ event: z.literal('window'), channel, ...windowTold, rows }).meta({
    description: 'A window: the rows that have changed since the message before, or all of them',
  }),
  z
    .object({ event: z.literal('window'), channel, rows })
    .meta({ description: 'More rows of a window; the message that tells where it is follows' }),
  z
    .object({ event: z.literal('left'), channel, mint: z.string(), seq })
    .meta({ description: 'The token was evicted' }),
  z
    .object({ event: z.literal('resync'), channel })
    .meta({ description: 'Changes were missed: a snapshot of all rows follows' }),
  z.object(heartbeat),
  z.object({ event: z.literal('pong'), id, seq: seq.optional(), ts }),
  z.object(gap).meta({ description: GAP_TOLD }),
  z.object(bye).meta({ description: 'The last message; then the socket is closed' }),
  z
    .object({ ...problemSchema.shape, event: z.literal('error'), id })
    .meta({ description: 'A message was refused; the socket stays open' }),
])
export type StreamMessage = z.infer<typeof streamMessageSchema>
