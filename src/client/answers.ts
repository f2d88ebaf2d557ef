// The answers of the HTTP API, as far as the client returns them: the types of the schemas that describe them.
import type { z } from 'zod'
import type {
  issuedKeySchema,
  profileSchema,
  registeredSchema,
  rotatedSchema,
} from '../schema/api/accounts.ts'
import type { agentRecordAnswerSchema } from '../schema/api/agent-record.ts'
import type { barsMetaSchema } from '../schema/api/bars.ts'
import type { Calibration } from '../schema/api/calibration.ts'
import type { queryAnswerSchema } from '../schema/api/lake.ts'
import type { dataPointAnswerSchema, marketMetaSchema, totalsAnswerSchema } from '../schema/api/market.ts'
import type { standingSchema } from '../schema/api/standing.ts'
import type { agentRankSchema, analysisListSchema, receiptSchema } from '../schema/api/submissions.ts'
import type { Bar } from '../schema/bar.ts'
import type { DataPoint, Enriched, SnapshotValues } from '../schema/datapoint.ts'
import type { MarketFigures, MarketItem } from '../schema/market-item.ts'

/** An answer without `ok`, which tells successes from errors. */
type AnswerOf<Schema extends z.ZodType> = Omit<z.infer<Schema>, 'ok'>

/** A row of the list. With `fields` it has what was asked for, and nothing else but `mint`. */
export type MarketRow = MarketItem & Partial<MarketFigures>

export interface MarketPage {
  data: MarketRow[]
  meta: z.infer<typeof marketMetaSchema>
}

export type MarketTotals = z.infer<typeof totalsAnswerSchema>['data']

export interface DataPointAnswer {
  data: DataPoint
  /** Where there is something to tell. */
  meta?: z.infer<typeof dataPointAnswerSchema>['meta']
}

export interface DataPoints {
  data: DataPoint[]
  /** Mints without a DataPoint. */
  notFound: string[]
}

export interface Bars {
  /** Oldest first, the forming bar last. */
  data: Bar[]
  meta: z.infer<typeof barsMetaSchema>
}

/** An accepted submission. */
export type Receipt = z.infer<typeof receiptSchema>

/** The verdict on a submission. */
export type Verdict = Omit<Receipt, 'analysisId'>

/** What a submission would have got. */
export interface DryRun extends Verdict {
  dryRun: true
  /** There is no analysis. */
  analysisId: null
}

export type IssuedKey = z.infer<typeof issuedKeySchema>
export type Registration = z.infer<typeof registeredSchema>['data']
export type RotatedKey = z.infer<typeof rotatedSchema>['data']
export type Profile = z.infer<typeof profileSchema>

/** How an agent stands. */
export type Standing = z.infer<typeof standingSchema>

/** One analysis of a list, with what it earned and what the price did afterwards. */
export type ListedAnalysis = AnswerOf<typeof analysisListSchema>['data'][number]

/** One analysis, with the server's values that it was compared with. */
export interface Analysis extends Omit<ListedAnalysis, 'xpEarned' | 'outcomes' | 'agentName' | 'symbol'> {
  snapshot: SnapshotValues & { snapshotAt: number | null }
  enriched: Enriched
}

/** What became of an agent's analyses. */
export type AgentRecord = AnswerOf<typeof agentRecordAnswerSchema>['data']

export type AnalysisPage = AnswerOf<typeof analysisListSchema>

export type AgentRank = z.infer<typeof agentRankSchema>

/** The rows of a query on the lake. How values look is told at `rows` in the API description. */
export type QueryResult = AnswerOf<typeof queryAnswerSchema>

/** What the price did after accepted submissions, by sentiment and by score. */
export type { Calibration }
