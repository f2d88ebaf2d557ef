"""The cookbook of data/README.md in Python: the same queries, run by DuckDB's package.

    pip install duckdb                                     # and pandas or polars, for .df() or .pl()
    python data/cookbook.py                                # every recipe on the sample, without a server
    python data/cookbook.py data/lake/catalog.duckdb       # on a lake, while its server runs
    python data/cookbook.py data/lake/catalog.duckdb Freshness
    python data/cookbook.py --horizon 5m data/lake/catalog.duckdb   # recipes that look ahead, over five minutes

In a notebook, in this folder:

    from cookbook import open_lake, run
    frame = run(open_lake("lake/catalog.duckdb"), "Freshness").df()     # or .pl(), .arrow(), .fetchall()

Made by `node scripts/cookbook.ts` from data/README.md: edit the queries there. Every recipe was run with Python 3.11 and
duckdb 1.5.6 when this was written. The tests hold that the queries are those of the card, and run them in Python where its
package duckdb is installed.
"""
import pathlib
import re
import sys

RECIPES = {
    "What is there": r"""
SELECT 'training' AS "table", count(*) AS rows, count(DISTINCT mint) AS mints, min(submitted_at) AS first, max(submitted_at) AS last FROM training
UNION ALL SELECT 'rejections', count(*), count(DISTINCT mint), min(submitted_at), max(submitted_at) FROM rejections
UNION ALL SELECT 'outcomes, all', count(*), count(DISTINCT mint), min(submitted_at), max(submitted_at) FROM outcomes
UNION ALL SELECT 'outcomes, 24 h', count(*), count(DISTINCT mint), min(submitted_at), max(submitted_at) FROM outcomes WHERE dead_24h IS NOT NULL
UNION ALL SELECT 'bars, 1m', count(*), count(DISTINCT mint), min(t), max(t) FROM bars WHERE tf = '1m'
UNION ALL SELECT 'xp_ledger', count(*), NULL, min(awarded_at), max(awarded_at) FROM xp_ledger;
""",
    "Coverage: how evenly the analyses fall on the tokens": r"""
WITH per_token AS (
  SELECT mint, count(*) AS analyses, count(DISTINCT agent_id) AS agents FROM training GROUP BY mint
)
SELECT CASE WHEN analyses < 5 THEN '1-4' WHEN analyses < 20 THEN '5-19' WHEN analyses < 50 THEN '20-49' ELSE '50 and more' END AS analyses_of_a_token,
  count(*) AS tokens,
  round(avg(agents), 1) AS agents_per_token,
  round(100 * count(*) / sum(count(*)) OVER (), 1) AS pct_of_tokens,
  round(100 * sum(analyses) / sum(sum(analyses)) OVER (), 1) AS pct_of_analyses
FROM per_token GROUP BY 1 ORDER BY min(analyses);
""",
    "The most analysed tokens": r"""
SELECT symbol, count(*) AS analyses, count(DISTINCT agent_id) AS agents,
  round(avg(score), 1) AS mean_score,
  arg_max(sentiment, t.submitted_at) AS last_sentiment,
  round(arg_max(market_cap, t.submitted_at)) AS last_market_cap_usd, graduated
FROM training t LEFT JOIN tokens USING (mint)
GROUP BY t.mint, symbol, graduated ORDER BY analyses DESC, mint LIMIT 8;
""",
    "Calibration: does a higher score mean a higher return?": r"""
SET VARIABLE horizon = '24h';
SELECT 10 * least(floor(score / 10), 9)::INT AS score_from,
  count(*) AS n,
  round(100 * avg(ret), 1) AS mean_pct,
  round(100 * median(ret), 1) AS median_pct,
  round(100 * avg((ret > 0)::INT), 1) AS rose_pct
FROM (SELECT sentiment, score, COLUMNS('^fwd_ret_' || getvariable('horizon') || '$') AS ret FROM labelled)
WHERE sentiment = 'bullish' AND ret IS NOT NULL
GROUP BY 1 ORDER BY 1;
""",
    "Hit rate of each agent’s sentiment, with a confidence interval": r"""
SET VARIABLE horizon = '6h';
WITH calls AS (
  SELECT agent_id, count(*) AS n,
    avg(((sentiment = 'bullish') = (ret > 0))::INT) AS p
  FROM (SELECT agent_id, sentiment, COLUMNS('^fwd_ret_' || getvariable('horizon') || '$') AS ret FROM labelled)
  WHERE sentiment <> 'neutral' AND ret <> 0
  GROUP BY agent_id
)
SELECT agent_id, n,
  round(100 * p, 1) AS hit_pct,
  round(100 * (p + 1.92 / n - 1.96 * sqrt(p * (1 - p) / n + 0.96 / n ** 2)) / (1 + 3.84 / n), 1) AS low_pct,
  round(100 * (p + 1.92 / n + 1.96 * sqrt(p * (1 - p) / n + 0.96 / n ** 2)) / (1 + 3.84 / n), 1) AS high_pct
FROM calls ORDER BY hit_pct DESC, agent_id;
""",
    "Lift of each risk factor on death within a day": r"""
WITH ended AS (SELECT risk_factors, dead_24h FROM labelled WHERE dead_24h IS NOT NULL),
base AS (SELECT avg(dead_24h::INT) AS rate FROM ended)
SELECT factor, count(*) AS n,
  round(100 * avg(dead_24h::INT), 1) AS dead_pct,
  round(100 * any_value(rate), 1) AS base_pct,
  round(avg(dead_24h::INT) / any_value(rate), 2) AS lift
FROM (SELECT unnest(risk_factors) AS factor, dead_24h FROM ended), base
GROUP BY factor HAVING count(*) >= 20
ORDER BY lift DESC, factor;
""",
    "Drawdown by risk level": r"""
SELECT risk_level, count(*) AS n,
  round(100 * avg(fwd_max_drawdown_24h), 1) AS mean_drawdown_pct,
  round(100 * quantile_cont(fwd_max_drawdown_24h, 0.1), 1) AS worst_tenth_pct,
  round(100 * avg((fwd_max_drawdown_24h < -0.5)::INT), 1) AS halved_pct
FROM labelled WHERE fwd_max_drawdown_24h IS NOT NULL
GROUP BY risk_level ORDER BY list_position(['low', 'medium', 'high', 'critical'], risk_level);
""",
    "Agreement between agents on a token": r"""
WITH pairs AS (
  SELECT a.agent_id AS one, b.agent_id AS other, a.sentiment AS said, b.sentiment AS answered
  FROM training a JOIN training b
    ON a.mint = b.mint AND a.agent_id < b.agent_id
    AND b.submitted_at BETWEEN a.submitted_at - INTERVAL 1 HOUR AND a.submitted_at + INTERVAL 1 HOUR
), agreement AS (
  SELECT one, other, count(*) AS n, avg((said = answered)::INT) AS observed,
    avg((said = 'bullish')::INT) * avg((answered = 'bullish')::INT)
      + avg((said = 'bearish')::INT) * avg((answered = 'bearish')::INT)
      + avg((said = 'neutral')::INT) * avg((answered = 'neutral')::INT) AS by_chance
  FROM pairs GROUP BY one, other HAVING count(*) >= 20
)
SELECT one, other, n, round(100 * observed, 1) AS same_pct, round(100 * by_chance, 1) AS chance_pct,
  round((observed - by_chance) / (1 - by_chance), 2) AS kappa
FROM agreement
QUALIFY least(row_number() OVER (ORDER BY kappa DESC, one, other), row_number() OVER (ORDER BY kappa, one, other)) <= 5
ORDER BY kappa DESC, one, other;
""",
    "Forward return by size": r"""
SET VARIABLE horizon = '24h';
WITH once AS (
  SELECT mint, date_trunc('hour', submitted_at) AS hour, arg_min(market_cap, submitted_at) AS market_cap,
    arg_min(ret, submitted_at) AS ret, arg_min(dead_24h, submitted_at) AS dead
  FROM (SELECT *, COLUMNS('^fwd_ret_' || getvariable('horizon') || '$') AS ret FROM labelled) WHERE ret IS NOT NULL GROUP BY ALL
), sized AS (SELECT *, ntile(10) OVER (ORDER BY market_cap, mint, hour) AS decile FROM once)
SELECT decile, count(*) AS n, round(min(market_cap)) AS from_usd, round(max(market_cap)) AS to_usd,
  round(100 * avg(ret), 1) AS mean_pct, round(100 * median(ret), 1) AS median_pct, round(100 * avg(dead::INT), 1) AS dead_24h_pct
FROM sized GROUP BY decile ORDER BY decile;
""",
    "What leaving out the dead would do": r"""
SELECT sentiment, count(*) AS n, round(100 * avg(fwd_ret_24h), 1) AS mean_24h_pct,
  round(100 * avg(fwd_ret_24h) FILTER (NOT dead_24h), 1) AS without_the_dead_pct,
  round(100 * avg(dead_24h::INT), 1) AS dead_pct
FROM labelled WHERE dead_24h IS NOT NULL GROUP BY sentiment ORDER BY sentiment;
""",
    "A split without leakage": r"""
SET VARIABLE horizon = '6h';
WITH cut AS (SELECT TIMESTAMP '2025-11-04 06:00' AS test_from), dealt AS (
  SELECT *, submitted_at + getvariable('horizon')::INTERVAL + INTERVAL '60 seconds' AS label_known_at, md5(mint) < '33' AS is_test_token
  FROM (SELECT *, COLUMNS('^fwd_ret_' || getvariable('horizon') || '$') AS ret FROM labelled) WHERE ret IS NOT NULL
)
SELECT CASE WHEN label_known_at < test_from AND NOT is_test_token THEN 'train'
    WHEN submitted_at >= test_from AND is_test_token THEN 'test' ELSE 'left out' END AS part,
  count(*) AS n, count(DISTINCT mint) AS mints,
  min(submitted_at)::TIMESTAMP_S AS first_submitted,
  max(submitted_at)::TIMESTAMP_S AS last_submitted,
  max(label_known_at)::TIMESTAMP_S AS last_label_known
FROM dealt, cut GROUP BY part ORDER BY part = 'left out', last_submitted;
""",
    "A matrix of features and labels": r"""
SET VARIABLE horizon = '6h';
CREATE OR REPLACE TEMP TABLE matrix AS
SELECT analysis_id, mint, submitted_at,
  ln(price_usd) AS log_price, ln(market_cap) AS log_market_cap, ln(1 + volume_24h) AS log_volume, ln(1 + liquidity) AS log_liquidity,
  holder_count, top10_holder_pct, bonding_progress,
  (buys_24h - sells_24h) / nullif(buys_24h + sells_24h, 0) AS flow,
  unique_wallet_1h / nullif(unique_wallet_24h, 0) AS wallets_1h_share,
  has_freeze_authority::INT AS freeze_authority, has_mint_authority::INT AS mint_authority,
  (transfer_fee_enabled IS NULL)::INT AS transfer_fee_unknown,
  CASE sentiment WHEN 'bullish' THEN 1 WHEN 'bearish' THEN -1 ELSE 0 END * score / 100 AS conviction,
  list_contains(risk_factors, 'low_liquidity')::INT AS says_low_liquidity,
  validated::INT AS validated,
  ret, dead_24h::INT AS dead_24h
FROM (SELECT *, COLUMNS('^fwd_ret_' || getvariable('horizon') || '$') AS ret FROM labelled)
WHERE ret IS NOT NULL AND price_usd > 0 AND market_cap > 0;
SELECT mint[:6] AS mint, submitted_at::TIMESTAMP_S AS submitted_at, round(log_market_cap, 2) AS log_market_cap, round(flow, 2) AS flow,
  holder_count, conviction, round(ret, 4) AS ret, dead_24h
FROM matrix ORDER BY submitted_at, analysis_id LIMIT 5;
""",
    "The bar before each submission": r"""
SELECT count(*) AS submissions, count(b.mint) AS with_bar,
  round(quantile_cont(epoch(t.submitted_at - b.ended_at) / 60, 0.5), 1) AS age_p50_min,
  round(quantile_cont(epoch(t.submitted_at - b.ended_at) / 60, 0.9), 1) AS age_p90_min,
  round(100 * avg((t.price_at_submission_usd = b.c)::INT), 1) AS same_price_pct,
  round(100 * quantile_cont(abs(t.price_at_submission_usd / b.c - 1), 0.99), 2) AS difference_p99_pct
FROM training t ASOF LEFT JOIN (SELECT mint, c, t + INTERVAL 1 MINUTE AS ended_at FROM bars WHERE tf = '1m') b
  ON t.mint = b.mint AND t.submitted_at >= b.ended_at;
""",
    "Bars resampled: fifteen of 1m are one of 15m": r"""
WITH resampled AS (
  SELECT mint, time_bucket(INTERVAL 15 MINUTE, t) AS t,
    arg_min(o, bars.t) AS o, max(h) AS h, min(l) AS l, arg_max(c, bars.t) AS c, sum(v) AS v, sum(n) AS n
  FROM bars WHERE tf = '1m' GROUP BY ALL
), stored AS (SELECT * FROM bars WHERE tf = '15m')
SELECT count(*) AS bars_15m,
  count(*) FILTER (r.mint IS NULL) AS without_1m,
  count(*) FILTER ((r.o, r.h, r.l, r.c, r.n) IS DISTINCT FROM (s.o, s.h, s.l, s.c, s.n)) AS different,
  count(*) FILTER (abs(r.v - s.v) > 1e-9 * s.v) AS other_volume,
  sum(s.n) AS trades
FROM stored s LEFT JOIN resampled r USING (mint, t);
""",
    "Labels recomputed from the bars": r"""
WITH closes AS (SELECT mint, c, t + INTERVAL 1 MINUTE AS ended_at FROM bars WHERE tf = '1m'),
wanted AS (
  SELECT mint, submitted_at, base_price_usd, unnest([
    {horizon: '5m', until: submitted_at + INTERVAL '5 minutes', stored: fwd_ret_5m},
    {horizon: '1h', until: submitted_at + INTERVAL '1 hour', stored: fwd_ret_1h},
    {horizon: '24h', until: submitted_at + INTERVAL '24 hours', stored: fwd_ret_24h}], recursive := true)
  FROM outcomes
), made AS (
  SELECT horizon, stored, if(ended_at > submitted_at, c, base_price_usd) / base_price_usd - 1 AS again
  FROM wanted w ASOF LEFT JOIN closes b ON w.mint = b.mint AND w.until >= b.ended_at
  WHERE stored IS NOT NULL
)
SELECT horizon, count(*) AS labels, count(*) FILTER (abs(again - stored) > 1e-12 OR again IS NULL) AS different,
  round(100 * avg((stored = 0)::INT), 1) AS unmoved_pct
FROM made GROUP BY horizon ORDER BY list_position(['5m', '1h', '24h'], horizon);
""",
    "How far the labels have come": r"""
SELECT labelled_to, count(*) AS n, min(submitted_at)::TIMESTAMP_S AS first_submitted, max(submitted_at)::TIMESTAMP_S AS last_submitted,
  min(watched_minutes_24h) AS watched_minutes_min,
  round(quantile_cont(epoch(known_at - label_available_at), 0.5), 1) AS known_after_p50_s,
  round(quantile_cont(epoch(known_at - label_available_at), 0.99), 1) AS known_after_p99_s
FROM outcomes GROUP BY labelled_to ORDER BY list_position(['5m', '15m', '1h', '6h', '24h'], labelled_to);
""",
    "Freshness": r"""
SELECT validated, count(*) AS n,
  quantile_cont(epoch_ms(known_at - coalesce(received_at, submitted_at)), 0.5)::BIGINT AS durable_p50_ms,
  quantile_cont(epoch_ms(known_at - coalesce(received_at, submitted_at)), 0.99)::BIGINT AS durable_p99_ms,
  round(quantile_cont(epoch(submitted_at - snapshot_at), 0.5), 1) AS snapshot_age_p50_s,
  round(max(epoch(submitted_at - snapshot_at)), 1) AS snapshot_age_max_s,
  count(*) FILTER (snapshot_at > submitted_at) AS from_the_future
FROM training GROUP BY validated ORDER BY validated DESC;
""",
    "Rejections by reason": r"""
SELECT worst, count(*) AS rejected, count(DISTINCT agent_id) AS agents,
  round(median(deviation_pct), 0) AS median_deviation_pct, max(strikes) AS most_strikes
FROM (
  SELECT *, arg_max(field, deviation) OVER (PARTITION BY analysis_id) AS worst
  FROM (SELECT analysis_id, agent_id, deviation_pct, strikes, COLUMNS('dev_.*') FROM rejections)
  UNPIVOT (deviation FOR field IN (COLUMNS('dev_.*')))
  QUALIFY row_number() OVER (PARTITION BY analysis_id ORDER BY deviation DESC, field) = 1
) GROUP BY worst ORDER BY rejected DESC, worst;
""",
    "XP leaderboard": r"""
SELECT row_number() OVER (ORDER BY sum(xp) DESC, agent_id) AS "rank", agent_id, sum(xp) AS xp, count(*) FILTER (kind = 'analysis') AS analyses,
  round(sum(xp) / count(*), 1) AS xp_each, count(*) FILTER (xp >= 50) AS first_of_token
FROM xp_ledger GROUP BY agent_id ORDER BY "rank";
""",
    "The recorded sequence: what it holds, and whether it is whole": r"""
WITH all_events AS (
  SELECT event_no, "at", 'trade' AS kind, mint FROM trades
  UNION ALL SELECT event_no, "at", kind, mint FROM events
), runs AS (
  SELECT event_no AS first_no, coalesce(lead(event_no) OVER (ORDER BY event_no), 1e15) AS next_no, data->>'$.header.runId' AS run_id
  FROM events WHERE kind = 'run'
)
SELECT run_id, kind, count(*) AS events, count(DISTINCT mint) AS mints, min(event_no) AS first_no, max(event_no) AS last_no,
  max("at")::TIMESTAMP_S AS last_at, sum(count(*)) OVER (PARTITION BY run_id) = max(max(event_no)) OVER (PARTITION BY run_id) - first_no + 1 AS whole
FROM all_events JOIN runs ON event_no >= runs.first_no AND event_no < next_no
GROUP BY run_id, runs.first_no, kind ORDER BY runs.first_no, events DESC;
""",
    "Bars rebuilt from trades": r"""
WITH rebuilt AS (
  SELECT mint, time_bucket(INTERVAL 1 MINUTE, ts) AS t,
    arg_min(price_usd, (ts, event_no)) AS o, max(price_usd) AS h, min(price_usd) AS l, arg_max(price_usd, (ts, event_no)) AS c,
    sum(volume_usd) AS v, count(*) AS n, coalesce(sum(volume_usd) FILTER (side = 'buy'), 0) AS buy_v, count(*) FILTER (side = 'buy') AS buys
  FROM trades WHERE price_usd IS NOT NULL GROUP BY ALL
)
SELECT count(*) AS bars, count(r.mint) AS rebuilt,
  count(*) FILTER ((b.o, b.h, b.l, b.c, b.n, b.buys) = (r.o, r.h, r.l, r.c, r.n, r.buys)) AS same_prices_and_counts,
  count(*) FILTER (abs(b.v - r.v) <= 1e-9 * b.v AND abs(b.buy_v - r.buy_v) <= 1e-9 * b.v) AS same_volumes,
  count(*) FILTER (NOT complete) AS incomplete
FROM bars b LEFT JOIN rebuilt r USING (mint, t) WHERE tf = '1m';
""",
    "VWAP: what was paid on average": r"""
SELECT symbol, count(*) AS trades, round(sum(volume_usd)) AS volume_usd,
  round(1e6 * sum(volume_usd) / sum(token_amount), 3) AS vwap_usd_per_million,
  round(1e6 * arg_max(price_usd, event_no), 3) AS last_usd_per_million,
  round(100 * (arg_max(price_usd, event_no) * sum(token_amount) / sum(volume_usd) - 1), 1) AS last_over_vwap_pct
FROM trades JOIN tokens USING (mint)
WHERE ts >= (SELECT max(ts) FROM trades) - INTERVAL 6 HOUR AND price_usd IS NOT NULL
GROUP BY mint, symbol ORDER BY sum(volume_usd) DESC LIMIT 8;
""",
    "Order-flow imbalance: do buys lead?": r"""
WITH flow AS (
  SELECT mint, time_bucket(INTERVAL 5 MINUTE, ts) AS t, count(*) AS trades,
    sum(CASE side WHEN 'buy' THEN volume_usd ELSE -volume_usd END) / sum(volume_usd) AS imbalance, arg_max(price_usd, event_no) AS price
  FROM trades GROUP BY ALL
), ahead AS (
  SELECT f.*, later.price / f.price - 1 AS ret FROM flow f
  ASOF JOIN (SELECT mint, t + INTERVAL 5 MINUTE AS known_at, price FROM flow) later
    ON f.mint = later.mint AND f.t + INTERVAL '1 hour 5 minutes' >= later.known_at
  WHERE f.trades >= 3 AND f.t <= (SELECT max(ts) FROM trades) - INTERVAL '1 hour 5 minutes'
)
SELECT least(floor((imbalance + 1) / 0.4), 4)::INT AS fifth, round(min(imbalance), 2) AS from_imbalance, round(max(imbalance), 2) AS to_imbalance,
  count(*) AS n, round(100 * avg(ret), 2) AS mean_1h_pct, round(100 * median(ret), 2) AS median_1h_pct
FROM ahead GROUP BY 1 ORDER BY 1;
""",
    "First buyers of a token": r"""
WITH buyers AS (
  SELECT mint, wallet, min(ts) AS first_at, row_number() OVER (PARTITION BY mint ORDER BY min(event_no)) AS place
  FROM trades WHERE side = 'buy' AND wallet IS NOT NULL GROUP BY mint, wallet
), positions AS (
  SELECT mint, wallet, any_value(first_at) AS first_at, any_value(place) AS place,
    sum(volume_usd) FILTER (side = 'buy') AS paid, coalesce(sum(volume_usd) FILTER (side = 'sell'), 0) AS got,
    greatest(sum(CASE side WHEN 'buy' THEN token_amount ELSE -token_amount END), 0) AS held
  FROM trades JOIN buyers USING (mint, wallet) WHERE place <= 10 GROUP BY mint, wallet
), last AS (SELECT mint, arg_max(price_usd, event_no) AS price FROM trades GROUP BY mint),
launched AS (SELECT mint, min(ts) AS launched_at FROM events WHERE kind = 'token' GROUP BY mint)
SELECT place, count(*) AS buyers,
  round(quantile_cont(epoch(first_at - launched_at), 0.5)) AS p50_s_after_launch,
  round(quantile_cont(paid, 0.5), 1) AS p50_paid_usd,
  round(100 * avg((got > 0)::INT), 1) AS sold_pct,
  round(100 * (sum(got + held * price) / sum(paid) - 1), 1) AS return_of_all_pct,
  round(100 * avg((got + held * price > paid)::INT), 1) AS ahead_pct
FROM positions JOIN last USING (mint) JOIN launched USING (mint) GROUP BY place ORDER BY place;
""",
    "Candidates for wash trading": r"""
WITH pairs AS (
  SELECT b.mint, b.wallet, b.event_no AS bought, s.event_no AS sold, b.volume_usd + s.volume_usd AS usd
  FROM trades b JOIN trades s ON b.mint = s.mint AND b.wallet = s.wallet AND b.side = 'buy' AND s.side = 'sell'
    AND s.ts BETWEEN b.ts AND b.ts + INTERVAL 10 MINUTE AND s.token_amount BETWEEN 0.95 * b.token_amount AND 1.05 * b.token_amount
  QUALIFY row_number() OVER (PARTITION BY b.event_no ORDER BY s.event_no) = 1
    AND row_number() OVER (PARTITION BY s.event_no ORDER BY b.event_no) = 1
), of_token AS (SELECT mint, sum(volume_usd) AS usd FROM trades GROUP BY mint)
SELECT symbol, count(*) AS round_trips, count(DISTINCT wallet) AS wallets, round(sum(p.usd)) AS usd,
  round(100 * sum(p.usd) / any_value(t.usd), 2) AS pct_of_volume
FROM pairs p JOIN of_token t USING (mint) JOIN tokens USING (mint)
GROUP BY mint, symbol ORDER BY sum(p.usd) / any_value(t.usd) DESC, mint LIMIT 6;
""",
    "Slippage: the price of an analysis, and the one that could be had": r"""
WITH following AS (
  SELECT analysis_id, sentiment, price_at_submission_usd AS price, t.ts - submitted_at AS wait, t.price_usd AS next_price,
    1000 / t.sol_price_usd / t.v_sol AS impact
  FROM training a JOIN trades t ON a.mint = t.mint AND t."at" > a.submitted_at AND t."at" <= a.submitted_at + INTERVAL 1 HOUR
  WHERE price_at_submission_usd > 0
  QUALIFY row_number() OVER (PARTITION BY analysis_id ORDER BY t.event_no) = 1
)
SELECT sentiment, count(*) AS n, round(quantile_cont(epoch(wait), 0.5)) AS p50_wait_s,
  round(100 * avg(next_price / price - 1), 2) AS mean_pct,
  round(100 * quantile_cont(abs(next_price / price - 1), 0.5), 2) AS p50_abs_pct,
  round(100 * quantile_cont(abs(next_price / price - 1), 0.9), 2) AS p90_abs_pct,
  round(100 * quantile_cont(impact, 0.5), 1) AS p50_cost_of_1000_usd_pct
FROM following GROUP BY sentiment ORDER BY sentiment;
""",
}

