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

/** A record has at most 2^22 bytes and a bit, and begins below 2^27: both fit a double's 53 bits. */
const LENGTH_FACTOR = 2 ** 24
const PLACES_MIN = 64

/** FNV-1a over the units of a text, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash >>> 0
}

/**
 * Places of records by identities that they hold. A log may hold a million: so no identity is kept, only its hash, and whoever
 * asks looks at each record that it may be in. A table with open addressing, at most half full.
 */
class PlacesByIdentity {
  #hashes = new Uint32Array(PLACES_MIN)
  /** 0: nothing is there. No record begins and ends at a file's first byte. */
  #places = new Float64Array(PLACES_MIN)
  #count = 0

  add(id: string, place: number): void {
    if (this.#count * 2 >= this.#places.length) this.#grow()
    this.#put(hashOf(id), place)
    this.#count++
  }

  *of(id: string): Generator<number> {
    const mask = this.#places.length - 1
    const hash = hashOf(id)
    for (let at = hash & mask; this.#places[at] !== 0; at = (at + 1) & mask)
      if (this.#hashes[at] === hash) yield this.#places[at]
  }

  #put(hash: number, place: number): void {
    const mask = this.#places.length - 1
    let at = hash & mask
    while (this.#places[at] !== 0) at = (at + 1) & mask
    this.#hashes[at] = hash
    this.#places[at] = place
  }

  #grow(): void {
    const [hashes, places] = [this.#hashes, this.#places]
    this.#hashes = new Uint32Array(2 * hashes.length)
    this.#places = new Float64Array(2 * places.length)
    places.forEach((place, at) => {
      if (place !== 0) this.#put(hashes[at], place)
    })
  }
}

interface SegmentRows {
  places: PlacesByIdentity
  rowsByTable: Map<TableName, number>
}

/** What lies in the log and not in the lake. Bounded by the log's own bound. */
export class UnflushedRows {
  readonly #segments = new Map<number, SegmentRows>()

  add(rows: readonly CommittedRow[], { segment, offset, length }: Position): void {
    let held = this.#segments.get(segment)
    if (held === undefined) {
      held = { places: new PlacesByIdentity(), rowsByTable: new Map() }
      this.#segments.set(segment, held)
    }
    for (const { table, id } of rows) {
      held.rowsByTable.set(table, (held.rowsByTable.get(table) ?? 0) + 1)
      if (id !== null) held.places.add(id, offset * LENGTH_FACTOR + length)
    }
  }

  /** Records that may hold a submission: at most one of them does. */
  find(analysisId: string): Position[] {
    const found: Position[] = []
    for (const [segment, { places }] of this.#segments)
      for (const place of places.of(analysisId))
        found.push({ segment, offset: Math.floor(place / LENGTH_FACTOR), length: place % LENGTH_FACTOR })
    return found
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
