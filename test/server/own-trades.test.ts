// Without any key the training rows have wallets and volumes from the server's own trades: those that DuckDB computes from the lake,
// whatever was traded, and when, through late trades, gaps and restarts.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import { WALLETS_EXACT_MAX } from '../../src/market/bars/limits.ts'
import { lakeGlob, readSql } from '../store/support.ts'
import { fewAndMany } from '../support/cases.ts'
import { SteppedClock } from '../support/clock.ts'
import { newMint, submission, submit } from '../support/submission.ts'
import { FEED_KEY, openTestServer, type TestServer } from '../support/test-server.ts'

/** The end of a quarter of an hour. */
const START_MS = Date.UTC(2026, 3, 2, 10, 15)
const FIELDS = ['unique_wallet_1h', 'unique_wallet_24h', 'buy_volume_24h_usd', 'sell_volume_24h_usd'] as const
/** What is promised of estimates. */
const ERROR_MAX = 0.06

/** How many wallets trade a token: a few, about as many as are counted exactly, and many more. */
const POOLS = [3, 30, 64, 66, 150, 1_500, 40, 90, 400]
const ROUNDS = 12
const burst = fc.record({
  round: fc.nat(ROUNDS - 1),
  trades: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 50, max: 90 }), fc.constant(500)),
  firstWallet: fc.nat(10_000),
  /** By the trade's place in the burst: bits that say which are buys; and of every other one how late it is. */
  buys: fc.nat(255),
  lateMs: fc.constantFrom(0, 1, SECOND_MS, 4_999, 7_000),
  tokenAmount: fc.constantFrom(0.001, 12.5, 4e6),
  priceUsd: fc.constantFrom(3e-9, 0.1, 7),
})
const history = fc.record({ launchedIn: fc.nat(ROUNDS - 4), bursts: fc.array(burst, { maxLength: 7 }) })
const interruption = fc.constantFrom('gap', 'healed gap', 'restart', 'healed restart')
/** Steps between which a trade is at the edge of a window, or just behind it. */
const step = fc.constantFrom(
  ...[0, 1, SECOND_MS, MINUTE_MS - 1, MINUTE_MS, 14 * MINUTE_MS, 15 * MINUTE_MS - 1],
  ...[HOUR_MS - MINUTE_MS, HOUR_MS - 1, HOUR_MS, 5 * HOUR_MS, DAY_MS - 15 * MINUTE_MS, DAY_MS - 1],
)
const days = fc.record({
  tokens: fc.tuple(...POOLS.map(() => history)),
  rounds: fc.array(fc.record({ step, isChecked: fc.boolean() }), { minLength: ROUNDS, maxLength: ROUNDS }),
  interrupted: fc.array(fc.record({ round: fc.integer({ min: 1, max: ROUNDS - 1 }), kind: interruption }), {
    maxLength: 2,
  }),
  restart: fc.constantFrom('restart', 'healed restart', 'healed restart'),
})
type Days = typeof days extends fc.Arbitrary<infer Value> ? Value : never
type Interruption = Days['interrupted'][number]['kind']
type Burst = Record<Exclude<keyof Days['tokens'][number]['bursts'][number], 'round'>, number>

let clock: SteppedClock
let server: TestServer
let key: string
beforeAll(async () => {
  clock = new SteppedClock(START_MS)
  server = await openTestServer({ 'submit-limits': 'rate=0,cooldown-ms=0', 'log-level': 'error' }, { clock })
  key = await server.client.register()
})
afterAll(() => server.remove())

function pass(ms: number): void {
  clock.pass(ms)
  server.market.advanceTo(clock.wallMs)
}

/** Those that are refused because they are too late are in no table. */
async function push(records: readonly object[]): Promise<void> {
  const lines = records.map((record) => JSON.stringify(record)).join('\n')
  const headers = { 'Content-Type': 'application/x-ndjson', Authorization: `Bearer ${FEED_KEY}` }
  const { body } = await server.client.request('POST', '/api/v1/ingest', lines, headers)
  for (const { code } of body.errors) expect(code).toBe('late')
}

