// Labels features that were taken of many tokens at chosen moments, by the same SQL as submissions, and writes them as one Parquet file.
// Day by day, so that memory does not grow with the file.
import type { DuckDBConnection } from '@duckdb/node-api'
import { DAY_MS } from '../../lib/time.ts'
import type { RewoundSpan } from '../../schema/event.ts'
import { type Column, TABLES } from '../../schema/tables.ts'
import { HORIZON_NAMES, HORIZONS, type Horizon } from '../../schema/vocabulary.ts'
import { queryRows, queryValue, runAll } from '../duckdb/query.ts'
import { withScratchDatabase } from '../duckdb/scratch-database.ts'
import { identifier } from '../duckdb/sql.ts'
import { readEventMetadata } from '../events/event-metadata.ts'
import { selectStaged } from '../flush/staged-sql.ts'
import { type CatalogEntry, readCatalogFiles } from '../lake/catalog-reader.ts'
import { utcDate } from '../lake/lake-files.ts'
import { copyToParquet, selectAllRows } from '../lake/parquet-sql.ts'
import { BASE_LOOKBACK_MS, LABEL_DELAY_MS, READER_MEMORY_LIMIT } from '../limits.ts'
import { withLakeReader } from '../query/lake-reader.ts'
import { computeLabelsSql, LAST_CELLS, loadBarsSql } from './outcome-sql.ts'

export interface MomentsToLabel {
  /** The data folder with the bars. Nobody writes to it. */
  dataDir: string
  /** NDJSON: the columns of `training` named by `columns`, times as Unix ms. */
  momentsPath: string
  columns: readonly Column[]
  /** The Parquet file to write. */
  outPath: string
  /** Where what does not fit in memory goes. */
  spillDir: string
  /** Market time up to which the lake has all bars, Unix ms. */
  knownToMs: number
}

/** As `outcomes` has them. */
const LABELS = TABLES.outcomes.columns.filter(
  ({ name }) => name.startsWith('fwd_ret_') || Object.hasOwn(LAST_CELLS, name),
)
const NO_LABELS = LABELS.map(({ name, type }) => `NULL::${type} AS ${identifier(name)}`).join(', ')
const SET_LAST = Object.entries(LAST_CELLS)
  .map(([name, cell]) => `${name} = ${cell}`)
  .join(', ')

/** @returns how many rows the file has */
export async function labelMoments(wanted: MomentsToLabel): Promise<number> {
  const { dataDir, momentsPath, columns, outPath, spillDir, knownToMs } = wanted
  const { files, rewound } = await withLakeReader({ dataDir }, async ({ connection }) => ({
    files: await readCatalogFiles(connection, 'lake'),
    rewound: (await readEventMetadata(connection, 'lake')).rewound,
  }))
  const bars = files.filter(({ table }) => table === TABLES.bars.name)
  const settings = { threads: '2', memory_limit: READER_MEMORY_LIMIT, temp_directory: spillDir }
  return withScratchDatabase(':memory:', settings, async (connection) => {
    const moments = selectStaged({ columns }, { path: momentsPath })
    await connection.run(`CREATE TABLE moments AS SELECT (row_number() OVER ())::DOUBLE AS seq, *,
      price_at_submission_usd AS base_price_usd, ${NO_LABELS} FROM (${moments})`)
    const dates = await queryRows(
      connection,
      `SELECT DISTINCT strftime(submitted_at, '%Y-%m-%d') AS date FROM moments ORDER BY 1`,
      { date: 'string' },
    )
    for (const { date } of dates)
      for (const horizon of HORIZON_NAMES)
        await labelDate(connection, { bars, rewound }, date, horizon, knownToMs)
    await connection.run(
      copyToParquet('SELECT * EXCLUDE seq FROM moments ORDER BY submitted_at, mint', outPath),
    )
    return queryValue(connection, 'SELECT count(*)::DOUBLE AS rows FROM moments', 'number')
  })
}

/** Labels the moments of one UTC date whose horizon has passed, and has prices of one time alone. */
async function labelDate(
  connection: DuckDBConnection,
  { bars, rewound }: { bars: readonly CatalogEntry[]; rewound: readonly RewoundSpan[] },
  date: string,
  horizon: Horizon,
  knownToMs: number,
): Promise<void> {
  const dayMs = Date.parse(date)
  const unknown = rewound.map(
    ({ fromMs, toMs }) =>
      `AND NOT (submitted_at > epoch_ms(${fromMs - HORIZONS[horizon]}) AND submitted_at <= epoch_ms(${toMs}))`,
  )
  await connection.run(`CREATE OR REPLACE TABLE due AS SELECT seq, epoch_ms(submitted_at)::DOUBLE AS at_ms, base_price_usd AS base, mint
    FROM moments WHERE submitted_at >= epoch_ms(${dayMs}) AND submitted_at < epoch_ms(${dayMs + DAY_MS})
    AND submitted_at <= epoch_ms(${knownToMs - HORIZONS[horizon] - LABEL_DELAY_MS}) ${unknown.join(' ')}`)
  const [first, last] = [utcDate(dayMs - BASE_LOOKBACK_MS), utcDate(dayMs + DAY_MS + HORIZONS[horizon])]
  const near = bars.filter((file) => first <= file.date && file.date <= last)
  for (const name of ['bars', 'minutes']) await connection.run(`DROP TABLE IF EXISTS ${name}`)
  await runAll(connection, loadBarsSql(selectAllRows(TABLES.bars, near), horizon, dayMs, dayMs + DAY_MS))
  const isLast = horizon === HORIZON_NAMES.at(-1)
  await connection.run(`UPDATE moments SET base_price_usd = label.base, ${identifier(`fwd_ret_${horizon}`)} = ret${isLast ? `, ${SET_LAST}` : ''}
    FROM (${computeLabelsSql(horizon)}) AS label WHERE moments.seq = label.seq`)
}
