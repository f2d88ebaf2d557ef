// Compares the bars of a sample of tokens with those that the recorded trades give. Trades that came too late are in neither: the
// engine refuses them, and only what it took is recorded.
import { LATE_GRACE_MS, SILENCE_MS } from '../../market/time/limits.ts'
import { TIMEFRAME_MS, TIMEFRAMES } from '../../schema/timeframe.ts'
import { queryOne, queryRows, queryValue, runAll } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import type { EventMetadata } from '../events/event-metadata.ts'
import { insertIntervalsSql } from '../events/event-position.ts'
import { readRemoved } from '../lake/retention.ts'
import { SAMPLE_TOKENS, SAMPLE_TRADES_MAX, SUMS_TOLERANCE } from '../limits.ts'
import { loadBarsToMs } from '../market-data/bar-account.ts'
import { countedSql, pluralize } from './findings.ts'
import { knownOfEvents } from './verify-events.ts'
import type { VerifyContext } from './verify-files.ts'
import { lakeRowsSql, type ReadableTable, unreadFiles } from './verify-rows.ts'

/** One of each table that is compared. */
type Compared<One> = Readonly<Record<'bars' | 'trades' | 'events', One>>
export type RecordedTables = Compared<ReadableTable>
/** SQL of their rows. */
type Sources = Compared<string>

/** The part of the record that can be compared. */
interface ComparableRecord {
  fromEventNo: number
  /** It begins with an empty market: no trade is missing before it. */
  isFromStart: boolean
  /** Market time of its first and last event. */
  fromMs: number
  toMs: number
  /** Tokens that the market can hold without one giving way; 0: not known. */
  tokensMax: number
}

const FRAMES = TIMEFRAMES.filter((tf) => TIMEFRAME_MS[tf] >= TIMEFRAME_MS['1m'])
  .map((tf) => `('${tf}', ${TIMEFRAME_MS[tf]})`)
  .join(', ')

/** SQL of the bars that trades give, in the order in which the engine takes them. */
const MADE = `SELECT mint, tf, epoch_ms(ts) // length * length AS start, length,
    arg_min(price_usd, (ts, event_no)) AS o, max(price_usd) AS h, min(price_usd) AS l, arg_max(price_usd, (ts, event_no)) AS c,
    sum(volume_usd) AS v, count(*) AS n, coalesce(sum(volume_usd) FILTER (side = 'buy'), 0) AS buy_v,
    count(*) FILTER (side = 'buy') AS buys
  FROM sampled_trades, (VALUES ${FRAMES}) AS frames(tf, length) GROUP BY ALL`

const isNear = (sum: string): string =>
  `abs(found.${sum} - made.${sum}) <= ${SUMS_TOLERANCE} * greatest(abs(found.${sum}), abs(made.${sum}))`
const IS_SAME = `(found.o, found.h, found.l, found.c, found.n, found.buys) IS NOT DISTINCT FROM
  (made.o, made.h, made.l, made.c, made.n, made.buys) AND ${isNear('v')} AND ${isNear('buy_v')}`

/** Intervals whose bars were written before it was known that trades were missing. A feed may have brought these since. */
async function loadToldIncomplete(
  { connection }: VerifyContext,
  { incompleteBars }: EventMetadata,
): Promise<void> {
  await connection.run('CREATE OR REPLACE TEMP TABLE told_incomplete (tf VARCHAR, t TIMESTAMP)')
  await runAll(connection, insertIntervalsSql('told_incomplete', incompleteBars))
}

/** The first event number behind all that is known to be lost or to have left the lake. */
function firstWholeEvent({ eventsFrom, lost }: EventMetadata, { trades, events }: RecordedTables): number {
  const damaged = [trades, events].flatMap(unreadFiles)
  return 1 + Math.max(eventsFrom - 1, ...lost.map(({ to }) => to), ...damaged.map(({ last }) => last))
}

/**
 * Finds what can be compared: the events since the market last began empty, without those up to the last loss that was told: the
 * engine took what could not be recorded. @returns null where there is nothing, or the clock went back
 */