class Token {
  readonly mint = newMint()
  readonly launchedAtMs = clock.wallMs
  readonly #pool: number

  constructor(pool: number) {
    this.#pool = pool
  }

  launch(): object {
    return { type: 'token', mint: this.mint, ts: this.launchedAtMs, name: 'Own', symbol: 'OWN' }
  }

  trades({ trades, firstWallet, buys, lateMs, tokenAmount, priceUsd }: Burst): object[] {
    return Array.from({ length: trades }, (_, index) => ({
      ...{ type: 'trade', mint: this.mint, side: (buys >> (index % 8)) & 1 ? 'buy' : 'sell' },
      ts: Math.max(this.launchedAtMs, clock.wallMs - (index % 2) * lateMs),
      ...{ tokenAmount: tokenAmount * (1 + (index % 7)), priceUsd },
      wallet: `w${(firstWallet + index) % this.#pool}`,
    }))
  }
}
const ONE = { trades: 1, firstWallet: 0, buys: 1, lateMs: 0, tokenAmount: 1, priceUsd: 1 }

/** What a run of days was like so far. */
class Run {
  readonly tokens: Token[] = []
  /** Until when something is missing that nobody will send. */
  #goneUntilMs = 0
  /** By analysis: what is known of it beside its row. */
  readonly checks = new Map<string, { of: string; told: (number | null)[]; areKnown: boolean[] }>()

  async interrupt(kind: Interruption): Promise<void> {
    const isHealed = kind.startsWith('healed')
    const healing = { sinceMs: clock.wallMs, healUntilMs: clock.wallMs + 10 * MINUTE_MS }
    if (kind !== 'restart') await push([{ type: 'disconnect', ts: clock.wallMs, ...(isHealed && healing) }])
    if (kind.endsWith('restart')) server = await server.restart()
    if (kind === 'restart') this.#goneUntilMs = clock.wallMs
    pass(90 * SECOND_MS)
    if (kind === 'restart') return
    // What was missed: too late unless it is waited for.
    await push(this.tokens.flatMap((token) => token.trades({ ...ONE, trades: 2, lateMs: 70 * SECOND_MS })))
    await push([{ type: 'reconnect', ts: clock.wallMs, ...(isHealed && { healed: true }) }])
    if (!isHealed) this.#goneUntilMs = clock.wallMs
  }

  /** Submits an analysis of each token. */
  async check(): Promise<void> {
    const hourMs = Math.floor(clock.wallMs / MINUTE_MS) * MINUTE_MS - HOUR_MS + MINUTE_MS
    const dayMs = Math.floor(clock.wallMs / (15 * MINUTE_MS)) * 15 * MINUTE_MS - DAY_MS + 15 * MINUTE_MS
    for (const { mint, launchedAtMs } of this.tokens) {
      const { body } = await server.client.get(`/api/v1/datapoint?mint=${mint}`)
      const answer = await submit(server.client, key, submission(mint))
      expect(answer.status, answer.text).toBe(201)
      const areKnown = [hourMs, dayMs, dayMs, dayMs].map(
        (fromMs) => Math.max(fromMs, launchedAtMs) > this.#goneUntilMs,
      )
      expect(body.data.enriched_source).toBe(areKnown.includes(true) ? 'trades' : null)
      const told = FIELDS.map((field) => body.data[field])
      const of = `${mint}, launched at ${launchedAtMs}, at ${clock.wallMs}`
      this.checks.set(answer.body.analysisId, { of, told, areKnown })
    }
  }

