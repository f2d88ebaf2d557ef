// The same submissions stored in three ways: a lake written and merged by the store; one ideally sorted Parquet file; and a
// file for each ten seconds that nobody merges. Times queries on each of them.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { copyToParquet } from '../../src/store/lake/parquet-sql.ts'
import { jsonOf, median } from '../harness.ts'
import type { Written } from './lake-writer.ts'
import { tokenMints } from './training-rows.ts'

const WRITER = fileURLToPath(new URL('lake-writer.ts', import.meta.url))
const WRITER_MS_MAX = 3 * 3_600_000
const FLUSH_MS = 10_000
/** Values of a result that are compared with those of the other sets. */
const SAMPLE_VALUES_MAX = 1_000
/** A query is repeated for at least this long. */
const QUERY_MS = 4_000
const QUERY_RUNS_MAX = 7

const THE_MINT = tokenMints()[0]

/** Typical queries of researchers. Each orders its rows, so that results can be compared. */
export const QUERIES = {
  'history of a token': `SELECT count(*), avg(score), min(price_usd), max(price_usd), sum(volume_24h)
    FROM training WHERE mint = '${THE_MINT}'`,
  'calibration of the score': `SELECT floor(score / 10) AS bucket, count(*), avg(deviation_pct), avg(buy_pressure),
    count(*) FILTER (validated) FROM training GROUP BY 1 ORDER BY 1`,
  'agents by sentiment': `SELECT agent_id, sentiment, count(*), avg(score), avg(liquidity) FROM training
    GROUP BY 1, 2 ORDER BY 1, 2`,
  'an hour of features': `SELECT date_trunc('minute', submitted_at) AS minute, count(*), avg(price_usd), avg(market_cap),
    avg(holder_count), avg(top10_holder_pct), avg(bonding_progress) FROM training
    WHERE submitted_at >= TIMESTAMP '2026-05-01 12:00:00' AND submitted_at < TIMESTAMP '2026-05-01 13:00:00'
    GROUP BY 1 ORDER BY 1`,
  'agreement on a token': `SELECT mint, count(*) AS n, count(DISTINCT agent_id), avg(score), stddev_pop(score),
    avg((sentiment = 'bullish')::INTEGER) FROM training GROUP BY 1 HAVING n > 1 ORDER BY n DESC, mint LIMIT 100`,
} as const

export type QueryName = keyof typeof QUERIES

export interface Sets {
  lake: string
  catalog: string
  sorted: string
  flushed: string
  written: string
}

/**
 * Environment variable that names the folder of the sets; the candidates' processes inherit it. Set it by hand to keep the
 * sets for the next run: writing ten million rows takes half an hour.
 */
const FOLDER = 'MINTLAKE_BENCH_LAKE'
const isKept = process.env[FOLDER] !== undefined

/** The sets of this run. Throws when none were written. */
export function setsOfRun(): Sets {
  const root = process.env[FOLDER]
  if (root === undefined) throw new Error('no lake was written')
  return {
    lake: join(root, 'data'),
    catalog: join(root, 'data', 'lake', 'catalog.duckdb'),
    sorted: join(root, 'sorted.parquet'),
    flushed: join(root, 'flushed'),
    written: join(root, 'written.json'),
  }
}

/** What the writer of the lake reported. */
export const writtenOf = ({ written }: Sets): Written => JSON.parse(readFileSync(written, 'utf8')) as Written

