// Why a query on outcomes may have no row, or NULL instead of labels: on a young lake no label of its horizon is there yet.
import { SETTINGS } from '../config/settings.ts'
import { HORIZON_NAMES, HORIZONS, type Horizon } from '../schema/vocabulary.ts'
import { queryOne } from '../store/duckdb/query.ts'
import { LABEL_DELAY_MS } from '../store/limits.ts'
import type { LakeReader } from '../store/query/lake-reader.ts'

/** How often a server writes to its lake, unless it was told otherwise. */
const FLUSH_MS = Number(SETTINGS.store.lakeFlushMs.defaultText)

/** The longest horizon whose label a query names, such as 24h by `fwd_ret_24h` or by `SET VARIABLE horizon = '24h'`; null: none. */
const longestHorizon = (sql: string): Horizon | null =>
  HORIZON_NAMES.findLast((name) =>
    new RegExp(`\\b(fwd_\\w+|dead|watched_minutes)_${name}\\b|\\bhorizon\\s*=\\s*'${name}'`).test(sql),
  ) ?? null

/** A sentence for a query of labels, where the lake has none of their horizon yet; null: it has, or none are asked for. */
export async function explainMissingLabels(
  connection: LakeReader['connection'],
  sql: string,
): Promise<string | null> {
  const horizon = longestHorizon(sql)
  if (horizon === null) return null
  const reached = HORIZON_NAMES.slice(HORIZON_NAMES.indexOf(horizon)).map((name) => `'${name}'`)
  const { labelled, firstMs } = await queryOne(
    connection,
    `SELECT (SELECT count(*)::DOUBLE FROM lake.outcomes WHERE labelled_to IN (${reached.join(', ')})) AS labelled,
       (SELECT epoch_ms(min(submitted_at))::DOUBLE FROM lake.training) AS "firstMs"`,
    { labelled: 'number', firstMs: 'number?' },
  )
  if (labelled > 0) return null
  const sample = '--sample queries the sample that comes with Mintlake'
  if (firstMs === null) return `this lake has no accepted submission yet; ${sample}`
  const due = new Date(firstMs + HORIZONS[horizon] + LABEL_DELAY_MS + FLUSH_MS).toISOString()
  return (
    `no outcome of this lake is ${horizon} old yet, the first will be there at ${due}: after ${horizon}, ` +
    `the ${LABEL_DELAY_MS / 1_000} s until its bars are closed, and a flush (${FLUSH_MS / 1_000} s unless --lake-flush-ms says otherwise); ${sample}`
  )
}