  /** The rows' fields, and what the recorded trades say of the windows that they are of. */
  async compared() {
    await server.store.flushLake()
    const [training, recorded] = ['training', 'trades'].map((table) => lakeGlob(server.dataDir, table))
    const ids = [...this.checks.keys()].map((id) => `'${id}'`).join()
    const rows = await readSql(`
      WITH since AS (SELECT *, epoch_ms(submitted_at) AS at_ms, at_ms // 60000 * 60000 - 3540000 AS hour_ms,
        at_ms // 900000 * 900000 - 85500000 AS day_ms FROM ${training} WHERE analysis_id IN (${ids}))
      SELECT s.analysis_id AS id, ${FIELDS.map((field) => `any_value(s.${field})::DOUBLE AS ${field}`).join()},
        count(DISTINCT wallet) FILTER (epoch_ms(ts) >= hour_ms)::DOUBLE AS wallets_1h, count(DISTINCT wallet)::DOUBLE AS wallets_24h,
        coalesce(sum(volume_usd) FILTER (side = 'buy'), 0) AS bought, coalesce(sum(volume_usd) FILTER (side = 'sell'), 0) AS sold
      FROM since s LEFT JOIN ${recorded} t ON t.mint = s.mint AND epoch_ms(t.ts) >= day_ms AND t.at <= s.submitted_at
      GROUP BY s.analysis_id`)
    expect(rows).toHaveLength(this.checks.size)
    return rows.map((row) => ({
      ...this.checks.get(row.id as string)!,
      stored: FIELDS.map((field) => row[field] as number | null),
      computed: [row.wallets_1h, row.wallets_24h, row.bought, row.sold] as number[],
    }))
  }
}

async function live({ tokens, rounds, interrupted, restart }: Days): Promise<Run> {
  const run = new Run()
  const launched = new Map<number, Token>()
  for (const [round, { step, isChecked }] of rounds.entries()) {
    // The lake does not tell which of a millisecond came before a submission in it.
    pass(step === 0 && rounds[round - 1]?.isChecked ? 1 : step)
    for (const { kind } of interrupted.filter((each) => each.round === round)) await run.interrupt(kind)
    if (round === ROUNDS / 2) {
      await server.checkpoint()
      await run.interrupt(restart)
    }
    const records: object[] = []
    for (const [index, { launchedIn, bursts }] of tokens.entries()) {
      if (launchedIn === round) {
        const token = new Token(POOLS[index])
        launched.set(index, token)
        run.tokens.push(token)
        records.push(token.launch(), ...token.trades(ONE))
      }
      const token = launched.get(index)
      for (const burst of bursts) if (burst.round === round) records.push(...(token?.trades(burst) ?? []))
    }
    if (records.length > 0) await push(records)
    if (isChecked || round === ROUNDS - 1) await run.check()
  }
  return run
}

const seen = { exact: 0, estimated: 0, unknown: 0 }
for (const { runs, tags } of fewAndMany(1, 12))
  it(`wallets and volumes are those of the recorded trades, and unknown where some are missing, ${runs} runs of days`, {
    tags,
    timeout: 600_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(days, async (those) => {
        // Windows of an earlier run are over, and so are its gaps.
        pass(2 * DAY_MS)
        const run = await live(those)
        for (const { of, told, areKnown, stored, computed } of await run.compared()) {
          expect(told).toEqual(stored)
          for (const [index, value] of stored.entries()) {
            const expected = computed[index]
            const off = Math.abs((value ?? Number.NaN) - expected)
            if (!areKnown[index]) {
              expect(value, of).toBeNull()
              seen.unknown++
            } else if (index < 2 && expected <= WALLETS_EXACT_MAX) {
              expect(value, `${FIELDS[index]} of ${of}`).toBe(expected)
              seen.exact++
            } else if (index < 2) {
              expect(off / expected, `${FIELDS[index]} of ${of}`).toBeLessThan(ERROR_MAX)
              seen.estimated++
            } else {
              // Sums of doubles: the engine's are those of bars, in their order, and its sells are all trades without the buys.
              const [, , bought, sold] = computed
              expect(off, `${FIELDS[index]} of ${of}`).toBeLessThanOrEqual(1e-12 * (bought + sold))
            }
          }
        }
      }),
      // Smaller ones of many tokens would take as long each.
      { numRuns: runs, endOnFailure: true },
    )
    if (runs > 1) for (const count of Object.values(seen)) expect(count).toBeGreaterThan(0)
  })
