// Which rows of the market list changed, in which order, and which tabs they belong to. Followers read from here.
import { recordFrom } from '../../lib/record.ts'
import { TABS, type Tab } from '../../schema/vocabulary.ts'
import type { Rankings } from '../rankings/rankings.ts'
import { rowIndex, type TokenTable } from '../tokens/token-table.ts'
import type { ChangePart, Changes, RowFields } from '../types.ts'
import type { ChangeLog } from './change-log.ts'
import { CHANGES_LOOKED_AT_MAX } from './limits.ts'
import type { RowLines } from './row-lines.ts'

export class RowChanges {
  readonly #tokens: TokenTable
  /** By token: the position of its row's last change. */
  readonly #changedSeq: Float64Array
  readonly #rankings: Rankings
  readonly #rowLines: RowLines
  readonly #log: ChangeLog
  /** By tab and token: the position of the change that last moved the token out of the tab; 0: none. */
  readonly #leftSeq: Readonly<Record<Tab, Float64Array>>
  #onChanged: (() => void) | null = null

  constructor(tokens: TokenTable, rankings: Rankings, rowLines: RowLines, log: ChangeLog) {
    this.#tokens = tokens
    this.#changedSeq = tokens.columns.changedSeq
    this.#rankings = rankings
    this.#rowLines = rowLines
    this.#log = log
    this.#leftSeq = recordFrom(TABS, () => new Float64Array(tokens.capacity))
  }

  /** Position of the newest change. */
  get seq(): number {
    return this.#log.seq
  }

  watch(onChanged: (() => void) | null): void {
    this.#onChanged = onChanged
  }

  /** Something has changed that is no row. */
  notify(): void {
    this.#onChanged?.()
  }

  /** Position of the last change of a token's row. */
  changedSeq(slot: number): number {
    return this.#changedSeq[rowIndex(slot)]
  }

  /** The token's row has changed. */
  record(slot: number): void {
    const seq = this.#log.append(slot)
    this.#changedSeq[rowIndex(slot)] = seq
    this.#rowLines.changed(slot, seq)
    this.#rankings.figureOrders.changed(slot)
    this.#onChanged?.()
  }

  /**
   * Moves a token into a tab or out of it. The caller records a change of the row afterwards; for followers of a tab that the
   * token left, that change is the last one they get.
   */
  setTab(slot: number, tab: Tab, isMember: boolean): void {
    if (this.#rankings.has(slot, tab) === isMember) return
    this.#rankings.setTab(slot, tab, isMember)
    if (!isMember) this.#leftSeq[tab][slot] = this.seq + 1
  }

  /** The slot was given to a new token. */
  clear(slot: number): void {
    for (const tab of TABS) this.#leftSeq[tab][slot] = 0
  }

  /** The token gives way to another: it leaves every tab, and followers of those it was in are told. */
  recordEviction(slot: number): void {
    const seq = this.seq + 1
    const lastSeqByTab = TABS.map((tab) => (this.#rankings.has(slot, tab) ? seq : this.#leftSeq[tab][slot]))
    this.#log.recordEviction({ mint: this.#tokens.metadata[slot].mint, lastSeqByTab })
    this.#rankings.remove(slot)
  }

  /**
   * What changed in a tab after `since`, by ascending position, each row once at its newest change. A reader may go on from any
   * of these positions and misses nothing. It looks at CHANGES_LOOKED_AT_MAX changes at most.
   */
  changesSince(since: number, tab: Tab, rowsMax: number, fields: RowFields | null): Changes {
    const tabIndex = TABS.indexOf(tab)
    const parts: ChangePart[] = []
    let slots: number[] = []
    let seqs: number[] = []
    const endRows = () => {
      if (slots.length > 0)
        parts.push({ rows: this.#rowLines.joinWithSeq(slots, seqs, fields), seq: seqs[seqs.length - 1] })
      slots = []
      seqs = []
    }
    let nextSeq = this.seq
    let rowCount = 0
    let lookedAt = 0
    this.#log.since(since, (slot, seq, eviction) => {
      if (rowCount === rowsMax || lookedAt++ === CHANGES_LOOKED_AT_MAX) {
        nextSeq = seq - 1
        return false
      }
      const lastSeq = eviction === null ? this.#lastSeq(slot, tab) : eviction.lastSeqByTab[tabIndex]
      // A newer change of the same row follows, and is sent there.
      if (lastSeq !== seq) return true
      rowCount++
      if (eviction === null) {
        slots.push(slot)
        seqs.push(seq)
      } else {
        endRows()
        parts.push({ left: eviction.mint, seq })
      }
      return true
    })
    endRows()
    return { parts, nextSeq }
  }

  /** Visits the mints whose row changed or that were evicted after `since`, oldest change first, repeats included. */
  changedMints(since: number, visit: (mint: string) => void): void {
    this.#log.since(since, (slot, _, eviction) => {
      visit(eviction === null ? this.#tokens.metadata[slot].mint : eviction.mint)
      return true
    })
  }

  /** The position at which a row last concerned the followers of a tab: its newest change, or the one that moved it out. */
  #lastSeq(slot: number, tab: Tab): number {
    return this.#rankings.has(slot, tab) ? this.changedSeq(slot) : this.#leftSeq[tab][slot]
  }
}
