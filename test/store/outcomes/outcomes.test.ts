// Outcomes of a seeded market over more than two days, with dead tokens, gaps and a restart, compared with an oracle that
// computes them from the trades.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { random as seeded } from '../../../bench/datasets/random.ts'
import { createLog } from '../../../src/lib/log.ts'
import { Market } from '../../../src/market/market.ts'
import { prepareRecorder } from '../../../src/recording/market-recorder.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import type { Row, Write } from '../../../src/schema/tables.ts'
import { HORIZON_NAMES } from '../../../src/schema/vocabulary.ts'
import type { Store } from '../../../src/store/store.ts'
import { clockOf } from '../../support/clock.ts'
import { openTestStore, readSql, removeFolder, temporaryFolder, writeOf } from '../support.ts'
import { type Expected, outcomesOf, type RawTrade, type Submitted } from './outcome-oracle.ts'

const START_MS = Date.UTC(2025, 5, 1, 20, 13, 7)
const HOUR_MS = 3_600_000
const STEP_MS = 20_000
/** Bars of this age are complete. Labels of horizons that ended before are known a minute later. */
const CLOSING_MS = 15_000
const LABEL_DELAY_MS = 60_000
const SUBMIT_CHANCE = 0.06

let folder: string
let store: Store
let nowMs = START_MS
const clock = clockOf(() => nowMs)
const log = createLog('warn')

beforeEach(async () => {
  folder = temporaryFolder()
  nowMs = START_MS
  store = await openTestStore(folder, { clock })
})
afterEach(async () => {
  await store.close()
  removeFolder(folder)
})

interface Token {
  mint: string
  /** Average trades for each step of time. */
  rate: number
  price: number
  diesAtMs: number
}

const tokens = (): Token[] =>
  [
    ['busy', 0.5, 99],
    ['slow', 0.02, 99],
    ['rare', 0.001, 99],
    ['dies early', 0.2, 5],
    ['dies late', 0.2, 21],
    ['rugs', 0.1, 99],
  ].map(([symbol, rate, hours], index) => ({
    mint: mintOfSymbol(symbol as string),
    rate: rate as number,
    price: 10 ** -index,
    diesAtMs: START_MS + (hours as number) * HOUR_MS,
  }))

const isGap = (hour: number): boolean => (hour >= 9 && hour < 11) || (hour >= 30 && hour < 31)

/** A market whose closed bars go to the store. */
function recordedMarket() {
  const { callbacks, recorderOf } = prepareRecorder(store, log)
  const market = new Market({ tokensMax: 16, ...callbacks })
  return { market, recorder: recorderOf(market) }
}

/** Called to compare outcomes whenever everything known so far is in the lake. */
type Look = (submitted: readonly Submitted[], trades: readonly RawTrade[]) => Promise<void>

async function runMarket(hours: number, restartAtHour: number, looks: readonly number[], look: Look) {
  const random = seeded(7)
  const trades: RawTrade[] = []
  const submitted: Submitted[] = []
  const waiting: Write[] = []
  const world = tokens()
  let { market, recorder } = recordedMarket()

  async function flush(): Promise<void> {
    market.advanceTo(nowMs)
    recorder.emitAllBars()
    await store.commit(waiting.splice(0))
    await store.bars.flush()
    // The second flush writes the outcomes that the first one made known.
    await store.flushLake()
    await store.flushLake()
  }

  async function restart(): Promise<void> {
    await recorder.stop()
    await store.close()
    store = await openTestStore(folder, { clock })
    ;({ market, recorder } = recordedMarket())
  }

  function trade(token: Token): void {
    const rugged = token === world[5] && nowMs > START_MS + 26 * HOUR_MS
    token.price *= rugged ? 0.97 : 0.9 + random() * 0.21
    // Some trades are late, within the grace period.
    const ts = nowMs - (random() < 0.2 ? Math.floor(random() * 4_000) : 0)
    const event = {
      type: 'trade',
      mint: token.mint,
      ts,
      side: 'buy',
      tokenAmount: 3,
      priceUsd: token.price,
    } as const
    if (market.apply(event, nowMs) === null) trades.push(event)
  }

  function submit(): void {
    const { mint } = world[Math.floor(random() * world.length)]
    const priceUsd = random() < 0.15 ? null : (market.snapshot(mint)?.priceUsd ?? null)
    const analysisId = `an_${submitted.length}`
    submitted.push({ analysisId, mint, atMs: nowMs, priceUsd })
    // Not the price that the agent read before.
    const prices = { price_usd: 1 + random(), price_at_submission_usd: priceUsd }
    const cells = { analysis_id: analysisId, mint, submitted_at: nowMs, ...prices }
    waiting.push(writeOf('training', cells))
  }

  for (let hour = 0; hour < hours; hour++) {
    if (hour === restartAtHour) await restart()
    for (let step = 0; step < HOUR_MS / STEP_MS; step++) {
      nowMs += STEP_MS
      for (const token of world) {
        if (!isGap(hour) && nowMs < token.diesAtMs && random() < token.rate) trade(token)
      }
      if (random() < SUBMIT_CHANCE) submit()
    }
    if (!looks.includes(hour)) continue
    await flush()
    await look(submitted, trades)
  }
}

