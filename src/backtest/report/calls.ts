// What the agents of a backtest said, and what the price did afterwards: read from the lake that the backtest has filled.
import { recordFrom } from '../../lib/record.ts'
import { HORIZON_NAMES, type Horizon, SENTIMENTS, type Sentiment } from '../../schema/vocabulary.ts'
import { queryRows, type ResultRow } from '../../store/duckdb/query.ts'
import { withLakeReader } from '../../store/query/lake-reader.ts'

/** An accepted submission. Times are market time, Unix ms. */
export interface Call extends Omit<ResultRow<typeof CALL_COLUMNS>, 'sentiment' | Horizon> {
  sentiment: Sentiment
  /** What the price did after each horizon; null: not known. */
  returns: Readonly<Record<Horizon, number | null>>
}

export type RejectedCall = ResultRow<typeof REJECTED_COLUMNS>

export interface Said {
  calls: readonly Call[]
  rejected: readonly RejectedCall[]
}

const CALLS_SQL = `SELECT t.analysis_id AS "analysisId", t.agent_id AS "agentId", epoch_ms(t.submitted_at)::DOUBLE AS "atMs", t.mint,
    coalesce(k.name, t.mint) AS name, coalesce(k.symbol, left(t.mint, 6)) AS symbol, t.sentiment, t.score, t.summary,
    t.validated AS "isValidated", t.deviation_pct AS "deviationPct", t.price_at_submission_usd AS "priceUsd",
    coalesce(x.xp, 0)::DOUBLE AS xp, ${HORIZON_NAMES.map((name) => `o.fwd_ret_${name} AS "${name}"`).join(', ')}
  FROM lake.training t
  LEFT JOIN lake.outcomes o USING (analysis_id)
  LEFT JOIN (SELECT analysis_id, sum(xp) AS xp FROM lake.xp_ledger GROUP BY ALL) x USING (analysis_id)
  LEFT JOIN (SELECT mint, arg_max(name, updated_at) AS name, arg_max(symbol, updated_at) AS symbol FROM lake.tokens GROUP BY ALL) k
    ON k.mint = t.mint
  ORDER BY t.submitted_at, t.analysis_id`

const CALL_COLUMNS = {
  analysisId: 'string',
  agentId: 'string',
  atMs: 'number',
  mint: 'string',
  name: 'string',
  symbol: 'string',
  sentiment: 'string',
  score: 'number',
  summary: 'string',
  isValidated: 'boolean',
  deviationPct: 'number',
  priceUsd: 'number?',
  xp: 'number',
  ...recordFrom(HORIZON_NAMES, () => 'number?' as const),
} as const

const REJECTED_SQL = `SELECT agent_id AS "agentId", epoch_ms(submitted_at)::DOUBLE AS "atMs", deviation_pct AS "deviationPct"
  FROM lake.rejections ORDER BY submitted_at, analysis_id`
const REJECTED_COLUMNS = { agentId: 'string', atMs: 'number', deviationPct: 'number' } as const

/** Everything that was said, oldest first. */
export function readSaid(dataDir: string): Promise<Said> {
  return withLakeReader({ dataDir }, async ({ connection }) => {
    const rows = await queryRows(connection, CALLS_SQL, CALL_COLUMNS)
    const calls = rows.map(({ sentiment, ...row }): Call => {
      const returns = recordFrom(HORIZON_NAMES, (name) => row[name])
      const { '5m': _5m, '15m': _15m, '1h': _1h, '6h': _6h, '24h': _24h, ...rest } = row
      const known = SENTIMENTS.find((each) => each === sentiment) ?? 'neutral'
      return { ...rest, sentiment: known, returns }
    })
    return { calls, rejected: await queryRows(connection, REJECTED_SQL, REJECTED_COLUMNS) }
  })
}
