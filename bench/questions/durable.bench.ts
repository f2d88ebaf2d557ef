// Durable submissions per second over HTTP from 64 connections, their CPU time in all processes until they are in the lake, and
// their p99. Compared with SQLite and LMDB behind the same HTTP engine, without checks, and with DuckDB, SQLite and LMDB called
// directly. The peers store one row of a submission, we store the training example, the award and the attempt.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DuckDBInstance } from '@duckdb/node-api'
import {
  cpuSecondsOfAll,
  inFolder,
  jsonOf,
  type Measured,
  onCore,
  type Question,
  quantile,
  type RunOptions,
} from '../harness.ts'
import { endProgram, type Running, startPeerStore, startServer } from '../load.ts'
import {
  COLUMNS,
  installPeerStores,
  numbersOf,
  openLmdb,
  openSqlite,
  textsOf,
} from '../servers/peer-stores.ts'

const CONNECTIONS = 64
const SUBMITTERS = fileURLToPath(new URL('../clients/submitters.ts', import.meta.url))

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

const sqlite = (options: RunOptions) =>
  inFolder(async (folder) => {
    const { insert } = openSqlite(folder)
    return commitFor(options, 1, (index) => insert.run(...textsOf(index), ...numbersOf(index)))
  })

const lmdb = ({ small }: RunOptions) =>
  inFolder(async (folder) => {
    const database = openLmdb(folder)
    const measured = await commitFor({ small, full: false }, CONNECTIONS, async (first, count) => {
      const puts = Array.from({ length: count }, (_, index) =>
        database.put(first + index, [...textsOf(first + index), ...numbersOf(first + index)]),
      )
      await Promise.all(puts)
    })
    await database.close()
    return measured
  })

/** Submits to a running server. What its processes still write behind the last answer counts too. */
async function submitTo(
  server: Running,
  { small }: RunOptions,
  settle: () => Promise<void>,
): Promise<Measured> {
  const submitFor = (seconds: number): Promise<Measured> => {
    const args = ['--no-warnings', SUBMITTERS, `${server.port}`, `${CONNECTIONS}`, `${seconds}`]
    return jsonOf(...onCore(1, process.execPath, args))
  }
  try {
    // Until a server has compiled what such a load needs.
    await submitFor(small ? 0.1 : 12)
    const before = cpuSecondsOfAll(server.pid)
    const seconds = small ? 0.3 : 8
    const measured = await submitFor(seconds)
    await settle()
    const cpu = cpuSecondsOfAll(server.pid) - before
    const submissions = measured.metrics.perSecond * seconds
    return { ...measured, metrics: { ...measured.metrics, cpuUs: (cpu / submissions) * 1e6 } }
  } finally {
    await endProgram(server)
  }
}

/** Longer than the time from one flush to the next. */
const FLUSHED_MS = 12_000
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const ours = async (options: RunOptions): Promise<Measured> =>
  submitTo(await startServer('mintlake', { tokens: 1_000, ticksPerSecond: 0, body: 'page' }), options, () =>
    sleep(options.small ? 0 : FLUSHED_MS),
  )

const behindHttp = (kind: 'sqlite' | 'lmdb') => (options: RunOptions) =>
  inFolder(async (folder) => submitTo(await startPeerStore(kind, folder), options, async () => {}))

const perSecond = { metric: 'perSecond', unit: 'submissions/s', better: 'higher' } as const
const overHttp = (against: string, gate?: number, stretch?: number) =>
  ({ title: 'durable submissions over HTTP', against, gate, stretch, ...perSecond }) as const
const SQLITE_HTTP = 'better-sqlite3 behind HTTP, a commit each turn'
const LMDB_HTTP = 'lmdb behind HTTP'
const SQLITE_BARE = 'better-sqlite3 bare, one commit each'
const LMDB_BARE = 'lmdb bare, 64 at once'

export const question: Question = {
  name: 'durable',
  title: 'durable submissions',
  rounds: 3,
  onDemand: [SQLITE_HTTP, LMDB_HTTP, SQLITE_BARE, LMDB_BARE],
  candidates: {
    ours,
    [SQLITE_HTTP]: behindHttp('sqlite'),
    [LMDB_HTTP]: behindHttp('lmdb'),
    'DuckDB, one commit for 64': duckdb(CONNECTIONS),
    'DuckDB, one commit each': duckdb(1),
    [SQLITE_BARE]: sqlite,
    [LMDB_BARE]: lmdb,
  },
  comparisons: [
    overHttp(SQLITE_HTTP),
    overHttp(LMDB_HTTP),
    overHttp('DuckDB, one commit for 64', 0.4, 0.7),
    overHttp('DuckDB, one commit each', 5, 15),
    overHttp(SQLITE_BARE),
    overHttp(LMDB_BARE),
    ...[SQLITE_HTTP, LMDB_HTTP].map(
      (against) =>
        ({
          title: 'durable submissions: CPU of all processes, flush and lake included',
          metric: 'cpuUs',
          against,
          unit: 'µs',
          better: 'lower',
        }) as const,
    ),
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
    if (small) return
    installPeerStores()
  },
}
