// In: submissions of 64 connections, limits off, over HTTP to the whole house. Out: how many are durable a second, and how
// long the slowest hundredth waited, against DuckDB and SQLite written by hand in one process, without a server, a check
// or a verdict: one commit for 64 rows, one commit for each row. They store the row's columns; ours stores the example,
// the award and the attempt.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DuckDBInstance } from '@duckdb/node-api'
import {
  installed,
  jsonOf,
  type Measured,
  onCore,
  type Question,
  quantile,
  type RunOptions,
} from '../frame.ts'
import { endProgram, startServer } from '../load.ts'
import { SUMMARY } from '../submission.ts'

const CONNECTIONS = 64
const SQLITE = ['better-sqlite3', '13.2.0'] as const
const SUBMITTERS = fileURLToPath(new URL('../submitters.ts', import.meta.url))

/** The columns that measured peers store for a submission. */
const COLUMNS = [
  ...['id', 'agent', 'mint', 'sentiment', 'summary', 'risk_level'].map((name) => `${name} VARCHAR`),
  ...['submitted_at', 'score', 'price', 'market_cap', 'volume', 'liquidity', 'deviation', 'xp'].map(
    (name) => `${name} DOUBLE`,
  ),
]
const textsOf = (index: number) => [
  `an_${index}`,
  `ag_${index % CONNECTIONS}`,
  `mint ${index % 1_000}`,
  'bullish',
  SUMMARY,
  'medium',
]
const numbersOf = (index: number) => Array.from({ length: 8 }, (_, column) => index + column / 10)

async function inFolder<Value>(work: (folder: string) => Promise<Value>): Promise<Value> {
  const folder = mkdtempSync(join(tmpdir(), 'mintlake-bench-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Commits batches for a while, once warm; every row of a batch waits for its commit. */
async function commitFor(
  { small }: RunOptions,
  batch: number,
  commit: (first: number, count: number) => Promise<void> | void,
): Promise<Measured> {
  const warmUntil = performance.now() + (small ? 100 : 1_000)
  let warmRows = 0
  for (; performance.now() < warmUntil; warmRows += batch) await commit(warmRows, batch)
  const until = performance.now() + (small ? 200 : 4_000)
  const latenciesMs: number[] = []
  const started = performance.now()
  let rows = 0
  while (performance.now() < until) {
    const began = performance.now()
    await commit(warmRows + rows, batch)
    rows += batch
    latenciesMs.push(performance.now() - began)
  }
  const seconds = (performance.now() - started) / 1_000
  return {
    metrics: {
      perSecond: rows / seconds,
      p99Ms: quantile(
        latenciesMs.sort((a, b) => a - b),
        0.99,
      ),
    },
    checksum: `${rows > 0}`,
  }
}

const duckdb = (batch: number) => (options: RunOptions) =>
  inFolder(async (folder) => {
    const instance = await DuckDBInstance.create(join(folder, 'peer.duckdb'))
    const connection = await instance.connect()
    await connection.run(`CREATE TABLE submissions (${COLUMNS.join(', ')})`)
    return commitFor(options, batch, async (first, count) => {
      await connection.run('BEGIN')
      const appender = await connection.createAppender('submissions')
      for (let index = first; index < first + count; index++) {
        for (const text of textsOf(index)) appender.appendVarchar(text)
        for (const number of numbersOf(index)) appender.appendDouble(number)
        appender.endRow()
      }
      appender.closeSync()
      await connection.run('COMMIT')
    })
  })

interface Sqlite {
  pragma(text: string): void
  exec(text: string): void
  prepare(text: string): { run(...values: unknown[]): void }
}

const sqlite = (options: RunOptions) =>
  inFolder(async (folder) => {
    const Database = installed<new (path: string) => Sqlite>(...SQLITE)
    const database = new Database(join(folder, 'peer.sqlite'))
    database.pragma('journal_mode = WAL')
    database.pragma('synchronous = FULL')
    database.exec(`CREATE TABLE submissions (${COLUMNS.join(', ')})`)
    const insert = database.prepare(`INSERT INTO submissions VALUES (${COLUMNS.map(() => '?').join(', ')})`)
    return commitFor(options, 1, (index) => insert.run(...textsOf(index), ...numbersOf(index)))
  })

async function ours({ small }: RunOptions): Promise<Measured> {
  const server = await startServer('mintlake', {
    tokens: 1_000,
    ticksPerSecond: 0,
    body: 'page',
  })
  const submitFor = (seconds: number): Promise<Measured> => {
    const args = ['--no-warnings', SUBMITTERS, `${server.port}`, `${CONNECTIONS}`, `${seconds}`]
    return jsonOf(...onCore(1, process.execPath, args))
  }
  try {
    await submitFor(small ? 0.1 : 1)
    return await submitFor(small ? 0.3 : 6)
  } finally {
    await endProgram(server)
  }
}

const comparison = (against: string, gate: number, stretch: number) =>
  ({
    title: 'durable submissions over HTTP',
    metric: 'perSecond',
    against,
    unit: 'submissions/s',
    gate,
    stretch,
    better: 'higher',
  }) as const

export const question: Question = {
  name: 'durable',
  title: 'durable submissions',
  rounds: 3,
  onDemand: ['better-sqlite3, one commit each'],
  candidates: {
    ours,
    'DuckDB, one commit for 64': duckdb(CONNECTIONS),
    'DuckDB, one commit each': duckdb(1),
    'better-sqlite3, one commit each': sqlite,
  },
  comparisons: [
    comparison('DuckDB, one commit for 64', 0.4, 0.7),
    comparison('DuckDB, one commit each', 5, 15),
    comparison('better-sqlite3, one commit each', 3, 8),
    {
      title: 'durable submissions: p99',
      metric: 'p99Ms',
      unit: 'ms',
      gate: 30,
      stretch: 15,
      better: 'lower',
    },
  ],
  prepare({ small }) {
    if (!small) installed(...SQLITE)
  },
}
