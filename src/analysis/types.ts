// In: nothing. Out: the words of the judge's door, and the ports through which it learns facts and keeps records.
// Never holds state. The ports are shaped so that the engine and the store fit them as they are.
import type { DataPoint, SnapshotValues } from '../schema/datapoint.ts'
import type { Row, Write } from '../schema/tables.ts'

/** What the judge must know of the market. The engine fits. */
export interface Facts {
  has(mint: string): boolean
  snapshot(mint: string): SnapshotValues | null
  asOf(mint: string, timeMs: number): SnapshotValues | null
  datapoint(mint: string): DataPoint | null
}

/** Where the judge keeps its records. The store fits. */
export interface Ledger {
  commit(writes: readonly Write[]): Promise<void>
  analysis(analysisId: string): Promise<Row | null>
}

export interface Agent {
  agentId: string
  name: string
  description: string | null
  type: 'agent' | 'researcher'
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
  body: Uint8Array
  /** The Idempotency-Key header, or null. */
  idempotencyKey: string | null
}