async function inDuckdb<Value>(
  path: string,
  work: (connection: DuckDBConnection) => Promise<Value>,
): Promise<Value> {
  const spill = join(tmpdir(), 'mintlake-bench', 'spill')
  const instance = await DuckDBInstance.create(path, { memory_limit: '8GB', temp_directory: spill })
  const connection = await instance.connect()
  try {
    return await work(connection)
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/** Writes one sorted file for each ten seconds. */
async function writeFlushed({ catalog, flushed, lake }: Sets): Promise<void> {
  mkdirSync(flushed)
  const database = join(lake, '..', 'by-time.duckdb')
  await inDuckdb(database, async (connection) => {
    await connection.run(`ATTACH '${catalog}' AS lake (READ_ONLY)`)
    await connection.run('CREATE TABLE by_time AS SELECT * FROM lake.training ORDER BY submitted_at')
    const times = await connection.runAndReadAll(
      'SELECT epoch_ms(min(submitted_at))::DOUBLE, epoch_ms(max(submitted_at))::DOUBLE FROM by_time',
    )
    const [first, last] = times.getRowsJS()[0] as [number, number]
    for (let at = first; at <= last; at += FLUSH_MS) {
      const rows = `SELECT * FROM by_time WHERE submitted_at >= epoch_ms(${at}) AND submitted_at < epoch_ms(${at + FLUSH_MS})`
      await connection.run(
        copyToParquet(`${rows} ORDER BY mint, submitted_at`, join(flushed, `${at}.parquet`)),
      )
    }
  })
  rmSync(database)
}

/** Writes all three sets, into a temporary folder unless the environment names one. */
export async function writeSets(rows: number): Promise<void> {
  process.env[FOLDER] ??= mkdtempSync(join(tmpdir(), 'mintlake-bench-lake-'))
  const sets = setsOfRun()
  if (existsSync(sets.written)) {
    const kept = writtenOf(sets).rows
    if (kept !== rows)
      throw new Error(`the lake kept in ${process.env[FOLDER]} has ${kept} rows, not ${rows}`)
    return
  }
  mkdirSync(sets.lake, { recursive: true })
  const words = ['--no-warnings', WRITER, sets.lake, `${rows}`]
  const written = await jsonOf<Written>(process.execPath, words, WRITER_MS_MAX)
  await inDuckdb(':memory:', async (connection) => {
    await connection.run(`ATTACH '${sets.catalog}' AS lake (READ_ONLY)`)
    await connection.run(
      copyToParquet('SELECT * FROM lake.training ORDER BY mint, submitted_at', sets.sorted),
    )
  })
  await writeFlushed(sets)
  writeFileSync(sets.written, JSON.stringify(written))
}

export function removeSets(): void {
  if (isKept) return
  const root = process.env[FOLDER]
  if (root !== undefined) rmSync(root, { recursive: true, force: true })
  delete process.env[FOLDER]
}

/** Number and size of the files of `training`. */
export function sizeOfLake({ lake }: Sets): { files: number; bytes: number } {
  const folder = join(lake, 'lake', 'training')
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.parquet'),
  )
  const bytes = paths.reduce((sum, path) => sum + statSync(join(folder, path)).size, 0)
  return { files: paths.length, bytes }
}

export interface Timed {
  /** Median time of each query, ms. */
  metrics: Record<string, number>
  sample: number[]
}

/** Times every query on the view `training` that `source` defines. The first run of each is not counted. */
export const timeQueries = (source: readonly string[], small: boolean): Promise<Timed> =>
  inDuckdb(':memory:', async (connection) => {
    for (const statement of source) await connection.run(statement)
    const timed: Timed = { metrics: { allMs: 0 }, sample: [] }
    for (const [name, sql] of Object.entries(QUERIES)) {
      const answer = (await connection.runAndReadAll(sql)).getRowsJS().flat()
      timed.sample.push(...answer.filter((value) => typeof value === 'number').slice(0, SAMPLE_VALUES_MAX))
      const runs: number[] = []
      const until = performance.now() + (small ? 0 : QUERY_MS)
      do {
        const started = performance.now()
        await (await connection.run(sql)).getRowsJS()
        runs.push(performance.now() - started)
      } while (performance.now() < until && runs.length < QUERY_RUNS_MAX)
      timed.metrics[name] = median(runs)
      timed.metrics.allMs += timed.metrics[name]
    }
    return timed
  })
