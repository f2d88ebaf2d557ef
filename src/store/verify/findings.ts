// Collects what a verification finds: faults, up to FINDINGS_MAX, and notes.
import { FINDINGS_MAX } from '../limits.ts'

export interface Finding {
  /** Null: it concerns the lake as a whole. */
  table: string | null
  /** Below the lake's folder; null: it concerns no single file. */
  file: string | null
  message: string
  /** The lake lacks something that no copy of it could have: a backup of it is whole all the same. */
  isLoss?: boolean
}

export class Findings {
  readonly list: Finding[] = []
  /** Remarks that are not faults. */
  readonly notes: string[] = []
  /** How many faults were found after the list was full. */
  omitted = 0

  add(table: string | null, file: string | null, message: string): void {
    this.#push({ table, file, message })
  }

  addLoss(table: string, message: string): void {
    this.#push({ table, file: null, message, isLoss: true })
  }

  #push(finding: Finding): void {
    if (this.list.length < FINDINGS_MAX) this.list.push(finding)
    else this.omitted++
  }
}

/** `1 row`, `2 rows`. A noun ending in y has no plural form here. */
export const pluralize = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : noun.endsWith('y') ? '' : 's'}`
