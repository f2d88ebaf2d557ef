// SQL that opens, computes and records outcomes. Times are Unix ms; a bar is identified by its end.
import { HOUR_MS, MINUTE_MS } from '../../lib/time.ts'
import { type Column, LAKE_SCHEMA_VERSION, TABLES } from '../../schema/tables.ts'
import { HORIZON_NAMES, HORIZONS, type Horizon } from '../../schema/vocabulary.ts'
import { identifier, lakeColumns, literal, MARKET_DATABASE, ROW_SEQ } from '../duckdb/sql.ts'
import { BASE_LOOKBACK_MS, LABEL_DELAY_MS } from '../limits.ts'

const LAST: Horizon = '24h'
/** A token counts as dead at the last horizon when it had no trade for this long, or when at most this share of the base price is left. */
const DEAD_SILENCE_MS = 6 * HOUR_MS
const DEAD_PRICE_SHARE = 0.01
/** From this schema version on an example has the price at its submission. Older ones keep their former base price. */
const SUBMISSION_PRICE_VERSION = 2

/** Inserts an open outcome for each example, numbered after those there are. @param examples a SELECT of training rows */
export const openOutcomesSql = (examples: string): string => `INSERT INTO outcomes_open
  (${ROW_SEQ}, analysis_id, mint, submitted_at, base_price_usd, feed, simulated, horizons_done)
  SELECT (SELECT coalesce(max(${ROW_SEQ}), 0) FROM outcomes_open) + row_number() OVER (), analysis_id, mint, submitted_at,
    CASE WHEN schema_version < ${SUBMISSION_PRICE_VERSION} THEN price_usd ELSE price_at_submission_usd END,
    feed, simulated, 0 FROM (${examples})`

/**
 * Restores the open outcomes of a lost state database: examples that have no label of the last horizon, with the labels they
 * have. Examples from before the first outcome in the lake are left out: their outcomes were complete and have expired.
 */
export function reopenOutcomesSql(examples: string, outcomes: string): string[] {
  const shared = TABLES.outcomes_open.columns.filter(({ name }) =>
    TABLES.outcomes.columns.some((column) => column.name === name),
  )
  const labels = shared.map(({ name }) => `${identifier(name)} = latest.${identifier(name)}`).join(', ')
  const names = HORIZON_NAMES.map(literal).join(', ')
  return [
    openOutcomesSql(`SELECT * FROM (${examples}) WHERE submitted_at >=
      (SELECT coalesce(date_trunc('day', min(submitted_at)), TIMESTAMP '-infinity') FROM (${outcomes}))
      AND analysis_id NOT IN (SELECT analysis_id FROM (${outcomes}) WHERE labelled_to = ${literal(LAST)})`),
    `UPDATE outcomes_open SET ${labels}, horizons_done = list_position([${names}], latest.labelled_to)
     FROM (SELECT * FROM (${outcomes}) QUALIFY row_number() OVER (PARTITION BY analysis_id ORDER BY label_available_at DESC) = 1)
       AS latest WHERE outcomes_open.analysis_id = latest.analysis_id`,
  ]
}

/** Selects submissions whose next horizon is `horizon` and has passed by `knownToMs`, oldest first. */
export const selectDueSql = (horizon: Horizon, knownToMs: number, rowsMax: number): string =>
  `SELECT ${ROW_SEQ}::DOUBLE AS seq, mint, epoch_ms(submitted_at)::DOUBLE AS "submittedAtMs", base_price_usd AS "basePriceUsd"
   FROM outcomes_open WHERE horizons_done = ${HORIZON_NAMES.indexOf(horizon)}
     AND submitted_at <= epoch_ms(${knownToMs - HORIZONS[horizon] - LABEL_DELAY_MS})
   ORDER BY submitted_at, ${ROW_SEQ} LIMIT ${rowsMax}`

/** Selects the lowest number of labelled horizons among submissions that may be due. */
export const selectFewestDoneSql = (knownToMs: number): string =>
  `SELECT min(horizons_done) AS done FROM outcomes_open WHERE submitted_at < epoch_ms(${knownToMs})`

