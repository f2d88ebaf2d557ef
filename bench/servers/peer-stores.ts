// In: nothing. Out: the stores that submissions are measured against, and the row that they keep of one. Installed for the
// benchmark alone.
import { SUMMARY } from '../datasets/submission.ts'

export const SQLITE = ['better-sqlite3', '13.2.0'] as const
export const LMDB = ['lmdb', '3.5.6'] as const

export interface Sqlite {
  pragma(text: string): void
  exec(text: string): void
  prepare(text: string): { run(...values: unknown[]): void }
}

export interface Lmdb {
  open(options: { path: string; overlappingSync: boolean }): {
    put(key: number, value: unknown): Promise<boolean>
    close(): Promise<void>
  }
}

/** The columns that measured peers store for a submission. */
export const COLUMNS = [
  ...['id', 'agent', 'mint', 'sentiment', 'summary', 'risk_level'].map((name) => `${name} VARCHAR`),
  ...['submitted_at', 'score', 'price', 'market_cap', 'volume', 'liquidity', 'deviation', 'xp'].map(
    (name) => `${name} DOUBLE`,
  ),
]

export const textsOf = (index: number): string[] => [
  `an_${index}`,
  `ag_${index % 64}`,
  `mint ${index % 1_000}`,
  'bullish',
  SUMMARY,
  'medium',
]

export const numbersOf = (index: number): number[] =>
  Array.from({ length: 8 }, (_, column) => index + column / 10)
