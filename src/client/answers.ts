// The answers of the HTTP API, as far as the client returns them.
import type { Bar, BarFill, Timeframe } from '../schema/bar.ts'
import type { DataPoint, Enriched, SnapshotField, SnapshotValues } from '../schema/datapoint.ts'
import type { MarketItem } from '../schema/market-item.ts'
import type { Quant } from '../schema/submission.ts'
import type { Horizon } from '../schema/tables.ts'
import type { AgentType, Order, Outcome, Sentiment, Sort, Tab } from '../schema/vocabulary.ts'

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

/** What is left of a rate limit. */
export interface LimitState {
  limit: number
  remaining: number
  windowMs: number
  /** When one more becomes free, Unix ms. */
  resetAt: number
}

/** How an agent stands. */
export interface Standing {
  agentId: string
  xp: number
  /** From 1; null without XP. */
  rank: number | null
  analyses: number
  validated: number
  unvalidated: number
  rejected: number
  /** Rejected submissions that still count towards a suspension. */
  strikes: number
  banned: boolean
  /** When the ban ends, Unix ms; null: there is none, or it never ends. */
  bannedUntil: number | null
  limits: {
    /** null: not limited. */
    submit: LimitState | null
    reads: LimitState | null
    /** The mints that it may not submit on yet, those that end first; 100 at most. */
    cooldowns: { mint: string; nextAllowedAt: number }[]
  }
}

/** What every form of a stored submission tells. Labels of other agents are null until `labelsAvailableAt`. */
interface StoredSubmission {
  analysisId: string
  agentId: string
  mint: string
  outcome: Outcome
  validated: boolean
  deviationPct: number
  sentiment: Sentiment | null
  score: number | null
  summary: string | null
  quant: Quant | null
  /** When others may see the labels, Unix ms; null: they are shown. */
  labelsAvailableAt: number | null
  createdAt: number
}

/** One analysis, with the server's values that it was compared with. */
export interface Analysis extends StoredSubmission {
  snapshot: SnapshotValues & { snapshotAt: number | null }
  enriched: Enriched
}

/** One analysis of a list, with what it earned. */
export interface ListedAnalysis extends StoredSubmission {
  /** null: not known any more. */
  xpEarned: number | null
  outcomes: PriceOutcomes
}

/** What the price did after a submission; null: not known yet, or it was rejected. Returns are fractions: 0.1 is 10 %. */
export type PriceOutcomes = { [H in Horizon as `fwd_ret_${H}`]: number | null } & {
  fwd_max_drawdown_24h: number | null
  dead_24h: boolean | null
}

export interface AnalysisPage {
  /** Newest first. */
  data: ListedAnalysis[]
  meta: CommonMeta & {
    limit: number
    /** The next page, also where this one is short or empty; null: this is the last. */
    nextCursor: string | null
    /** This page searched all submissions since this time, Unix ms; null: all there are. */
    searchedTo: number | null
  }
}

export interface AgentRank {
  rank: number
  agentId: string
  name: string
  xp: number
  analyses: number
}
