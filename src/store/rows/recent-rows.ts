// Where each submission can be read until it is in the lake: its position in the log, and the latest ones as text.
import { lastingMemory } from '../../lib/memory.ts'
import type { Row, TableName } from '../../schema/tables.ts'
import { RECENT_CHUNK_BYTES, RECENT_CHUNK_ROWS, RECENT_CHUNKS_MAX } from '../limits.ts'
import type { Position } from '../log/types.ts'
import { PositionIndex, packPosition, unpackPosition } from './position-index.ts'
import { SubmissionColumns, type SubmissionIdentity } from './submission-columns.ts'

export type SubmissionTable = 'training' | 'rejections'

export const isSubmissionTable = (table: TableName): table is SubmissionTable =>
  table === 'training' || table === 'rejections'

/** Rows as bytes, each with its table and time before it. */
interface RowChunk {
  bytes: Buffer
  usedBytes: number
  rows: number
  index: PositionIndex
}

/**
 * The latest submissions as text, in chunks that are filled in turn; when all are full, the oldest is dropped whole. Bytes
 * outside the heap, because objects that live this long and then go make the garbage collector stop the server more often.
 */
export class RecentRows {
  /** Oldest first. */
  #chunks: RowChunk[] = []

  /** @param json the row as it was encoded for the log. One that is longer than a chunk is not kept. */
  add(analysisId: string, table: SubmissionTable, knownAtMs: number, json: string): void {
    const text = `["${table}",${knownAtMs},${json}]`
    const bytes = Buffer.byteLength(text)
    if (bytes > RECENT_CHUNK_BYTES) return
    const chunk = this.#chunkFor(bytes)
    chunk.bytes.write(text, chunk.usedBytes)
    chunk.index.add(analysisId, packPosition(chunk.usedBytes, bytes))
    chunk.usedBytes += bytes
    chunk.rows++
  }

  find(analysisId: string): { table: SubmissionTable; knownAtMs: number; row: Row } | null {
    for (const { bytes, index } of this.#chunks)
      for (const packed of index.find(analysisId)) {
        const { offset, length } = unpackPosition(packed)
        const text = bytes.toString('utf8', offset, offset + length)
        const [table, knownAtMs, row] = JSON.parse(text) as [SubmissionTable, number, Row]
        if (row.analysis_id === analysisId) return { table, knownAtMs, row }
      }
    return null
  }

  #chunkFor(bytes: number): RowChunk {
    const last = this.#chunks.at(-1)
    if (last !== undefined && last.rows < RECENT_CHUNK_ROWS && last.usedBytes + bytes <= RECENT_CHUNK_BYTES)
      return last
    // The bytes of the oldest are used again: new ones would have to be fetched from the system in the middle of a submission.
    const oldest = this.#chunks.length < RECENT_CHUNKS_MAX ? undefined : this.#chunks.shift()
    const chunk = {
      bytes: oldest?.bytes ?? Buffer.from(lastingMemory(RECENT_CHUNK_BYTES)),
      usedBytes: 0,
      rows: 0,
      index: new PositionIndex(),
    }
    this.#chunks.push(chunk)
    return chunk
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
    const packed = packPosition(offset, length)
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
      for (const packed of index.find(analysisId)) found.push({ segment, ...unpackPosition(packed) })
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
        found.push({ submittedAtMs, position: { segment, ...unpackPosition(packed) } })
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
