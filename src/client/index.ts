// `mintlake/client`: the API as typed calls. Runs wherever fetch and web streams do; depends on nothing else.
import { MintlakeClient } from './client.ts'
import { REQUEST_MS_MAX } from './limits.ts'
import { Transport } from './transport.ts'
import { BACKOFF, type BackoffBounds } from './waiting.ts'

export type { Bar, BarFill, Timeframe } from '../schema/bar.ts'
export type { DataPoint, Enriched, SnapshotField, SnapshotValues } from '../schema/datapoint.ts'
export type { ErrorCode, FieldError } from '../schema/errors.ts'
export type { MarketItem } from '../schema/market-item.ts'
export type { Quant, Submission, SubmittedSnapshot } from '../schema/submission.ts'
export type { Order, Outcome, RiskFactor, Sentiment, Sort, Tab } from '../schema/vocabulary.ts'
export type * from './answers.ts'
export {
  type AnalysesQuery,
  type BarsQuery,
  type MarketQuery,
  MintlakeClient,
  type ProfileChange,
  type Ranges,
  type WindowQuery,
} from './client.ts'
export { type ClientErrorCode, MintlakeError, type MintlakeErrorCode, type Problem } from './errors.ts'
export type { Disconnect, FollowItem, FollowOptions, FollowQuery } from './follow.ts'
export type { WindowItem } from './follow-window.ts'
export type { SubmitOptions } from './submit.ts'
export type { CallOptions } from './transport.ts'
export type { BackoffBounds } from './waiting.ts'

export interface ClientOptions {
  /** Where the server is, for example `http://127.0.0.1:8080`; may have a path, for a server behind a proxy. */
  baseUrl: string
  /** API key. Without one only public reads are possible, at a lower limit. */
  key?: string | undefined
  /** Another `fetch`. */
  fetch?: typeof fetch | undefined
  /** Time limit of a request, its whole answer included; for streams of the headers. 15 000 ms unless given. */
  timeoutMs?: number | undefined
  /** Whether calls wait until a rate limit allows them. Each call may say otherwise. */
  waitForLimits?: boolean | undefined
  /** How long one call waits for rate limits in all; 150 000 ms unless given. */
  limitWaitMsMax?: number | undefined
  /** Retries of one call after failures that may pass; 4 unless given. */
  retriesMax?: number | undefined
  /** The first and the longest wait between attempts; 250 and 10 000 ms unless given. */
  backoff?: BackoffBounds | undefined
}

/** Makes a client of one server. Opens nothing. @throws TypeError for a base URL that is none. */
export function createClient({
  baseUrl,
  key,
  // Browsers allow fetch to be called as a member of the window only.
  fetch: request = (input, init) => globalThis.fetch(input, init),
  timeoutMs = REQUEST_MS_MAX,
  waitForLimits = false,
  limitWaitMsMax,
  retriesMax,
  backoff = BACKOFF,
}: ClientOptions): MintlakeClient {
  const { origin, pathname } = new URL(baseUrl)
  return new MintlakeClient(
    new Transport({
      baseUrl: `${origin}${pathname}`.replace(/\/+$/, ''),
      key,
      fetch: request,
      timeoutMs,
      waitForLimits,
      limitWaitMsMax,
      retriesMax,
      backoff,
    }),
  )
}