/** Columns of a computed label; NULL where the horizon has no such value. All are numbers, also `dead` (0 or 1). */
export const LABEL_NUMBERS = [
  'seq',
  'base',
  'ret',
  'drawdown',
  'dead',
  'trades',
  'last_trade_ms',
  'watched_minutes',
] as const
export type Label = Record<(typeof LABEL_NUMBERS)[number], number | null>

export const CREATE_DUE = 'CREATE TABLE due (seq DOUBLE, at_ms DOUBLE, base DOUBLE, mint VARCHAR)'

/** Creates `bars`, the minute bars of the tokens of `due`, and for the last horizon `minutes`, the minutes with any bar. */
export function loadBarsSql(bars: string, horizon: Horizon, fromMs: number, toMs: number): string[] {
  const lookBackMs = horizon === HORIZON_NAMES[0] ? BASE_LOOKBACK_MS : 0
  const minutes = (sinceMs: number) => `FROM (${bars}) WHERE tf = '1m'
    AND t >= epoch_ms(${sinceMs - MINUTE_MS}) AND t < epoch_ms(${toMs + HORIZONS[horizon]})`
  const ends = `epoch_ms(t) + ${MINUTE_MS} AS end_ms`
  const ofDue = `CREATE TABLE bars AS SELECT mint, ${ends}, c, n ${minutes(fromMs - lookBackMs)}
    AND mint IN (SELECT mint FROM due)`
  if (horizon !== LAST) return [ofDue]
  const ofMarket = `CREATE TABLE minutes AS SELECT end_ms, row_number() OVER (ORDER BY end_ms) AS rank
    FROM (SELECT DISTINCT ${ends} ${minutes(fromMs)})`
  return [ofDue, ofMarket]
}

/** The base price: that of the example, else the last close before it. Determined with the first horizon. */
const BASED = `based AS (SELECT due.seq, due.mint, due.at_ms,
    coalesce(due.base, CASE WHEN bars.end_ms > at_ms - ${BASE_LOOKBACK_MS} THEN bars.c END) AS base
  FROM due ASOF LEFT JOIN bars ON due.mint = bars.mint AND bars.end_ms <= due.at_ms)`

/** The price at the horizon: the close of the last bar that ended after the submission, else the base price. */
const priced = (from: 'due' | 'based', horizonMs: number): string => `priced AS (SELECT known.*,
    CASE WHEN bars.end_ms > at_ms THEN bars.end_ms END AS last_end_ms,
    CASE WHEN bars.end_ms > at_ms THEN bars.c ELSE base END AS price
  FROM ${from} AS known ASOF LEFT JOIN bars ON known.mint = bars.mint AND bars.end_ms <= at_ms + ${horizonMs})`

const RETURN = 'CASE WHEN base > 0 THEN price / base - 1 END AS ret'

const shortLabels = (horizon: Horizon): string => `WITH ${
  horizon === HORIZON_NAMES[0]
    ? `${BASED}, ${priced('based', HORIZONS[horizon])}`
    : priced('due', HORIZONS[horizon])
}
  SELECT seq, base, ${RETURN}, NULL::DOUBLE AS drawdown, NULL::DOUBLE AS dead, NULL::DOUBLE AS trades,
    NULL::DOUBLE AS last_trade_ms, NULL::DOUBLE AS watched_minutes FROM priced`

/** Minutes with any bar from the submission to the horizon: the difference of two ranks. */
const watched = (horizonMs: number): string => `begun AS (SELECT seq, at_ms, coalesce(rank, 0) AS seen
    FROM due ASOF LEFT JOIN minutes ON end_ms <= at_ms),
  watched AS (SELECT seq, (coalesce(rank, 0) - seen)::DOUBLE AS watched_minutes
    FROM begun ASOF LEFT JOIN minutes ON end_ms <= at_ms + ${horizonMs})`

