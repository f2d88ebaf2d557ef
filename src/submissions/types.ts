// What submissions need of the market and of the store, and what the HTTP layer needs of submissions. Times are Unix ms
// unless a name says otherwise.
import type { z } from 'zod'
import type { issuedKeySchema, profileSchema } from '../schema/api/accounts.ts'
import type { agentStatusSchema, awardReceiptSchema } from '../schema/api/admin.ts'
import type { standingSchema } from '../schema/api/standing.ts'
import type { StreamedSubmission } from '../schema/api/stream.ts'
import type { SubmissionKey, SubmissionPage, SubmissionQuery } from '../schema/api/submission-list.ts'
import type {
  agentRankSchema,
  coverageSchema,
  receiptSchema,
  xpBreakdownSchema,
} from '../schema/api/submissions.ts'
import type { DataPoint, SnapshotValues, SourcedEnriched } from '../schema/datapoint.ts'
import type { RecentLabels } from '../schema/recovered.ts'
import type { SubmissionRow, Write } from '../schema/tables.ts'

/** The market's state, as submissions read it. */
export interface MarketReader {
  /** The compared values of now; null: no DataPoint is known. */
  snapshot(mint: string): SnapshotValues | null
  /** The compared values that a client may have read as of the millisecond `timeMs`, newest first: those at its end, and what was
   *  served in it before. None: they are not kept that long. */
  versionsAt(mint: string, timeMs: number): readonly SnapshotValues[]
  /** Not null for a mint that has a snapshot. */
  enriched(mint: string): SourcedEnriched | null
  datapoint(mint: string): DataPoint | null
}

/** Which market time a client's own clock stands for, where the market has a time of its own. */
export interface SnapshotStamps {
  /** Market time at a time of a client's clock, Unix ms; `ambiguous`: it may be one of several; null: it is no time of that clock. */
  marketTimeOf(mint: string, stampMs: number): number | 'ambiguous' | null
}

/** Where submissions and accounts are recorded. */
export interface SubmissionStore {
  /** Resolves when all rows are durable, together. */
  commit(writes: readonly Write[]): Promise<void>
  analysis(analysisId: string): Promise<SubmissionRow | null>
  /** A page of submissions, newest first, those that became durable just now included. */
  submissions(query: SubmissionQuery): Promise<SubmissionPage>
}

/** What is forgotten before its time where there is too much: see COOLDOWNS_MAX, IDEMPOTENCY_RESPONSES_MAX and LABELS_WITHHELD_MAX. */
export type Forgotten = 'cooldown' | 'idempotency_key' | 'withheld_labels'

/** Labels of an analysis that the coverage of its token shows. */
export type TokenLabels = Omit<RecentLabels, 'analysisId' | 'atMs'>

export type Agent = Pick<AgentStatus, 'agentId' | 'name' | 'description' | 'type' | 'createdAtMs'>

/** An authenticated agent, and the key that it used. */
export interface Caller {
  agent: Agent
  keyHash: string
}

export interface SubmitRequest {
  /** The raw body, at most 64 KiB. */
  body: Buffer
  /** The Idempotency-Key header, or null. */
  idempotencyKey: string | null
}

/** What is left of a rate limit. */
export interface Quota {
  limit: number
  remaining: number
  windowMs: number
  /** Until one more becomes free, whole ms; 0 when nothing is used. */
  resetMs: number
  /** The same as Unix ms. */
  resetAtMs: number
}

/** How the XP of an analysis comes about: (base + bonuses) x multiplier. A bonus that does not apply is 0. */
export type XpBreakdown = z.infer<typeof xpBreakdownSchema>

/** The result of an accepted submission, or of a dry run, which stores no analysis. */
export interface Receipt extends Omit<z.infer<typeof receiptSchema>, 'analysisId'> {
  analysisId: string | null
}

/** An evaluated submission that is durable, without its labels. */
export type EvaluatedSubmission = Omit<StreamedSubmission, 'agentName' | 'symbol'>

export interface SubmitResult {
  receipt: Receipt
  /** What is left of the submit rate; null: it is not limited. */
  quota: Quota | null
  /** The receipt of an earlier request with the same Idempotency-Key. */
  isReplay: boolean
}

/** The most analysed tokens. Names are those of the JSON that clients read. */
export type TokenLeaderboard = z.infer<typeof coverageSchema>

/** What became of its analyses is told beside it. */
export type AgentRank = Omit<z.infer<typeof agentRankSchema>, 'horizons'>

export type AwardReceipt = z.infer<typeof awardReceiptSchema>

/** Where an agent stands. Names are those of the JSON that clients read. */
export interface Standing extends Omit<z.infer<typeof standingSchema>, 'limits'> {
  limits: Pick<z.infer<typeof standingSchema>['limits'], 'cooldowns'> & {
    /** The submit rate; null: it is not limited. */
    submit: Quota | null
  }
}

/** One analysis of a list, as its reader may see it; the other members are those of the answer. */
export interface ShownAnalysis extends Record<string, unknown> {
  analysisId: string
  agentId: string
  mint: string
  outcome: string
  /** Null while it is withheld. */
  sentiment: string | null
  createdAt: number
}

/** One page of analyses, newest first. */
export interface AnalysisPage {
  analyses: ShownAnalysis[]
  next: SubmissionKey | null
  searchedToMs: number | null
}

export type Profile = z.infer<typeof profileSchema>

/** A key that was just made. Only its hash is kept, so this is the one time that it can be shown. */
export type IssuedKey = z.infer<typeof issuedKeySchema>

/** What operators see of an agent. */
export type AgentStatus = z.infer<typeof agentStatusSchema>

/** A key as other processes need to know it. */
export interface AccountKey {
  hash: string
  prefix: string
  createdAtMs: number
  /** When it stops being valid, as it was announced, wall time; null: never. */
  expiresAtMs: number | null
  /** The same from now on, by the monotonic clock; negative: it has ended. */
  endsInMs: number | null
  /** Whether it replaced no other key that is valid, or was used since. */
  isUsed: boolean
}

/** What other processes need to know of an agent to tell whose key a request has. */
export interface Account {
  agent: Agent
  /** The name to show. */
  name: string
  /** In the order in which they were made. */
  keys: AccountKey[]
}
