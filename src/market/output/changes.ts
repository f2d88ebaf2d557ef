// In: the change log, and a position on it. Out: what changed in one tab since, by ascending position, each row once at its newest
// entry. So whoever goes on from any of those positions has missed nothing. Never looks at more than a fixed number of
// entries at a time.
import { CHANGES_LOOKED_AT_MAX } from '../limits.ts'
import type { ChangePart, Changes } from '../types.ts'
import type { ChangeLog } from './change-log.ts'

/** What is known of a tab's rows. */
export interface TabRows {
  /** The tab's place in TABS. */
  tabIndex: number
  /** The position at which a row concerned the tab last: its newest change, or the one that moved it out; 0: none. */
  lastIn(slot: number): number
  /** The rows as NDJSON, each with its position. */
  rows(slots: readonly number[], seqs: readonly number[]): Buffer
}

export function changesSince(changeLog: ChangeLog, since: number, tab: TabRows, rowsMax: number): Changes {
  const parts: ChangePart[] = []
  let slots: number[] = []
  let seqs: number[] = []
  const endRows = () => {
    if (slots.length > 0) parts.push({ rows: tab.rows(slots, seqs), seq: seqs[seqs.length - 1] })
    slots = []
    seqs = []
  }
  let nextSeq = changeLog.seq
  let [count, lookedAt] = [0, 0]
  changeLog.since(since, (slot, seq, departed) => {
    if (count === rowsMax || lookedAt++ === CHANGES_LOOKED_AT_MAX) {
      nextSeq = seq - 1
      return false
    }
    // What is followed by a newer change is told there.
    if ((departed === null ? tab.lastIn(slot) : departed.lastIn[tab.tabIndex]) !== seq) return true
    count++
    if (departed === null) {
      slots.push(slot)
      seqs.push(seq)
    } else {
      endRows()
      parts.push({ left: departed.mint, seq })
    }
    return true
  })
  endRows()
  return { parts, nextSeq }
}
