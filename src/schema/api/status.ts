// State of the server: /health, its last hour, and /readyz.
import { z } from 'zod'
import { gapSchema } from '../event.ts'
import * as parameter from './parameters.ts'
import { okWith, unixMs, wholeCount } from './parts.ts'

const failureSchema = z
  .object({ message: z.string(), atMs: unixMs('When it happened') })
  .nullable()
  .meta({ description: 'The latest failure of the source' })

export const FEED_STATES = ['starting', 'running', 'reconnecting', 'finished', 'failed', 'stopped'] as const

/** A feed, as /readyz shows it. */
export const feedStateSchema = z.object({
  feed: z.string(),
  state: z.enum(FEED_STATES),
  stateSinceMs: unixMs('Since when it has been in this state'),
  latestError: failureSchema.optional(),
})

/** How much of its input a feed refuses. */
export const refusalsSchema = z.object({
  isTooMuch: z.boolean().meta({ description: 'It is more than a tenth: the status is degraded' }),
  share: z.number().meta({ description: 'Of the input of the window: how much was refused, 0 to 1' }),
  refused: wholeCount('Records of the window that were refused'),
  received: wholeCount('All records of the window'),
  windowMs: z.number().nullable().meta({
    unit: 'ms',
    description: 'Length of the window; null: from the start, of a feed that has come to its end',
  }),
  reasons: z.record(z.string(), z.number()).meta({ description: 'Refused records by reason' }),
  samples: z
    .array(z.object({ reason: z.string(), sample: z.string() }))
    .meta({ description: 'What was refused first, for some of the reasons' }),
})

/** A feed, as /health shows it. Each kind of feed adds details of its own. */
export const feedStatusSchema = z.looseObject({
  ...feedStateSchema.shape,
  simulated: z.boolean().meta({ description: 'Its data is made up' }),
  accepted: wholeCount('Events that the market accepted'),
  rejected: z.record(z.string(), z.number()).meta({ description: 'Events that it rejected, by reason' }),
  refusals: refusalsSchema,
})

export const solPriceSchema = z
  .object({
    usd: z.number().meta({ unit: 'USD' }),
    source: z
      .string()
      .meta({ description: 'Who reported it: birdeye, push, patch, simulator, or setting (--sol-price)' }),
    atMs: unixMs('Of when the report is, by its source; at most the market time at which it came'),
    ageMs: z.number().meta({ unit: 'ms', description: 'How long ago that was, in market time' }),
    maxAgeMs: z.number().nullable().meta({
      unit: 'ms',
      description:
        'The age beyond which trades are not priced with it (max-age-ms of --sol-price); null: any age',
    }),
    isStale: z.boolean().meta({
      description: 'It is older: trades without a price in USD are refused with sol_price_stale',
    }),
  })
  .meta({
    description:
      'The latest price of SOL; null: none is known, and trades without a price in USD are refused',
  })

/** Further figures may be added. */
const marketStateSchema = z.looseObject({
  timeMs: unixMs('Market time'),
  seq: z.number().int().meta({ description: 'Position of the latest change' }),
  tokens: wholeCount('Tokens held'),
  tokensMax: wholeCount('Tokens held at most'),
  events: wholeCount('Events received'),
  trades: wholeCount('Trades applied'),
  lateDropped: wholeCount('Trades dropped because they came too late'),
})

/** A table of the lake. */
export const lakeTableStateSchema = z.object({
  table: z.string(),
  files: wholeCount('Files'),
  rows: wholeCount('Rows'),
  bytes: wholeCount('Their bytes'),
  backlog: wholeCount('Rows that are durable and not in a file yet'),
})

/** Further figures may be added. */
const recordingSchema = z.looseObject({
  isOn: z.boolean().meta({ description: 'Whether market events are to be recorded (--record)' }),
  reasons: z.array(z.string()).meta({ description: 'A sentence for each thing that is wrong' }),
  journal: z
    .looseObject({
      recorded: wholeCount('Events recorded by this run'),
      lost: wholeCount('Events that could not be recorded'),
      trouble: z.string().nullable().meta({ description: 'Why events are not recorded at present' }),
    })
    .nullable(),
  checkpoints: z
    .looseObject({
      made: wholeCount('Checkpoints that this run has made'),
      failures: wholeCount('Attempts that failed'),
      trouble: z.string().nullable().meta({ description: 'Why the latest attempt failed' }),
    })
    .nullable(),
  restored: z
    .looseObject({
      fromEventNo: wholeCount('The last event in the checkpoint that the run began with'),
      events: wholeCount('Events behind it that were applied again'),
      lost: wholeCount('Events behind it that the journal had lost'),
    })
    .nullable()
    .meta({ description: 'What the run began with; null: an empty market' }),
})

