// DataPoint fields that few tokens have, as only patches and a few events set them. Each token has one record of them; most share
// that of a token that has none.

import { CheckpointError } from '../../lib/sections/checkpoint-error.ts'
import type { Saved, Section, SectionReader } from '../../lib/sections/sections.ts'
import { encodeTexts, type TextColumn } from '../../lib/sections/text-column.ts'
import type { DataPoint, PatchFields } from '../../schema/datapoint.ts'
import { addReport, type EnrichmentReports } from './enrichment.ts'

const SPARSE_DEFAULTS = {
  streamSource: 'none',
  viewerCount: null,
  dexPaid: false,
  dexBoosted: false,
  primaryDex: null,
  topHolders: [],
  snipersHolding: null,
  insidersHolding: null,
  bundleHolding: null,
  freshWalletsHolding: null,
  creatorHolding: null,
  pairAddress: null,
  fdv: null,
} satisfies Partial<DataPoint>

/** `reports`: what sources have said of the enriched fields. */
export type SparseFields = Pick<DataPoint, keyof typeof SPARSE_DEFAULTS> & { reports: EnrichmentReports }

/** The sparse fields of a token that has none. Most tokens share this record, so it is never written to. */
export const SPARSE_FIELDS_UNKNOWN: SparseFields = Object.freeze<SparseFields>({
  ...SPARSE_DEFAULTS,
  reports: [],
})

const NAMES = Object.keys(SPARSE_DEFAULTS)

/** Whether a field of a patch is one of these. */
export const isSparseField = (name: string): boolean => NAMES.includes(name)

/** Slots whose saved records are freed together. */
const BLOCK_BITS = 8
const BLOCK_SLOTS = 1 << BLOCK_BITS

/** Records of a checkpoint, as JSON. */
interface SavedBlock {
  texts: TextColumn
  /** How many records are still texts, at first and now. */
  count: number
  left: number
}

/** The records by slot. */
export class SparseTable implements Saved {
  /** null: it is still the text of a checkpoint. To make objects of all would take most of the time of a start. */
  readonly #records: (SparseFields | null)[] = []
  readonly #saved: (SavedBlock | null)[] = []

  /** A record, which nobody writes to. */
  get(slot: number): SparseFields {
    const record = this.#records[slot]
    if (record !== null) return record
    const made = this.#parse(slot)
    this.set(slot, made)
    return made
  }

  set(slot: number, record: SparseFields): void {
    const wasText = this.#records[slot] === null
    this.#records[slot] = record
    if (wasText) this.#letGo(slot >>> BLOCK_BITS)
  }

  *save(slotsUsed: number): Iterable<Section> {
    for (let first = 0; first < slotsUsed; first += BLOCK_SLOTS) {
      const records = this.#records.slice(first, Math.min(slotsUsed, first + BLOCK_SLOTS))
      const texts = records.map((record, index) =>
        record === null
          ? this.#textAt(first + index)
          : record === SPARSE_FIELDS_UNKNOWN
            ? null
            : JSON.stringify(record),
      )
      yield { name: `tokens.sparse.${first}`, bytes: encodeTexts(texts) }
    }
  }

  restore(sections: SectionReader, slotsUsed: number): void {
    for (let first = 0; first < slotsUsed; first += BLOCK_SLOTS) {
      const slots = Math.min(BLOCK_SLOTS, slotsUsed - first)
      const texts = sections.texts(`tokens.sparse.${first}`, slots)
      let count = 0
      for (let index = 0; index < slots; index++) {
        const isUnknown = texts.isNull(index)
        this.#records.push(isUnknown ? SPARSE_FIELDS_UNKNOWN : null)
        if (!isUnknown) count++
      }
      this.#saved.push(count === 0 ? null : { texts, count, left: count })
    }
  }

  #textAt(slot: number): string | null {
    return this.#saved[slot >>> BLOCK_BITS]?.texts.at(slot % BLOCK_SLOTS) ?? null
  }

  #parse(slot: number): SparseFields {
    const record: unknown = JSON.parse(this.#textAt(slot) ?? 'null')
    if (isSparse(record)) return 'reports' in record ? record : withReports(record)
    throw new CheckpointError('The checkpoint holds a token whose fields are not those of this version.')
  }

  /** A record is no text any more. Once few are, they are parsed, so that the others can be freed. */
  #letGo(index: number): void {
    const block = this.#saved[index] ?? null
    if (block === null || --block.left * 4 > block.count) return
    const first = index * BLOCK_SLOTS
    const end = Math.min(this.#records.length, first + BLOCK_SLOTS)
    for (let slot = first; slot < end; slot++) this.#records[slot] ??= this.#parse(slot)
    this.#saved[index] = null
  }
}

/** As formats 1 and 2 had it: the enriched fields of one source, among the others. */
function withReports(record: SparseFields & PatchFields): SparseFields {
  const sparse = Object.fromEntries(Object.entries(record).filter(([name]) => isSparseField(name)))
  const reports = addReport([], record, record.enriched_at ?? Number.POSITIVE_INFINITY)
  return { ...SPARSE_FIELDS_UNKNOWN, ...sparse, reports }
}

/** Checks names alone: what was saved is what comes back. */
function isSparse(record: unknown): record is SparseFields {
  return typeof record === 'object' && record !== null && NAMES.every((name) => name in record)
}
