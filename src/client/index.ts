// `mintlake/client`: the API as typed calls. Runs wherever fetch and web streams do; depends on nothing else.
import { MintlakeClient } from './client.ts'
import { type ClientOptions, Transport } from './transport.ts'

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
export type { CallOptions, ClientOptions } from './transport.ts'
export type { BackoffBounds } from './waiting.ts'

/** Makes a client of one server. Opens nothing. @throws TypeError for a base URL that is none. */
export const createClient = (options: ClientOptions): MintlakeClient =>
  new MintlakeClient(new Transport(options))
