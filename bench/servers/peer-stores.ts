// The stores that submissions are measured against, and the row that they keep of one. Installed for the benchmark alone.
import { join } from 'node:path'
import { SUMMARY } from '../datasets/submission.ts'
import { installed } from '../harness.ts'

const SQLITE = ['better-sqlite3', '13.2.0'] as const
const LMDB = ['lmdb', '3.5.6'] as const

interface Sqlite {
  pragma(text: string): void
  exec(text: string): void
  prepare(text: string): { run(...values: unknown[]): void }
}

interface LmdbDatabase {
  /** Resolves once the value is on the disk. */
  put(key: number, value: unknown): Promise<boolean>
  close(): Promise<void>
}

interface Lmdb {
  open(options: { path: string; overlappingSync: boolean }): LmdbDatabase
}

/** Installs the peers ahead of the measurement. Throws where they cannot be had. */
export function installPeerStores(): void {
  installed(...SQLITE)
  installed(...LMDB)
}

/** SQLite in a new file, with a sync for each commit. `insert` adds one submission's row. */
export function openSqlite(folder: string): { database: Sqlite; insert: ReturnType<Sqlite['prepare']> } {
  const Database = installed<new (path: string) => Sqlite>(...SQLITE)
  const database = new Database(join(folder, 'peer.sqlite'))
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.exec(`CREATE TABLE submissions (${COLUMNS.join(', ')})`)
  return {
    database,
    insert: database.prepare(`INSERT INTO submissions VALUES (${COLUMNS.map(() => '?').join(', ')})`),
  }
}

/** Resolves once a row is durable. */
export type Keep = (values: readonly unknown[]) => Promise<void>

/** All submissions of one turn of the event loop are one transaction. */
export function keepInSqlite(folder: string): Keep {
  const { database, insert } = openSqlite(folder)
  let waiting: { values: readonly unknown[]; done: () => void }[] = []
  const commit = () => {
    const group = waiting
    waiting = []
    database.exec('BEGIN')
    for (const { values } of group) insert.run(...values)
    database.exec('COMMIT')
    for (const { done } of group) done()
  }
  return (values) =>
    new Promise((done) => {
      if (waiting.push({ values, done }) === 1) setImmediate(commit)
    })
}

/** LMDB in a new file, with a sync for each commit. */
export function openLmdb(folder: string): LmdbDatabase {
  return installed<Lmdb>(...LMDB).open({ path: join(folder, 'peer.lmdb'), overlappingSync: false })
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