/** The outcomes as the catalog shows them. */
async function outcomes(): Promise<Expected[]> {
  const returns = HORIZON_NAMES.map((name) => `fwd_ret_${name}`).join(', ')
  const rows = await readSql(
    `SELECT analysis_id, base_price_usd, [${returns}] AS fwd_ret, fwd_max_drawdown_24h, dead_24h,
       fwd_trades_24h::DOUBLE AS fwd_trades_24h, epoch_ms(fwd_last_trade_24h)::DOUBLE AS fwd_last_trade_24h,
       watched_minutes_24h FROM lake.outcomes`,
    `ATTACH '${folder}/lake/catalog.duckdb' AS lake (READ_ONLY)`,
  )
  return rows as unknown as Expected[]
}

const byId = (a: Expected, b: Expected): number => (a.analysis_id < b.analysis_id ? -1 : 1)

test('outcomes equal those computed from the trades, with dead tokens, gaps and a restart', {
  tags: 'drill',
  timeout: 120_000,
}, async () => {
  let last: Expected[] = []
  await runMarket(52, 10, [9, 28, 51], async (submitted, trades) => {
    const labelledToMs = nowMs - CLOSING_MS - LABEL_DELAY_MS
    last = outcomesOf(submitted, trades, labelledToMs)
    expect((await outcomes()).sort(byId)).toEqual(last.sort(byId))
  })
  // The market had all these cases, without which the comparison would prove little.
  const over = last.filter(({ dead_24h }) => dead_24h !== null)
  expect(over.filter(({ dead_24h }) => dead_24h).length).toBeGreaterThan(50)
  expect(over.filter(({ dead_24h }) => !dead_24h).length).toBeGreaterThan(50)
  expect(last.filter(({ fwd_ret }) => fwd_ret[2] !== null && fwd_ret[4] === null).length).toBeGreaterThan(50)
  expect(last.some(({ base_price_usd }) => base_price_usd === null)).toBe(true)
})

test('the base price is that at submission, and for schema version 1 the recorded one', async () => {
  const mint = mintOfSymbol('based')
  const trades = (priceUsd: number) =>
    ({ type: 'trade', mint, ts: nowMs, side: 'buy', tokenAmount: 1, priceUsd }) as const
  const { market, recorder } = recordedMarket()
  const rows: Row[] = [
    { analysis_id: 'of today', price_usd: 1, price_at_submission_usd: 2 },
    { analysis_id: 'without a price', price_usd: 1, price_at_submission_usd: null },
    { analysis_id: 'of version 1', price_usd: 1, price_at_submission_usd: null, schema_version: 1 },
  ]
  await store.commit(rows.map((row) => writeOf('training', { mint, submitted_at: nowMs, ...row })))
  nowMs += 2 * 60_000
  market.apply(trades(3), nowMs)
  nowMs += HOUR_MS
  market.advanceTo(nowMs)
  recorder.emitAllBars()
  await store.bars.flush()
  await store.flushLake()
  await store.flushLake()
  const labels = (await outcomes()).map(({ analysis_id, base_price_usd, fwd_ret }) => [
    analysis_id,
    base_price_usd,
    fwd_ret[0],
  ])
  expect(labels.sort()).toEqual([
    ['of today', 2, 0.5],
    ['of version 1', 1, 2],
    ['without a price', null, null],
  ])
})
