// In: nothing. Out: the words of the submission service's interface, and the ports through which it learns facts and keeps records.
// Never holds state. The ports are shaped so that the engine and the store fit them as they are.
import type { DataPoint, Enriched, SnapshotValues } from '../schema/datapoint.ts'
import type { Row, Write } from '../schema/tables.ts'
import type { AgentType } from '../schema/vocabulary.ts'

/** What the submission service must know of the market. The engine fits. */
export interface MarketReader {
  has(mint: string): boolean
  snapshot(mint: string): SnapshotValues | null
  asOf(mint: string, timeMs: number): SnapshotValues | null
  /** Of every mint that has a snapshot. */
  enriched(mint: string): Enriched | null
  datapoint(mint: string): DataPoint | null
}

/** Where the submission service keeps its records. The store fits. */
export interface SubmissionStore {
  commit(writes: readonly Write[]): Promise<void>
  analysis(analysisId: string): Promise<Row | null>
}

export interface Agent {
  agentId: string
  name: string
  description: string | null
  type: AgentType
  createdAtMs: number
}

/** Who is asking: an agent, through one of its keys. */
export interface Caller {
  agent: Agent
  keyHash: string
}

/** An answer that is not an error: errors are thrown as ServiceError. */
export interface Answer {
  status: number
  body: Record<string, unknown>
  headers?: Record<string, string>
}

export interface SubmitRequest {
  /** The raw body, at most 64 KiB. */
  body: Buffer
  /** The Idempotency-Key header, or null. */
  idempotencyKey: string | null
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

/** What operators see of an agent. */
export interface AgentStatus extends Agent {
  keys: { prefix: string; createdAtMs: number; expiresAtMs: number | null }[]
  /** Until when it may not submit, Unix ms; null when it may; Infinity is shown as null with `banned` true. */
  bannedUntilMs: number | null
  banned: boolean
}

/** Who may ask, and under which key. Every change is durable before its promise resolves. */
export interface Agents {
  /** Throws missing_key, invalid_key or revoked_key. */
  authenticate(key: string): Caller
  /** Body of unknown shape → 201 with the key, shown this once. The operator may say a type. Throws validation_failed;
   *  registration_closed unless the operator asks. */
  register(body: Record<string, unknown>, byOperator?: boolean): Promise<Answer>
  rotate(caller: Caller): Promise<Answer>
  revoke(caller: Caller): Promise<Answer>
  profile(caller: Caller): Profile | null
  setProfile(caller: Caller, body: Record<string, unknown>): Promise<Profile>
  list(): AgentStatus[]
  /** The operator's word: ends every key of an agent, or the one shown by that prefix. Answers how many were in force. */
  revokeKeys(agentId: string, prefix: string | null): Promise<number>
  /** `untilMs` null bans for good. */
  ban(agentId: string, untilMs: number | null, reason: string): Promise<void>
  unban(agentId: string): Promise<void>
}

/** Where analyses are judged. */
export interface SubmissionService {
  submit(caller: Caller, request: SubmitRequest): Promise<Answer>
  /** The public form of one analysis, or null. */
  analysis(analysisId: string): Promise<Record<string, unknown> | null>
  leaderboard(limit: number): Record<string, unknown>
  agentLeaderboard(limit: number): Record<string, unknown>
  /** XP of other kinds than analysis, by the operator. */
  award(agentId: string, kind: string, times: number, note: string | null): Promise<Record<string, unknown>>
}
