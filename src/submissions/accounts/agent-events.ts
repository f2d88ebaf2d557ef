import type { TableRow, TableWrite } from '../../schema/tables.ts'
import type { Profile } from '../types.ts'

/** A change to an agent or to one of its keys: a row of `agent_events`. Times are Unix ms. */
export type AgentEvent =
  | { kind: 'profile'; data: Profile }
  | { kind: 'key_expires'; data: { keyHash: string; atMs: number } }
  /** A rotation made it. Earlier versions did not tell, nor whether it was used since: a key without this row counts as used. */
  | { kind: 'key_unused'; data: { keyHash: string } }
  /** A key that replaced another one was used for the first time. */
  | { kind: 'key_used'; data: { keyHash: string } }
  /** Automatic. `untilMs` null: for good. */
  | { kind: 'suspended'; data: { untilMs: number | null; reason: string } }
  /** By the operator. */
  | { kind: 'banned'; data: { untilMs: number | null; reason: string } }
  | { kind: 'unbanned'; data: Record<string, never> }

export const writeEvent = (
  agentId: string,
  { kind, data }: AgentEvent,
  atMs: number,
): TableWrite<'agent_events'> => ({
  table: 'agent_events',
  row: { agent_id: agentId, at: atMs, kind, data: JSON.stringify(data) },
})

/** The event of a stored row. One of a kind that this version does not know is applied to nothing. */
export const readEvent = ({ kind, data }: TableRow<'agent_events'>): AgentEvent =>
  ({ kind, data: JSON.parse(data) }) as AgentEvent