ROOT = pathlib.Path(__file__).resolve().parent.parent


def open_sample(version=5):
    """A connection with the tables of the sample as views."""
    import duckdb

    connection = duckdb.connect()
    views = (ROOT / f"data/samples/v{version}/views.sql").read_text()
    connection.execute(views.replace("['data/", f"['{ROOT}/data/"))
    return connection


def open_lake(catalog):
    """A connection to a lake, by the path of its catalog; nothing is locked."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("ATTACH '" + str(catalog).replace("'", "''") + "' AS lake (READ_ONLY)")
    connection.execute("USE lake")
    return connection


def run(connection, title, horizon=None):
    """The result of a recipe: .fetchall(), .df(), .pl() and .arrow() read it. horizon: 5m, 15m, 1h, 6h or 24h, else the recipe's."""
    if horizon not in (None, "5m", "15m", "1h", "6h", "24h"):
        raise ValueError("horizon is 5m, 15m, 1h, 6h or 24h")
    sql = RECIPES[title]
    return connection.execute(sql if horizon is None else re.sub(r"(?<=SET VARIABLE horizon = ')\w+", horizon, sql))


def main(arguments):
    horizon = None
    if "--horizon" in arguments:
        at = arguments.index("--horizon")
        _, horizon, *rest = arguments[at:]
        arguments = arguments[:at] + rest
    connection = open_lake(arguments[0]) if arguments else open_sample()
    for title in arguments[1:] or RECIPES:
        result = run(connection, title, horizon)
        print(f"\n{title}\n  " + " | ".join(column[0] for column in result.description))
        for row in result.fetchall():
            print("  " + " | ".join(str(value) for value in row))


if __name__ == "__main__":
    main(sys.argv[1:])
