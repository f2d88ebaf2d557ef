// Headers of requests and answers, as the API description names them.
import { z } from 'zod'

export const whole = (description: string) => z.number().int().min(0).meta({ description })
export const text = (description: string) => z.string().meta({ description })
export const maybeText = (description: string) => z.string().optional().meta({ description })
export const maybeWhole = (description: string) => z.number().int().min(0).optional().meta({ description })

/** The same headers, each under its name among the components, to which all operations refer. */
function shared<Shape extends Record<string, z.ZodType>>(shape: Shape): z.ZodObject<Shape> {
  for (const [name, schema] of Object.entries(shape))
    z.globalRegistry.add(schema, { ...z.globalRegistry.get(schema), header: { id: name } })
  return z.object(shape)
}

/** Request headers that any operation reads. */
export const REQUEST_HEADERS = z.object({
  'X-Request-Id': maybeText('Becomes the X-Request-Id of the answer'),
})
export const CONDITIONAL_HEADERS = z.object({
  'If-None-Match': maybeText('ETag of the version that the client has: 304 if it is current'),
})

/** Headers of every answer. */
export const ANSWER_HEADERS = shared({
  'X-Request-Id': text('Names the request in the server’s log'),
  'X-Ignored-Parameters': maybeText('Query parameters of which a value had no effect, comma-separated'),
  'X-Approximate': maybeText('In a replay: why the market may differ from the recorded one'),
  'X-Market-Time': maybeWhole('In a replay: market time').meta({ unit: 'Unix ms' }),
  'X-Market-Waits': maybeText(
    'true in a backtest: all rules on time count by X-Market-Time, which goes on when its programs wait',
  ),
  'X-Warming-Up': maybeText(
    'While a replay as fast as possible runs: how much of the market is there so far',
  ),
  'X-Lag-Ms': maybeWhole(
    'From a reader of a cluster: how old the state of the market is that it answers with',
  ).meta({
    unit: 'ms',
  }),
})
/** `meta.clamped` of formats that have no `meta`. */
export const CLAMPED_HEADER = maybeText('A limit above the maximum was taken for the maximum').meta({
  examples: ['limit=500'],
})
export const CACHE_HEADERS = shared({ 'Cache-Control': maybeText('How long it may be reused') })
export const VERSION_HEADERS = z.object({
  ...shared({ ETag: text('Its version, for If-None-Match') }).shape,
  ...CACHE_HEADERS.shape,
})
/** Absent where the limit is switched off. */
export const LIMIT_HEADERS = shared({
  'RateLimit-Policy': maybeText('The limit: q requests in w seconds').meta({
    examples: ['"read";q=30;w=60'],
  }),
  RateLimit: maybeText('What is left: r requests, and t seconds until one more').meta({
    examples: ['"read";r=29;t=60'],
  }),
  'X-RateLimit-Limit': maybeWhole('Requests in the window'),
  'X-RateLimit-Remaining': maybeWhole('Requests that are left'),
  'X-RateLimit-Reset': maybeWhole('When one more becomes free').meta({ unit: 'Unix s' }),
})

const RETRY_HEADERS = shared({ 'Retry-After': whole('When to try again').meta({ unit: 'seconds' }) })

const UNAVAILABLE_HEADERS = z.object({
  ...RETRY_HEADERS.shape,
  ...shared({
    'Idempotency-Key': maybeText(
      'From a reader of a cluster, of a submission without a key that may be stored: sent again with this key it is stored once',
    ),
  }).shape,
})

const MAYBE_RETRY_HEADERS = RETRY_HEADERS.partial()

/** Headers of errors, by status. */
export const ERROR_HEADERS: Readonly<Record<number, z.ZodObject>> = {
  401: shared({ 'WWW-Authenticate': maybeText('Bearer') }),
  403: MAYBE_RETRY_HEADERS,
  409: MAYBE_RETRY_HEADERS,
  416: z.object({ 'Content-Range': z.string().meta({ description: 'Length of the file: bytes */LENGTH' }) }),
  426: z.object({ Upgrade: z.literal('websocket') }),
  429: RETRY_HEADERS,
  503: UNAVAILABLE_HEADERS,
}

export const noSniff = { 'X-Content-Type-Options': z.literal('nosniff') }
/** Headers of a page for people. */
export const pageHeaders = (policy: string) =>
  z.object({
    'Content-Security-Policy': text(policy),
    'Referrer-Policy': z.literal('no-referrer'),
    ...noSniff,
  })
