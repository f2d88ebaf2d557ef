// Where each submission can be read until it is in the lake: its position in the log, and the latest ones as text.
import { BoundedMap } from '../../lib/bounded-map.ts'
import type { Row, TableName } from '../../schema/tables.ts'
import { RECENT_ROWS_CHARACTERS_MAX, RECENT_ROWS_MAX } from '../limits.ts'
import type { Position } from '../log/types.ts'
import { SubmissionColumns, type SubmissionIdentity } from './submission-columns.ts'

export type SubmissionTable = 'training' | 'rejections'

export const isSubmissionTable = (table: TableName): table is SubmissionTable =>
  table === 'training' || table === 'rejections'

/** A durable submission. */
export interface RecentRow {
  table: SubmissionTable
  knownAtMs: number
  /** The row as it was encoded for the log. */
  json: string
}

/** The latest submissions: at most RECENT_ROWS_MAX rows and RECENT_ROWS_CHARACTERS_MAX characters. */
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

/** A row of a commit: its table and, for a submission, what it is found by. */
export interface RowIdentity {
  table: TableName
  submission: SubmissionIdentity | null
}

export function identifyRow(table: TableName, row: Row): RowIdentity {
  if (!isSubmissionTable(table)) return { table, submission: null }
  const { analysis_id: analysisId, agent_id: agentId, mint, submitted_at: submittedAt } = row
  if (typeof analysisId !== 'string' || typeof agentId !== 'string' || typeof mint !== 'string')
    return { table, submission: null }
  const submittedAtMs = typeof submittedAt === 'number' ? Math.floor(submittedAt) : 0
  return { table, submission: { analysisId, agentId, mint, submittedAtMs } }
}

/** A position is packed into one double: a record starts below 2^27 and is shorter than 2^24 bytes, so 53 bits suffice. */
const LENGTH_FACTOR = 2 ** 24
const SLOTS_MIN = 64

const unpack = (segment: number, packed: number): Position => ({
  segment,
  offset: Math.floor(packed / LENGTH_FACTOR),
  length: packed % LENGTH_FACTOR,
})

/** FNV-1a, 32 bits, over the UTF-16 code units. */
function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash >>> 0
}

/**
 * Packed positions by the hash of an identity. A log may hold a million submissions, so the identities themselves are not
 * kept: the caller checks each record that is found. Open addressing with linear probing, at most half full.
 */
class PositionIndex {
  #hashes = new Uint32Array(SLOTS_MIN)
  /** 0 marks a free slot: no record starts at offset 0, where a file has its header. */
  #positions = new Float64Array(SLOTS_MIN)
  #count = 0

  add(id: string, packed: number): void {
    if (this.#count * 2 >= this.#positions.length) this.#grow()
    this.#put(hashText(id), packed)
    this.#count++
  }

  *find(id: string): Generator<number> {
    const mask = this.#positions.length - 1
    const hash = hashText(id)
    for (let slot = hash & mask; this.#positions[slot] !== 0; slot = (slot + 1) & mask)
      if (this.#hashes[slot] === hash) yield this.#positions[slot]
  }

  #put(hash: number, packed: number): void {
    const mask = this.#positions.length - 1
    let slot = hash & mask
    while (this.#positions[slot] !== 0) slot = (slot + 1) & mask
    this.#hashes[slot] = hash
    this.#positions[slot] = packed
  }

  #grow(): void {
    const [hashes, positions] = [this.#hashes, this.#positions]
    this.#hashes = new Uint32Array(2 * hashes.length)
    this.#positions = new Float64Array(2 * positions.length)
    positions.forEach((packed, slot) => {
      if (packed !== 0) this.#put(hashes[slot], packed)
    })
  }
}

/** Where an unflushed submission can be read. */
export interface ListedPosition {
  submittedAtMs: number
  position: Position
}

interface SegmentRows {
  index: PositionIndex
  submissions: SubmissionColumns
  rowsByTable: Map<TableName, number>
}

/** The rows that are in the log and not in the lake, by segment. Bounded by the size of the log. */
export class UnflushedRows {
  readonly #segments = new Map<number, SegmentRows>()

  add(rows: readonly RowIdentity[], { segment, offset, length }: Position): void {
    let held = this.#segments.get(segment)
    if (held === undefined) {
      held = {
        index: new PositionIndex(),
        submissions: new SubmissionColumns(),
        rowsByTable: new Map(),
      }
      this.#segments.set(segment, held)
    }
    const packed = offset * LENGTH_FACTOR + length
    for (const { table, submission } of rows) {
      held.rowsByTable.set(table, (held.rowsByTable.get(table) ?? 0) + 1)
      if (submission === null) continue
      held.index.add(submission.analysisId, packed)
      held.submissions.add(submission, packed)
    }
  }

  /** Records that may hold a submission; at most one of them does. */
  find(analysisId: string): Position[] {
    const found: Position[] = []
    for (const [segment, { index }] of this.#segments)
      for (const packed of index.find(analysisId)) found.push(unpack(segment, packed))
    return found
  }

  /**
   * The newest submissions of an agent (null: any) on a mint (null: any) until `untilMs`, newest first: all of that
   * millisecond, and `count` or more before it where there are as many.
   */
  list(agentId: string | null, mint: string | null, untilMs: number, count: number): ListedPosition[] {
    const found: ListedPosition[] = []
    for (const [segment, { submissions }] of this.#segments)
      for (const { submittedAtMs, packed } of submissions.find(agentId, mint, untilMs))
        found.push({ submittedAtMs, position: unpack(segment, packed) })
    const times = found.map(({ submittedAtMs }) => submittedAtMs).filter((timeMs) => timeMs < untilMs)
    // Numbers sort ten times faster than objects, of which there may be a hundred thousand.
    const sinceMs = Float64Array.from(times).sort().at(-count) ?? Number.NEGATIVE_INFINITY
    return found
      .filter(({ submittedAtMs }) => submittedAtMs >= sinceMs)
      .sort((a, b) => b.submittedAtMs - a.submittedAtMs)
  }

  /** Rows of a table that no file of the lake holds yet. */
  count(table: TableName): number {
    let rows = 0
    for (const { rowsByTable } of this.#segments.values()) rows += rowsByTable.get(table) ?? 0
    return rows
  }

  /** The lake holds the whole segment now. */
  forget(segment: number): void {
    this.#segments.delete(segment)
  }
}
