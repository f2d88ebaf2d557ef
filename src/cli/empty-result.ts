// Why a query on outcomes may have no row: on a young lake no label of its horizon is due yet.
import { HORIZONS } from '../schema/tables.ts'
import { HORIZON_NAMES, type Horizon } from '../schema/vocabulary.ts'
import { queryOne } from '../store/duckdb/query.ts'
import type { LakeReader } from '../store/query/lake-reader.ts'

/** The longest horizon whose label a query names, such as 24h by `fwd_ret_24h`; null: none. */
const longestHorizon = (sql: string): Horizon | null =>
  HORIZON_NAMES.findLast((name) => new RegExp(`\\b(fwd_\\w+|dead|watched_minutes)_${name}\\b`).test(sql)) ??
  null

/** A sentence for a query without a row, where the lake has no label of the query's horizon yet; null: that is not why. */
export async function explainNoRows({ connection }: LakeReader, sql: string): Promise<string | null> {
  const horizon = longestHorizon(sql)
  if (horizon === null) return null
  const reached = HORIZON_NAMES.slice(HORIZON_NAMES.indexOf(horizon)).map((name) => `'${name}'`)
  const { labelled, firstMs } = await queryOne(
    connection,
    `SELECT (SELECT count(*)::DOUBLE FROM outcomes WHERE labelled_to IN (${reached.join(', ')})) AS labelled,
       (SELECT epoch_ms(min(submitted_at))::DOUBLE FROM training) AS "firstMs"`,
    { labelled: 'number', firstMs: 'number?' },
  )
  if (labelled > 0) return null
  const sample = '--sample queries the sample that comes with Mintlake'
  if (firstMs === null) return `this lake has no accepted submission yet; ${sample}`
  const due = new Date(firstMs + HORIZONS[horizon]).toISOString()
  return `no outcome of this lake is ${horizon} old yet, the first will be at ${due}; ${sample}`
}
