// In: rows that leave the store's tables for good, because the lake has them. Out: SQL that folds what a restart must
// still know of them into small tables, and SQL that reads those beside the rows that are left. Never runs it.
import type { TableName } from '../schema/tables.ts'
import { STRIKES_RECOVERED_MS } from './limits.ts'
import { ROW_SEQ } from './sql.ts'

/** Sums of awards, by agent; the last label and the number of examples, by mint; moments that still count. */
export const CREATE_SUMMARIES = [
  'CREATE TABLE IF NOT EXISTS agent_totals (agent_id VARCHAR NOT NULL, xp DOUBLE NOT NULL, analyses BIGINT NOT NULL)',
  `CREATE TABLE IF NOT EXISTS mint_totals (mint VARCHAR NOT NULL, examples BIGINT NOT NULL, last_seq BIGINT NOT NULL,
    last_sentiment VARCHAR NOT NULL, last_score DOUBLE NOT NULL)`,
  'CREATE TABLE IF NOT EXISTS cooldown_times (agent_id VARCHAR NOT NULL, mint VARCHAR NOT NULL, at_ms BIGINT NOT NULL)',
  // Added since: what was folded before is older than what is folded now.
  'ALTER TABLE cooldown_times ADD COLUMN IF NOT EXISTS last_seq BIGINT DEFAULT 0',
  'CREATE TABLE IF NOT EXISTS strike_times (agent_id VARCHAR NOT NULL, at_ms BIGINT NOT NULL)',
]

const AWARDS = `SELECT agent_id, sum(xp) AS xp, count(*) FILTER (kind = 'analysis') AS analyses FROM xp_ledger`
const EXAMPLES = `SELECT mint, count(*) AS examples, max(${ROW_SEQ}) AS last_seq,
  arg_max(sentiment, ${ROW_SEQ}) AS last_sentiment, arg_max(score, ${ROW_SEQ}) AS last_score FROM training`

const foldAwards = (range: string): string => `MERGE INTO agent_totals AS total
  USING (${AWARDS} WHERE ${range} GROUP BY 1) AS added ON total.agent_id = added.agent_id
  WHEN MATCHED THEN UPDATE SET xp = total.xp + added.xp, analyses = total.analyses + added.analyses
  WHEN NOT MATCHED THEN INSERT (agent_id, xp, analyses) VALUES (added.agent_id, added.xp, added.analyses)`

/** Rows leave in order, so what is folded is younger than what was. */
const foldExamples = (range: string): string => `MERGE INTO mint_totals AS total
  USING (${EXAMPLES} WHERE ${range} GROUP BY 1) AS added ON total.mint = added.mint
  WHEN MATCHED THEN UPDATE SET examples = total.examples + added.examples, last_seq = added.last_seq,
    last_sentiment = added.last_sentiment, last_score = added.last_score
  WHEN NOT MATCHED THEN INSERT (mint, examples, last_seq, last_sentiment, last_score)
    VALUES (added.mint, added.examples, added.last_seq, added.last_sentiment, added.last_score)`

/** When a submission came by the server's own clock, Unix ms: of rows of before it is the market's time. */
const RECEIVED_MS = 'epoch_ms(coalesce(received_at, submitted_at))'

const keepCooldowns = (
  table: TableName,
  range: string,
  sinceMs: number,
): string => `INSERT INTO cooldown_times (agent_id, mint, at_ms, last_seq)
  SELECT agent_id, mint, arg_max(${RECEIVED_MS}, ${ROW_SEQ}), max(${ROW_SEQ}) FROM ${table}
  WHERE ${range} AND ${RECEIVED_MS} > ${sinceMs} GROUP BY ALL`

const keepStrikes = (range: string, sinceMs: number): string => `INSERT INTO strike_times
  SELECT agent_id, ${RECEIVED_MS} FROM rejections WHERE ${range} AND ${RECEIVED_MS} > ${sinceMs}`

/** Tables whose rows may leave, and what to run before those of `range` do. */
export const FOLDINGS: Partial<
  Record<TableName, (range: string, nowMs: number, cooldownMs: number) => string[]>
> = {
  training: (range, nowMs, cooldownMs) => [
    foldExamples(range),
    keepCooldowns('training', range, nowMs - cooldownMs),
  ],
  rejections: (range, nowMs, cooldownMs) => [
    keepStrikes(range, nowMs - STRIKES_RECOVERED_MS),
    keepCooldowns('rejections', range, nowMs - cooldownMs),
  ],
  xp_ledger: (range) => [foldAwards(range)],
  tokens: () => [],
}

/** Moments that no longer count go. */
export const pruneSummaries = (nowMs: number, cooldownMs: number): string[] => [
  `DELETE FROM cooldown_times WHERE at_ms <= ${nowMs - cooldownMs}`,
  `DELETE FROM strike_times WHERE at_ms <= ${nowMs - STRIKES_RECOVERED_MS}`,
]

/** Points and analyses by agent, over all that ever was. */
export const XP_TOTALS = `SELECT agent_id AS "agentId", sum(xp) AS xp, sum(analyses)::DOUBLE AS analyses
  FROM (FROM agent_totals UNION ALL ${AWARDS} GROUP BY 1) GROUP BY 1 ORDER BY 1`

/** Examples by mint, with the last one's labels, over all that ever was. */
export const COVERAGE = `SELECT mint, sum(examples)::DOUBLE AS count,
  arg_max(last_sentiment, last_seq) AS "lastSentiment", arg_max(last_score, last_seq) AS "lastScore"
  FROM (FROM mint_totals UNION ALL ${EXAMPLES} GROUP BY 1) GROUP BY 1 ORDER BY 1`

const startsOf = (table: TableName): string =>
  `SELECT agent_id, mint, ${RECEIVED_MS} AS at_ms, ${ROW_SEQ} AS last_seq FROM ${table}`

/** The submission that was written last by agent and mint, accepted or rejected, where it is young enough to count. */
export const cooldowns = (
  nowMs: number,
  cooldownMs: number,
): string => `SELECT agent_id AS "agentId", mint, arg_max(at_ms, last_seq)::DOUBLE AS "atMs"
  FROM (SELECT agent_id, mint, at_ms, last_seq FROM cooldown_times
    UNION ALL ${startsOf('training')} UNION ALL ${startsOf('rejections')})
  WHERE at_ms > ${nowMs - cooldownMs} GROUP BY ALL ORDER BY max(last_seq)`

/** Rejections that are young enough to count, in the order of writing. */
export const strikes = (nowMs: number): string => `SELECT agent_id AS "agentId", at_ms::DOUBLE AS "atMs"
  FROM (SELECT agent_id, at_ms, 0 AS seq FROM strike_times
    UNION ALL SELECT agent_id, ${RECEIVED_MS}, ${ROW_SEQ} FROM rejections)
  WHERE at_ms > ${nowMs - STRIKES_RECOVERED_MS} ORDER BY seq, at_ms`