async function findRecord(
  context: VerifyContext,
  wholeFrom: number,
  { trades, events }: Sources,
): Promise<ComparableRecord | null> {
  const { connection, findings } = context
  const { begun, lost } = await queryOne(
    connection,
    `SELECT coalesce(max(event_no) FILTER (kind = 'run' AND (data ->> '$.header.checkpointEventNo') IS NULL), 0)::DOUBLE AS begun,
       coalesce(max(event_no) FILTER (kind = 'gap' AND (data ->> '$.reason') = 'lost'), 0)::DOUBLE AS lost FROM ${events}`,
    { begun: 'number', lost: 'number' },
  )
  const fromEventNo = Math.max(wholeFrom, begun, lost + 1)
  const { fromMs, toMs, beforeMs } = await queryOne(
    connection,
    `SELECT epoch_ms(min("at") FILTER (event_no >= ${fromEventNo}))::DOUBLE AS "fromMs",
       epoch_ms(max("at") FILTER (event_no >= ${fromEventNo}))::DOUBLE AS "toMs",
       epoch_ms(max("at") FILTER (event_no < ${begun}))::DOUBLE AS "beforeMs"
     FROM (SELECT event_no, "at" FROM ${trades} UNION ALL SELECT event_no, "at" FROM ${events})`,
    { fromMs: 'number?', toMs: 'number?', beforeMs: 'number?' },
  )
  if (fromMs === null || toMs === null) return null
  if (beforeMs !== null && beforeMs >= fromMs) {
    findings.notes.push(
      'bars were not compared with trades: the last run begins earlier than the one before ended, as a replay begun again does, or a clock that was set back',
    )
    return null
  }
  const tokensMax = await queryValue(
    connection,
    `SELECT coalesce(min((data ->> '$.header.settings.tokensMax')::DOUBLE), 0) AS "tokensMax" FROM ${events}
     WHERE kind = 'run' AND event_no >= ${begun}`,
    'number',
  )
  return { fromEventNo, isFromStart: begun > 0 && fromEventNo === begun, fromMs, toMs, tokensMax }
}

/** Takes a sample of the tokens that were traded, other ones in each verification, and their trades and bars. */
async function takeSample(
  { connection }: VerifyContext,
  { bars, trades, events }: Sources,
  { fromEventNo, fromMs, toMs }: ComparableRecord,
  seed: number,
): Promise<void> {
  const place = `hash(mint, ${seed})`
  const statements = [
    `CREATE OR REPLACE TEMP TABLE sampled AS SELECT mint FROM (
       SELECT mint, ${place} AS place, sum(count) OVER (ORDER BY ${place}) AS total FROM
         (SELECT mint, count(*) AS count FROM ${trades} WHERE event_no >= ${fromEventNo} GROUP BY mint)
       WHERE count <= ${SAMPLE_TRADES_MAX})
     WHERE total <= ${SAMPLE_TRADES_MAX} ORDER BY place LIMIT ${SAMPLE_TOKENS}`,
    // One whose price nobody knows makes no bar, and closes none.
    `CREATE OR REPLACE TEMP TABLE sampled_trades AS
     SELECT event_no, "at", ts, mint, side, price_usd, volume_usd FROM ${trades} SEMI JOIN sampled USING (mint)
     WHERE event_no >= ${fromEventNo} AND price_usd IS NOT NULL`,
    // What the engine closed after the last event of the record may have trades that are not in the lake yet.
    `CREATE OR REPLACE TEMP TABLE sampled_bars AS
     SELECT *, epoch_ms(t) AS start, epoch_ms(closed_at) BETWEEN ${fromMs} AND ${toMs - 1} AS is_of_record
     FROM ${bars} SEMI JOIN sampled USING (mint)`,
    // While a feed heals, trades come that are older than others, and bars are open to them.
    `CREATE OR REPLACE TEMP TABLE healing AS SELECT event_no AS first, (SELECT min(back.event_no) FROM ${events} AS back
         WHERE back.kind = 'reconnect' AND back.event_no > lost.event_no
           AND (back.data ->> '$.feed') = (lost.data ->> '$.feed')) AS last
       FROM ${events} AS lost WHERE kind = 'disconnect' AND (data ->> '$.healUntilMs') IS NOT NULL`,
    // A token that gave way to others and came back has a bar of each stay, or none: a trade older than it may be shows it, or a bar
    // watched since a time within the record. Those of other tokens are watched since the market began, which is no later than the record.
    `CREATE OR REPLACE TEMP TABLE came_back AS SELECT mint FROM (
       SELECT mint, event_no, ts, "at", lag("at") OVER of_token AS before_at, max(ts) OVER before AS newest FROM sampled_trades
       WINDOW of_token AS (PARTITION BY mint ORDER BY event_no),
         before AS (PARTITION BY mint ORDER BY event_no ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
     WHERE (ts < newest - INTERVAL ${LATE_GRACE_MS} MILLISECONDS
         OR ("at" - before_at >= INTERVAL ${SILENCE_MS} MILLISECONDS AND ts < "at" - INTERVAL ${LATE_GRACE_MS} MILLISECONDS))
       AND NOT EXISTS (FROM healing WHERE event_no > first AND event_no < coalesce(last, event_no + 1))
     UNION SELECT mint FROM sampled_bars WHERE epoch_ms(watched_since) > ${fromMs}`,
    ...['sampled', 'sampled_trades', 'sampled_bars'].map(
      (name) => `DELETE FROM ${name} WHERE mint IN (FROM came_back)`,
    ),
  ]
  await runAll(connection, statements)
}

