// Queries to begin with: each runs on any lake, an empty one too.

export interface QueryExample {
  title: string
  sql: string
}

export const EXAMPLES: readonly [QueryExample, ...QueryExample[]] = [
  {
    title: 'Sentiments and what came of them',
    sql: `SELECT sentiment, count(*) AS analyses,
  round(100 * avg(fwd_ret_5m), 2) AS mean_5m_pct,
  round(100 * avg(fwd_ret_1h), 2) AS mean_1h_pct,
  round(100 * avg(dead_24h::INT), 1) AS dead_pct
FROM labelled GROUP BY sentiment ORDER BY analyses DESC`,
  },
  {
    title: 'Agents',
    sql: `SELECT agent_id, count(*) AS analyses, round(avg(score), 1) AS mean_score,
  round(avg(deviation_pct), 2) AS mean_deviation_pct, max(submitted_at) AS latest
FROM training GROUP BY agent_id ORDER BY analyses DESC LIMIT 20`,
  },
  {
    title: 'Volume by hour',
    sql: `SELECT date_trunc('hour', t) AS hour, count(DISTINCT mint) AS tokens,
  round(sum(v)) AS volume_usd, sum(n) AS trades
FROM bars WHERE tf = '1m' GROUP BY hour ORDER BY hour DESC LIMIT 48`,
  },
  {
    title: 'How far rejected submissions were off',
    sql: `SELECT 25 * floor(least(deviation_pct, 200) / 25)::INTEGER AS from_pct, count(*) AS rejections,
  count(DISTINCT agent_id) AS agents, count(DISTINCT mint) AS tokens
FROM rejections GROUP BY from_pct ORDER BY from_pct`,
  },
  {
    title: 'Tokens seen last',
    sql: `SELECT mint, symbol, name, known_at FROM tokens ORDER BY known_at DESC LIMIT 50`,
  },
  {
    title: 'Tables',
    sql: 'SELECT table_name, count(*) AS files, sum(rows) AS rows, sum(bytes) AS bytes\nFROM lake_files GROUP BY table_name ORDER BY table_name',
  },
  { title: 'Columns of training', sql: 'DESCRIBE training' },
]