/** Further figures may be added. */
const clusterSchema = z.looseObject({
  role: z.enum(['writer', 'reader']),
  reasons: z.array(z.string()).meta({ description: 'A sentence for each thing that is wrong' }),
})

/** Further figures may be added. */
const storeStateSchema = z.looseObject({
  healthy: z.boolean().meta({ description: 'Commits are taken, and the lake follows them' }),
  reasons: z.array(z.string()).meta({ description: 'A sentence for each thing that is wrong' }),
  folderId: z.string().optional().meta({
    description:
      'Identity of the data folder; absent while the store does not answer, and where there is none',
  }),
  lake: z
    .array(lakeTableStateSchema)
    .optional()
    .meta({ description: 'Its tables; absent while the store does not answer' }),
})

const EXAMPLE_FEED = { feed: 'simulator', state: 'running', stateSinceMs: 1_772_000_000_000 }
const EXAMPLE_REFUSALS = {
  isTooMuch: false,
  share: 0,
  refused: 0,
  received: 120_000,
  windowMs: 300_000,
  reasons: {},
  samples: [],
}

export const healthSchema = okWith(
  {
    status: z.enum(['warming_up', 'ready', 'degraded', 'draining']),
    reasons: z.array(z.string()).meta({ description: 'Why the status is degraded' }),
    simulated: z.boolean().meta({ description: 'A feed makes its data up' }),
    feeds: z.array(feedStatusSchema),
    pushIngest: z.boolean().meta({ description: 'Whether feeds may push' }),
    solPrice: solPriceSchema.nullable(),
    market: marketStateSchema,
    gaps: z
      .object({
        open: z.array(gapSchema).meta({ description: 'Feeds that are away' }),
        recent: z.array(gapSchema).meta({ description: 'The latest that have ended, the newest first' }),
      })
      .meta({ description: 'Intervals in which events may be missing' }),
    recording: recordingSchema.meta({
      description: 'The record of market events, from which the lake is filled and a restart goes on',
    }),
    cluster: clusterSchema.optional().meta({
      description: 'This process among those that serve one market (--role); absent where it is alone',
    }),
    store: storeStateSchema,
  },
  {
    status: 'ready',
    reasons: [],
    simulated: true,
    feeds: [
      { ...EXAMPLE_FEED, simulated: true, accepted: 120_000, rejected: {}, refusals: EXAMPLE_REFUSALS },
    ],
    pushIngest: false,
    solPrice: {
      usd: 140,
      source: 'simulator',
      atMs: 1_772_000_000_000,
      ageMs: 800,
      maxAgeMs: 86_400_000,
      isStale: false,
    },
    market: {
      timeMs: 1_772_000_000_800,
      seq: 7_127_000_123,
      tokens: 500,
      tokensMax: 100_000,
      events: 120_500,
      trades: 118_000,
      lateDropped: 3,
    },
    gaps: {
      open: [],
      recent: [{ from: 1_771_999_000_000, to: 1_771_999_060_000, reason: 'downtime', feed: null }],
    },
    recording: { isOn: false, reasons: [], journal: null, checkpoints: null, restored: null },
    store: { healthy: true, reasons: [] },
  },
)

export type HealthAnswer = z.infer<typeof healthSchema>

/** GET /health/history */
export const historyQuery = z.object({ since: parameter.time('Only samples after this time') })

export const historySeriesSchema = z.object({
  name: z.string(),
  unit: z.enum(['per_second', 'count', 'seconds', 'bytes']),
  limit: z.number().nullable().meta({ description: 'What it should stay away from; null: nothing' }),
  limitIs: z
    .enum(['most', 'least'])
    .nullable()
    .meta({ description: 'On which side of the limit it should stay' }),
  values: z.array(z.number().nullable()).meta({ description: 'One for each time; null: not known' }),
})
export type HistorySeries = z.infer<typeof historySeriesSchema>

export const historySchema = okWith(
  {
    data: z.object({
      everyMs: z.number().int().meta({ description: 'How often it is sampled', unit: 'ms' }),
      timesMs: z.array(unixMs('When a sample was taken')).meta({ description: 'Oldest first' }),
      series: z.array(historySeriesSchema),
    }),
  },
  {
    data: {
      everyMs: 10_000,
      timesMs: [1_772_000_000_000, 1_772_000_010_000],
      series: [{ name: 'tokens', unit: 'count', limit: 100_000, limitIs: 'most', values: [500, 502] }],
    },
  },
)
export type History = z.infer<typeof historySchema>['data']
export type HistoryAnswer = z.infer<typeof historySchema>

export const readySchema = okWith(
  { ready: z.literal(true), feeds: z.array(feedStateSchema) },
  {
    ready: true,
    feeds: [EXAMPLE_FEED],
  },
)
