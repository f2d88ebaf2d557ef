import { monotonicFactory } from 'ulid'
import { LAKE_SCHEMA_VERSION, type TableWrite } from '../../schema/tables.ts'
import type { XpKind } from '../../schema/xp.ts'

export interface LedgerEntry {
  agentId: string
  /** Unix ms. */
  awardedAtMs: number
  kind: XpKind
  xp: number
  /** The submission that earned it; null for other kinds than analysis. */
  analysisId: string | null
  /** The operator's remark; null for analyses. */
  note: string | null
}

/** The row of an award. */
export type WriteAward = (entry: LedgerEntry) => TableWrite<'xp_ledger'>

/** Makes rows of the XP ledger, with identities that rise within one millisecond. `random`: uniform in [0, 1). */
export function ledgerWriter(random: () => number): WriteAward {
  const nextUlid = monotonicFactory(random)
  return ({ agentId, awardedAtMs, kind, xp, analysisId, note }) => ({
    table: 'xp_ledger',
    row: {
      entry_id: `xp_${nextUlid(awardedAtMs)}`,
      agent_id: agentId,
      awarded_at: awardedAtMs,
      kind,
      xp,
      analysis_id: analysisId,
      note,
      schema_version: LAKE_SCHEMA_VERSION,
    },
  })
}