/** The base price and each close after it, each with the highest price so far: for drawdown and trade count. */
const path = (
  horizonMs: number,
): string => `prices AS (SELECT seq, at_ms AS end_ms, base AS c, 0 AS n FROM priced
    UNION ALL SELECT seq, end_ms, c, n FROM priced JOIN bars USING (mint)
      WHERE end_ms > at_ms AND end_ms <= at_ms + ${horizonMs}),
  peaks AS (SELECT seq, c, n, max(c) OVER (PARTITION BY seq ORDER BY end_ms ROWS UNBOUNDED PRECEDING) AS peak
    FROM prices),
  path AS (SELECT seq, min(c / peak - 1) AS drawdown, sum(n)::DOUBLE AS trades FROM peaks GROUP BY seq)`

const longLabels = (horizonMs: number): string => `WITH ${priced('due', horizonMs)},
  ${path(horizonMs)}, ${watched(horizonMs)}
  SELECT seq, base, ${RETURN}, CASE WHEN base > 0 THEN drawdown END AS drawdown,
    (coalesce(last_end_ms, 0) <= at_ms + ${horizonMs - DEAD_SILENCE_MS}
      OR coalesce(price <= base * ${DEAD_PRICE_SHARE}, false))::INT::DOUBLE AS dead,
    trades, (last_end_ms - ${MINUTE_MS})::DOUBLE AS last_trade_ms, watched_minutes
  FROM priced JOIN path USING (seq) JOIN watched USING (seq)`

/** Selects a row of LABEL_NUMBERS for each row of `due`. */
export const computeLabelsSql = (horizon: Horizon): string =>
  horizon === LAST ? longLabels(HORIZONS[horizon]) : shortLabels(horizon)

export const STAGED_LABELS = 'outcomes_staged'
const STAGED = `${MARKET_DATABASE}.${STAGED_LABELS}`
export const CREATE_STAGED_LABELS = `CREATE OR REPLACE TABLE ${STAGED}
  (${LABEL_NUMBERS.map((name) => `${name} DOUBLE`).join(', ')})`

/** Columns that only the last horizon fills, and their SQL. */
export const LAST_CELLS: Readonly<Record<string, string>> = {
  fwd_max_drawdown_24h: 'drawdown',
  dead_24h: 'dead = 1',
  fwd_trades_24h: 'trades::BIGINT',
  fwd_last_trade_24h: 'epoch_ms(last_trade_ms::BIGINT)',
  watched_minutes_24h: 'watched_minutes::INTEGER',
}

function cellSql({ name, type }: Column, horizon: Horizon, knownMs: number): string {
  if (name === 'base_price_usd') return 'base'
  if (name === `fwd_ret_${horizon}`) return 'ret'
  if (name in LAST_CELLS) return horizon === LAST ? LAST_CELLS[name] : `NULL::${type}`
  if (name === 'labelled_to') return literal(horizon)
  if (name === 'label_available_at')
    return `epoch_ms(epoch_ms(submitted_at) + ${HORIZONS[horizon] + LABEL_DELAY_MS})`
  if (name === 'known_at') return `epoch_ms(${knownMs})`
  return name === 'schema_version' ? String(LAKE_SCHEMA_VERSION) : identifier(name)
}

/** Inserts a row for each staged label, numbered after `lastSeq`, and moves its submission on to the next horizon. */
export function recordLabelsSql(horizon: Horizon, lastSeq: number, knownMs: number): string[] {
  const columns: readonly Column[] = TABLES.outcomes.columns
  const cells = columns.map((column) => cellSql(column, horizon, knownMs)).join(', ')
  const insert = `INSERT INTO outcomes (${ROW_SEQ}, ${lakeColumns(TABLES.outcomes)})
    SELECT ${lastSeq} + row_number() OVER (ORDER BY ${ROW_SEQ}), ${cells}
    FROM outcomes_open JOIN ${STAGED} ON ${ROW_SEQ} = seq`
  if (horizon === LAST)
    return [insert, `DELETE FROM outcomes_open WHERE ${ROW_SEQ} IN (SELECT seq FROM ${STAGED})`]
  const moveOn = `UPDATE outcomes_open SET base_price_usd = base, ${identifier(`fwd_ret_${horizon}`)} = ret,
    horizons_done = ${HORIZON_NAMES.indexOf(horizon) + 1} FROM ${STAGED} WHERE ${ROW_SEQ} = seq`
  return [insert, moveOn]
}
