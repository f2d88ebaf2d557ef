// Numbers of bars by timeframe, and what became of the closed bars of one run.
import { recordFrom } from '../../lib/record.ts'
import { TIMEFRAMES } from '../../schema/timeframe.ts'

/** Numbers of bars, by index in TIMEFRAMES. */
export type BarCounts = number[]

export const noBars = (): BarCounts => TIMEFRAMES.map(() => 0)
export const sumBars = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0)

/** The bars of one run. */
export interface BarAccount {
  /** How many the engine had closed when it closed the last of those that were delivered. */
  closed: BarCounts
  /** Those among them that found no room in the server, which has told so. */
  dropped: BarCounts
  /** Those that the lake had already. */
  repeated: BarCounts
  /** Rows, as counted in files after they were written. */
  written: BarCounts
  /** Those that are nowhere, which an operator has acknowledged. */
  settled: BarCounts
}

export const ACCOUNT_FIELDS = ['closed', 'dropped', 'repeated', 'written', 'settled'] as const

export const emptyAccount = (): BarAccount => recordFrom(ACCOUNT_FIELDS, noBars)

/** Bars that are nowhere; below 0: the lake has more than were closed. */
export const unaccounted = ({ closed, dropped, repeated, written, settled }: BarAccount): BarCounts =>
  closed.map((count, index) => count - dropped[index] - repeated[index] - written[index] - settled[index])
