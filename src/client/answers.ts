// The answers of the HTTP API, as far as the client returns them.
import type { z } from 'zod'
import type { analysisListSchema } from '../schema/api/analyses.ts'
import type { standingSchema } from '../schema/api/standing.ts'
import type { Bar, BarFill, Timeframe } from '../schema/bar.ts'
import type { DataPoint, Enriched, SnapshotField, SnapshotValues } from '../schema/datapoint.ts'
import type { MarketItem } from '../schema/market-item.ts'
import type { AgentType, Order, Outcome, Sort, Tab } from '../schema/vocabulary.ts'

/** An answer without `ok`, which tells successes from errors. */
type AnswerOf<Schema extends z.ZodType> = Omit<z.infer<Schema>, 'ok'>

/** What most answers may tell beside their data. */
interface CommonMeta {
  /** Query parameters that this server does not know. */
  ignored?: readonly string[]
  /** Parameters that were over their maximum, with the value that was used. */
  clamped?: { limit: number }
}

export interface MarketPage {
  data: MarketItem[]
  meta: CommonMeta & {
    tab: Tab
    sort: Sort
    order: Order
    limit: number
    offset: number
    /** Rows of this page, and of the list. */
    count: number
    total: number
    /** Position of this page in the sequence of changes. */
    version: number
    /** The next page of the same version, for at least 30 s; null: this is the last. */
    nextCursor: string | null
  }
}

export interface DataPoints {
  data: DataPoint[]
  /** Mints without a DataPoint. */
  notFound: string[]
}

export interface Bars {
  /** Oldest first, the forming bar last. */
  data: Bar[]
  meta: CommonMeta & {
    mint: string
    tf: Timeframe
    limit: number
    fill: BarFill
    /** Intervals without a trade between the first and the last bar. */
    gaps: number
    /** Bars that start before this time may lack trades, Unix ms. */
    completeFrom?: number
  }
}

/** The verdict on a submission. */
export interface Verdict {
  mint: string
  outcome: Outcome
  validated: boolean
  xpEarned: number
  /** The agent's XP with this submission. */
  xpTotal: number
  /** (base + bonuses) x multiplier. */
  xpBreakdown: { base: number; firstBonus: number; lowCoverageBonus: number; multiplier: number }
  /** Largest deviation of the snapshot, percent; 0 where none was sent. */
  deviationPct: number
  worstField: SnapshotField | null
  deviations: Partial<Record<SnapshotField, number>>
  snapshotSource: 'client' | 'server'
  enriched: Enriched
  warning?: string
  /** Fields that were sent and that only the server may fill. */
  ignored?: readonly string[]
  createdAt: number
  /** When this agent may submit on this mint again, Unix ms. */
  nextAllowedAt: number
}

/** An accepted submission. */
export interface Receipt extends Verdict {
  analysisId: string
}

/** What a submission would have got. */
export interface DryRun extends Verdict {
  dryRun: true
  /** There is no analysis. */
  analysisId: null
}

export interface IssuedKey {
  /** Shown this once: only its hash is kept. */
  key: string
  type: AgentType
  /** Submissions a minute; null: no limit. */
  rateLimit: number | null
}
export interface Registration extends IssuedKey {
  agentId: string
}
export interface RotatedKey extends IssuedKey {
  /** When the key that was used ends, Unix ms. */
  oldKeyExpiresAt: number
}

export interface Profile {
  name: string
  description: string | null
  avatarUrl: string | null
  twitterHandle: string | null
  website: string | null
  createdAt: number
  updatedAt: number
}

/** How an agent stands. */
export type Standing = z.infer<typeof standingSchema>

/** One analysis of a list, with what it earned and what the price did afterwards. */
export type ListedAnalysis = AnswerOf<typeof analysisListSchema>['data'][number]

/** One analysis, with the server's values that it was compared with. */
export interface Analysis extends Omit<ListedAnalysis, 'xpEarned' | 'outcomes'> {
  snapshot: SnapshotValues & { snapshotAt: number | null }
  enriched: Enriched
}

export type AnalysisPage = AnswerOf<typeof analysisListSchema>

export interface AgentRank {
  rank: number
  agentId: string
  name: string
  xp: number
  analyses: number
}
