// In: what is wrong with the lake, as it is found. Out: the list of it, in plain words. Never grows without bound.
import { FINDINGS_MAX } from '../limits.ts'

export interface Finding {
  /** Null: it is about the lake as a whole. */
  table: string | null
  /** Below the lake's folder; null: it is about no single file. */
  file: string | null
  message: string
}

export class Findings {
  readonly list: Finding[] = []
  /** What is no fault, and worth a word. */
  readonly notes: string[] = []
  /** Found, and not on the list any more. */
  omitted = 0

  add(table: string | null, file: string | null, message: string): void {
    if (this.list.length < FINDINGS_MAX) this.list.push({ table, file, message })
    else this.omitted++
  }
}

export const counted = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : noun.endsWith('y') ? '' : 's'}`
