// In: submissions as they become durable. Out: where each can be read again until it is in the lake, and the latest of them
// as text. Never reads the log itself.
import { BoundedMap } from '../../lib/bounded-map.ts'
import type { TableName } from '../../schema/tables.ts'
import { RECENT_ROWS_CHARACTERS_MAX, RECENT_ROWS_MAX } from '../limits.ts'
import type { Position } from '../log/types.ts'

export type SubmissionTable = 'training' | 'rejections'

/** A durable submission. */
export interface RecentRow {
  table: SubmissionTable
  knownAtMs: number
  /** The row as it was encoded for the log. */
  json: string
}

/** The latest submissions: RECENT_ROWS_MAX of them, and no more than so many characters. */
export class RecentRows {
  readonly #rows = new BoundedMap<string, RecentRow>({
    entriesMax: RECENT_ROWS_MAX,
    weightMax: RECENT_ROWS_CHARACTERS_MAX,
    weigh: ({ json }) => json.length,
  })

  add(analysisId: string, row: RecentRow): void {
    this.#rows.set(analysisId, row)
  }

  find(analysisId: string): RecentRow | null {
    return this.#rows.get(analysisId) ?? null
  }
}

/** A row of a commit: its table, and its identity where it is looked up by one. */
export interface CommittedRow {
  table: TableName
  id: string | null
}

interface SegmentRows {
  /** Place of the record that holds a submission, in one number: a log may hold a million of them. */
  placeById: Map<string, number>
  rowsByTable: Map<TableName, number>
}

/** A record has at most 2^22 bytes and a bit, and begins below 2^27: both fit a double's 53 bits. */
const LENGTH_FACTOR = 2 ** 24

/** What lies in the log and not in the lake. Bounded by the log's own bound. */
export class UnflushedRows {
  readonly #segments = new Map<number, SegmentRows>()

  add(rows: readonly CommittedRow[], { segment, offset, length }: Position): void {
    let held = this.#segments.get(segment)
    if (held === undefined) {
      held = { placeById: new Map(), rowsByTable: new Map() }
      this.#segments.set(segment, held)
    }
    for (const { table, id } of rows) {
      held.rowsByTable.set(table, (held.rowsByTable.get(table) ?? 0) + 1)
      if (id !== null) held.placeById.set(id, offset * LENGTH_FACTOR + length)
    }
  }

  find(analysisId: string): Position | null {
    for (const [segment, { placeById }] of this.#segments) {
      const place = placeById.get(analysisId)
      if (place !== undefined)
        return { segment, offset: Math.floor(place / LENGTH_FACTOR), length: place % LENGTH_FACTOR }
    }
    return null
  }

  /** Rows of a table that no file of the lake holds yet. */
  count(table: TableName): number {
    let rows = 0
    for (const { rowsByTable } of this.#segments.values()) rows += rowsByTable.get(table) ?? 0
    return rows
  }

  /** All of a segment is in the lake. */
  forget(segment: number): void {
    this.#segments.delete(segment)
  }
}
