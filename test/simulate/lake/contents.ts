// What the modelled lake has. All of it is durable, and each request that changes it does so in one step.
import type { EventBatch } from '../../../src/journal/event-batch.ts'
import type { Row, TableName } from '../../../src/schema/tables.ts'
import type { BAR_NUMBERS } from '../../../src/store/market-data/bar-batch.ts'
import type { BarAccount } from '../../../src/store/market-data/bar-counts.ts'
import type { StateAges, StoreState } from '../../../src/store/state/state.ts'
import { LakeFiles } from './files.ts'
import type { OpenOutcome } from './labels.ts'

/** A row of a table, as the log has it. */
export interface LakeRow {
  lsn: number
  knownAtMs: number
  row: Row
}

export type LakeBar = Record<(typeof BAR_NUMBERS)[number], number> & { mint: string }

export class LakeContents {
  logId: string | null = null
  state: StoreState | null = null
  ages: StateAges | null = null
  /** All rows that ever came, also those that have left. */
  readonly tables = new Map<TableName, LakeRow[]>()
  readonly bars = new Map<string, LakeBar>()
  readonly accounts = new Map<string, BarAccount>()
  readonly profiles: Row[] = []
  readonly batches: EventBatch[] = []
  /** What is in files at present. */
  readonly files = new LakeFiles()
  eventNo = 0
  /** Numbers that the journal does not have, inclusive. */
  readonly lostEvents: { from: number; to: number }[] = []
  lostRows = 0
  /** Submissions whose last horizon has not passed. */
  openOutcomes: OpenOutcome[] = []
  /** Labels that no file has yet. */
  waitingLabels: LakeRow[] = []
  /** What was known of the time at the end of the last process, Unix ms. */
  knownTimeMs: number | null = null

  rows(table: TableName): readonly LakeRow[] {
    return this.tables.get(table) ?? []
  }

  addRow(table: TableName, row: LakeRow): void {
    const rows = this.tables.get(table) ?? []
    this.tables.set(table, rows)
    rows.push(row)
  }

  get eventsLost(): number {
    return this.lostEvents.reduce((sum, { from, to }) => sum + to - from + 1, 0)
  }
}
