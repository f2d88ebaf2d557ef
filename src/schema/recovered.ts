// What the store hands over at a start for accounts and submissions to go on from. Rows are in the order of their commits; times
// are of the server's clock.
import type { TableRow } from './tables.ts'
import type { OutcomeCounts } from './vocabulary.ts'

/** What the store and the rules of submissions remember alike, at most. Cooldowns: the one that began first ends. */
export const COOLDOWNS_MAX = 1_000_000
/** Submissions whose labels are withheld: those of the oldest are never shown in the coverage. */
export const LABELS_WITHHELD_MAX = 1_000_000
/** Mints whose analyses are counted: further mints earn no bonus, so that no bonus is paid twice. */
export const COVERED_MINTS_MAX = 1_000_000

/** A time from which a limit counts. */
export interface Moment {
  agentId: string
  atMs: number
}

export interface CooldownMoment extends Moment {
  mint: string
}

/** Labels of an accepted analysis that may still be withheld from others. */
export interface RecentLabels {
  analysisId: string
  mint: string
  sentiment: string
  score: number
  /** When the analysis came. */
  atMs: number
}

export interface RecoveredAgents {
  agents: readonly TableRow<'agents'>[]
  agentKeys: readonly TableRow<'agent_keys'>[]
  /** Those that still have an effect. */
  agentEvents: readonly TableRow<'agent_events'>[]
}

export interface RecoveredLimits {
  /** Of the last 60 s at least. */
  submitAttempts: readonly TableRow<'submit_attempts'>[]
  /** Of the last 24 h at least. */
  idempotency: readonly TableRow<'idempotency'>[]
  /** Submissions whose cooldown may run, oldest first: the latest of an agent on a mint counts. */
  cooldowns: readonly CooldownMoment[]
  /** Rejections of the last 30 days at least, from which strikes and suspensions follow. */
  strikes: readonly Moment[]
}

export interface RecoveredXp {
  /** Sums of the ledger by agent. */
  xpTotals: readonly { agentId: string; xp: number; analyses: number }[]
  /** Submissions by agent and outcome. */
  outcomeCounts: readonly ({ agentId: string } & OutcomeCounts)[]
  /** Accepted analyses by mint, with the labels of the latest that is not among `recentLabels`; null: there is none. */
  coverage: readonly { mint: string; count: number; lastSentiment: string | null; lastScore: number | null }[]
  recentLabels: readonly RecentLabels[]
}

export interface Recovered extends RecoveredAgents, RecoveredLimits, RecoveredXp {}
