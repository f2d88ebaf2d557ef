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

/** Makes rows of the XP ledger, with identities that rise within one millisecond. */
export class XpLedger {
  readonly #nextUlid: (timeMs: number) => string

  /** `random`: uniform in [0, 1). */
  constructor(random: () => number) {
    this.#nextUlid = monotonicFactory(random)
  }

  write({ agentId, awardedAtMs, kind, xp, analysisId, note }: LedgerEntry): TableWrite<'xp_ledger'> {
    return {
      table: 'xp_ledger',
      row: {
        entry_id: `xp_${this.#nextUlid(awardedAtMs)}`,
        agent_id: agentId,
        awarded_at: awardedAtMs,
        kind,
        xp,
        analysis_id: analysisId,
        note,
        schema_version: LAKE_SCHEMA_VERSION,
      },
    }
  }
}
