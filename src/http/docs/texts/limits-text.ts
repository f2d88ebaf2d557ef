// The limits that agents meet, as the documents for them tell: from the settings of this server and from the constants.
import { BARS_LIMIT_MAX } from '../../../schema/api/bars.ts'
import { BATCH_MINTS_MAX, MARKET_LIMIT_MAX_JSON } from '../../../schema/api/market.ts'
import { LEADERBOARD_LIMIT_MAX, SUBMIT_JITTER_MS } from '../../../schema/api/submissions.ts'
import {
  RISK_FACTORS_MAX,
  RISK_FACTORS_MIN,
  SUMMARY_CODE_POINTS_MAX,
  SUMMARY_CODE_POINTS_MIN,
} from '../../../schema/vocabulary.ts'
import {
  BODY_BYTES_MAX,
  FOLLOWERS_MAX,
  QUERY_CHARACTERS_MAX,
  ROWS_PER_READ,
  SUBSCRIPTIONS_MAX,
  WINDOWS_OF_CLIENT_MAX,
} from '../../limits.ts'

/** Settings that the documents tell; 0 switches a limit off. */
export interface DocumentSettings {
  /** Submissions a minute of an agent, the least time between two on one mint, the rejections within 24 hours that suspend it, and the
   *  suspensions within 30 days that ban it for good. */
  submitLimits: { rate: number; cooldownMs: number; strikes: number; suspensions: number }
  /** Reads a minute without a key and with one. */
  readLimitAnonymous: number
  readLimitKeyed: number
  /** Whether agents may register themselves, and how many an hour from one address. */
  registration: 'open' | 'closed'
  registerLimit: number
  /** Where clients reach this server; empty: at the address of each request. */
  publicUrl: string
}

const orNone = (limit: number, text: string): string => (limit === 0 ? 'no limit' : text)

/** What is limited, and to how much. */
const limitRows = ({
  submitLimits: { rate, cooldownMs, strikes },
  ...settings
}: DocumentSettings): readonly (readonly [string, string])[] => [
  [
    'Submissions of an agent',
    orNone(rate, `${rate} in 60 s, dry runs included; ${SUBMIT_JITTER_MS} ms earlier is still in time`),
  ],
  ['Submissions of an agent on one mint', orNone(cooldownMs, `1 in ${cooldownMs / 1_000} s`)],
  ['Rejected submissions', orNone(strikes, `${strikes} in 24 hours suspend the agent`)],
  [
    'Reads without a key, by address',
    orNone(settings.readLimitAnonymous, `${settings.readLimitAnonymous} in 60 s; a stream is one read`),
  ],
  ['Reads with a key', orNone(settings.readLimitKeyed, `${settings.readLimitKeyed} in 60 s`)],
  ['Rows of market lists', `${ROWS_PER_READ} in 60 s for each read that you may make`],
  [
    'Registrations of an address',
    settings.registration === 'closed'
      ? 'closed'
      : orNone(settings.registerLimit, `${settings.registerLimit} in an hour`),
  ],
  ['Body of a request', `${BODY_BYTES_MAX} bytes`],
  ['Query string', `${QUERY_CHARACTERS_MAX} characters`],
  ['`summary`', `${SUMMARY_CODE_POINTS_MIN} to ${SUMMARY_CODE_POINTS_MAX} characters after trimming`],
  ['`riskFactors`', `${RISK_FACTORS_MIN} to ${RISK_FACTORS_MAX}`],
  ['`limit` of the market list', `${MARKET_LIMIT_MAX_JSON}; as NDJSON every token`],
  ['`limit` of bars', `${BARS_LIMIT_MAX}`],
  ['`limit` of leaderboards', `${LEADERBOARD_LIMIT_MAX}`],
  ['`mints` of a batch', `${BATCH_MINTS_MAX}`],
  ['Subscriptions of a WebSocket', `${SUBSCRIPTIONS_MAX}`],
  ['Different windows of a client', `${WINDOWS_OF_CLIENT_MAX}`],
  ['Streams at once, of all clients', `${FOLLOWERS_MAX}`],
]

/** The same as a table in Markdown. */
export const limitsTable = (settings: DocumentSettings): string =>
  ['| Limit | Value |', '| --- | --- |', ...limitRows(settings).map((row) => `| ${row.join(' | ')} |`)].join(
    '\n',
  )
