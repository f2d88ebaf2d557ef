// Without any key the training rows have wallets and volumes from the server's own trades: those that DuckDB computes from the lake.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lakeGlob, readSql } from '../store/support.ts'
import { SteppedClock } from '../support/clock.ts'
import { newMint, submission, submit } from '../support/submission.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'

const START_MS = Date.UTC(2026, 3, 2, 10, 7, 30)
const [MINUTE_MS, HOUR_MS, DAY_MS] = [60_000, 3_600_000, 86_400_000]
const FIELDS = ['unique_wallet_1h', 'unique_wallet_24h', 'buy_volume_24h_usd', 'sell_volume_24h_usd'] as const

let clock: SteppedClock
let server: TestServer
let key: string
beforeAll(async () => {
  clock = new SteppedClock(START_MS)
  server = await openTestServer({ 'submit-limits': 'rate=0,cooldown-ms=0' }, { clock })
  key = await server.client.register()
})
afterAll(() => server.remove())

function pass(ms: number): void {
  clock.pass(ms)
  server.market.advanceTo(clock.wallMs)
}

let trades = 0
const tradeOf = (mint: string, wallet: string, ageMs = 0) => ({
  ...{ type: 'trade', mint, ts: clock.wallMs - ageMs, side: trades++ % 3 === 0 ? 'sell' : 'buy' },
  ...{ tokenAmount: 10 + (trades % 7), priceUsd: 0.1 + (trades % 11) / 100, wallet },
})
const launch = (mint: string) =>
  server.client.push({ type: 'token', mint, ts: clock.wallMs, name: 'Own', symbol: 'OWN' })

async function send(mint: string): Promise<string> {
  const answer = await submit(server.client, key, submission(mint))
  expect(answer.status, answer.text).toBe(201)
  return answer.body.analysisId
}

/** A row's four fields, and what the recorded trades say of the windows that they are of. */
async function compared(id: string) {
  await server.store.flushLake()
  const [training, recorded] = ['training', 'trades'].map((table) => lakeGlob(server.dataDir, table))
  const [row] = await readSql(`
    WITH mine AS (SELECT *, epoch_ms(submitted_at) AS at_ms FROM ${training} WHERE analysis_id = '${id}'),
    since AS (SELECT *, at_ms // 60000 * 60000 - 3540000 AS hour_ms, at_ms // 900000 * 900000 - 85500000 AS day_ms FROM mine)
    SELECT any_value(s.unique_wallet_1h)::DOUBLE AS unique_wallet_1h, any_value(s.unique_wallet_24h)::DOUBLE AS unique_wallet_24h,
      any_value(s.buy_volume_24h_usd) AS buy_volume_24h_usd, any_value(s.sell_volume_24h_usd) AS sell_volume_24h_usd,
      count(DISTINCT wallet) FILTER (epoch_ms(ts) >= hour_ms)::DOUBLE AS wallets_1h, count(DISTINCT wallet)::DOUBLE AS wallets_24h,
      coalesce(sum(volume_usd) FILTER (side = 'buy'), 0) AS bought, coalesce(sum(volume_usd) FILTER (side = 'sell'), 0) AS sold
    FROM since s JOIN ${recorded} t ON t.mint = s.mint AND epoch_ms(t.ts) >= day_ms AND t.at <= s.submitted_at`)
  return {
    stored: FIELDS.map((field) => row[field] as number | null),
    computed: [row.wallets_1h, row.wallets_24h, row.bought, row.sold] as number[],
  }
}

/** Sums of doubles depend on their order: the engine's are those of bars. */
function expectVolumes({ stored, computed }: Awaited<ReturnType<typeof compared>>): void {
  for (const [index, value] of stored.slice(2).entries()) expect(value).toBeCloseTo(computed[index + 2], 9)
}

test('an hour after its launch, a token’s rows have the wallets and volumes of the recorded trades', async () => {
  const [few, many] = [newMint(), newMint()]
  pass(1_000)
  await launch(few)
  await launch(many)
  for (let minute = 0; minute < 75; minute += 5) {
    pass(5 * MINUTE_MS)
    const late = minute % 2 === 0 ? 3_000 : 0
    await server.client.push(
      ...Array.from({ length: 3 }, (_, index) => tradeOf(few, `w${(minute + index * 7) % 29}`)),
      ...Array.from({ length: 40 }, (_, index) => tradeOf(many, `w${minute * 6 + index}`)),
      tradeOf(few, `late ${minute}`, late),
    )
  }
  const [exact, estimated] = [await compared(await send(few)), await compared(await send(many))]
  expect(exact.stored.slice(0, 2)).toEqual(exact.computed.slice(0, 2))
  expectVolumes(exact)
  expect(estimated.computed[0]).toBeGreaterThan(300)
  for (const [index, value] of estimated.stored.entries())
    expect(Math.abs((value ?? Number.NaN) / estimated.computed[index] - 1)).toBeLessThan(
      index < 2 ? 0.06 : 1e-9,
    )
  const { body } = await server.client.get(`/api/v1/datapoint?mint=${few}`)
  expect(FIELDS.map((field) => body.data[field])).toEqual(exact.stored)
  expect(body.data.enriched_source).toBe('trades')
})

test('a stop leaves them unknown to tokens of before, until the windows are covered, and not to later ones', {
  tags: 'drill',
}, async () => {
  const [before, after] = [newMint(), newMint()]
  await launch(before)
  await server.client.push(tradeOf(before, 'a'))
  server = await server.restart()
  pass(1_000)
  await launch(after)
  await server.client.push(tradeOf(before, 'b'), tradeOf(after, 'c'), tradeOf(after, 'd'))
  expect((await compared(await send(before))).stored).toEqual([null, null, null, null])
  const young = await compared(await send(after))
  expect(young.stored.slice(0, 2)).toEqual([2, 2])
  expectVolumes(young)
  pass(HOUR_MS)
  await server.client.push(tradeOf(before, 'e'))
  expect((await compared(await send(before))).stored).toEqual([1, null, null, null])
  pass(DAY_MS)
  await server.client.push(tradeOf(before, 'f'))
  const covered = await compared(await send(before))
  expect(covered.stored.slice(0, 2)).toEqual([1, 1])
  expectVolumes(covered)
})