/** Market time up to which the lake must have all bars that a trade closed; 0: where that cannot be known. */
async function closedToMs(
  { connection, hasStore }: VerifyContext,
  { trades, events }: Sources,
  { fromEventNo, isFromStart, tokensMax }: ComparableRecord,
): Promise<number> {
  if (!hasStore || !isFromStart) return 0
  const tokens = await queryValue(
    connection,
    `SELECT count(DISTINCT mint)::DOUBLE AS tokens FROM (SELECT mint FROM ${trades} WHERE event_no >= ${fromEventNo}
       UNION ALL SELECT mint FROM ${events} WHERE event_no >= ${fromEventNo})`,
    'number',
  )
  // Of a token that gave way to others, the bars that were open then are in no file.
  return tokens <= tokensMax ? loadBarsToMs(connection) : 0
}

/** The oldest date whose bars the lake has; null: none has left it. */
async function firstBarDate({ connection, hasStore }: VerifyContext, { listed }: ReadableTable) {
  if (hasStore && (await readRemoved(connection, 'bars')).rows === 0) return null
  return listed.map(({ date }) => date).sort()[0] ?? null
}

const NAME = `concat_ws(' ', mint, tf, make_timestamp(start * 1000)) AS name`

/** SQL of the bars that differ, by what is wrong with them. */
function differencesSql({ isFromStart }: ComparableRecord, toMs: number, firstDate: string | null): string {
  // Before its first trades of the record a token may have had others.
  const isWhole = isFromStart
    ? 'true'
    : `start > (SELECT epoch_ms(min(ts)) + ${LATE_GRACE_MS} FROM sampled_trades AS own WHERE own.mint = differences.mint)`
  const isRetained =
    firstDate === null ? 'true' : `make_timestamp(start * 1000)::DATE >= DATE ${literal(firstDate)}`
  return `WITH made AS MATERIALIZED (${MADE}),
    found AS (FROM sampled_bars WHERE is_of_record),
    newest AS (SELECT mint, tf, max(start) AS start FROM found GROUP BY ALL),
    traded AS (SELECT mint, epoch_ms(max(ts)) AS until FROM sampled_trades WHERE epoch_ms("at") <= ${toMs} GROUP BY mint),
    missing AS (SELECT mint, tf, made.start, 'missing' AS what FROM made LEFT JOIN newest USING (mint, tf) LEFT JOIN traded USING (mint)
      WHERE (made.start < newest.start OR made.start + length + ${LATE_GRACE_MS} <= traded.until)
        AND NOT EXISTS (FROM sampled_bars AS known WHERE (known.mint, known.tf, known.start) = (made.mint, made.tf, made.start))),
    other AS (SELECT mint, tf, start, 'different' AS what FROM found LEFT JOIN made USING (mint, tf, start)
      WHERE made.n IS NULL OR NOT (${IS_SAME}))
    ${countedSql('name')}, what FROM (
      SELECT what, ${NAME} FROM (FROM missing UNION ALL FROM other) AS differences WHERE ${isWhole} AND ${isRetained}
        AND NOT EXISTS (FROM told_incomplete AS told WHERE told.tf = differences.tf AND epoch_ms(told.t) = differences.start))
    GROUP BY what ORDER BY what DESC`
}

/** @param seed decides which tokens are in the sample */
export async function verifyTrades(
  context: VerifyContext,
  tables: RecordedTables,
  seed: number,
): Promise<void> {
  const { connection, findings } = context
  if (tables.trades.readable.length === 0) return
  context.startStage('bars against trades')
  if (!tables.bars.isWhole) {
    findings.notes.push('bars were not compared with trades, since not every file can be read')
    return
  }
  const sources = {
    bars: lakeRowsSql(context, tables.bars),
    trades: lakeRowsSql(context, tables.trades),
    events: lakeRowsSql(context, tables.events),
  }
  const known = await knownOfEvents(context)
  const record = await findRecord(context, firstWholeEvent(known, tables), sources)
  if (record === null) return
  await takeSample(context, sources, record, seed)
  await loadToldIncomplete(context, known)
  const toMs = await closedToMs(context, sources, record)
  const differences = await queryRows(
    connection,
    differencesSql(record, toMs, await firstBarDate(context, tables.bars)),
    { what: 'string', count: 'number', examples: 'string' },
  )
  const tokens = await queryValue(connection, 'SELECT count(*)::DOUBLE AS tokens FROM sampled', 'number')
  for (const { what, count, examples } of differences) {
    const is = what === 'missing' ? 'missing' : 'not what the recorded trades give'
    const sample = `in a sample of ${pluralize(tokens, 'token')}`
    findings.addBarLoss(`${pluralize(count, 'bar')} ${is}, ${sample}, among them ${examples}`)
  }
}
