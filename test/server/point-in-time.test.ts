// A submission is checked against what was true at its time, whatever arrives later or with an older or newer timestamp:
// trades, patches, a snapshot from the future, a restart, a replay.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SNAPSHOT_FIELDS } from '../../src/schema/datapoint.ts'
import { SNAPSHOT_COLUMNS } from '../../src/schema/tables.ts'
import { lakeGlob, readSql } from '../store/support.ts'
import { clockOf } from '../support/clock.ts'
import { newMint, submission, submit, VALUES } from '../support/submission.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'

const START_MS = 1_795_000_000_000
const MINUTE_MS = 60_000

type Values = typeof VALUES
const scaled = (factor: number): Values =>
  Object.fromEntries(Object.entries(VALUES).map(([field, value]) => [field, value * factor])) as Values
const LATER = scaled(2)
const ENRICHED = { has_mint_authority: false, unique_wallet_24h: 10 }
const LATER_ENRICHED = { has_mint_authority: true, unique_wallet_24h: 99 }

let nowMs = START_MS
let server: TestServer
let key: string
beforeAll(async () => {
  server = await openTestServer({ 'submit-limits': 'rate=0,cooldown-ms=0' }, { clock: clockOf(() => nowMs) })
  key = await server.client.register()
})
afterAll(() => server.remove())

/** Advances the clock and the market. */
function pass(ms: number): void {
  nowMs += ms
  server.market.advanceTo(nowMs)
}

const patchOf = (mint: string, fields: object, ts = nowMs) => ({ type: 'patch', mint, ts, fields })
const tradeOf = (mint: string, ts: number, priceUsd = 5) => ({
  type: 'trade',
  mint,
  ts,
  side: 'buy',
  tokenAmount: 1e6,
  priceUsd,
})

async function seeded(): Promise<string> {
  const mint = newMint()
  await server.client.push(
    { type: 'token', mint, ts: nowMs, name: 'Seed', symbol: 'SEED' },
    patchOf(mint, { ...VALUES, ...ENRICHED }),
  )
  return mint
}

async function send(mint: string, snapshot?: object): Promise<string> {
  const answer = await submit(
    server.client,
    key,
    submission(mint, snapshot === undefined ? {} : { snapshot }),
  )
  expect(answer.status, answer.text).toBe(201)
  return answer.body.analysisId
}

interface Features {
  values: Record<string, unknown>
  enriched: Record<string, unknown>
  submittedAtMs: number
  snapshotAtMs: number
}

/** The features as researchers read them. */
async function featuresOf(...ids: string[]): Promise<Features[]> {
  await server.store.flushLake()
  const rows = await readSql(
    `SELECT *, epoch_ms(submitted_at)::DOUBLE AS submitted_ms, epoch_ms(snapshot_at)::DOUBLE AS snapshot_ms,
       unique_wallet_24h::INT AS wallets FROM ${lakeGlob(server.dataDir, 'training')}`,
  )
  return ids.map((id) => {
    const row = rows.find(({ analysis_id }) => analysis_id === id)!
    return {
      values: Object.fromEntries(SNAPSHOT_FIELDS.map((field) => [field, row[SNAPSHOT_COLUMNS[field].name]])),
      enriched: { has_mint_authority: row.has_mint_authority, unique_wallet_24h: row.wallets },
      submittedAtMs: row.submitted_ms as number,
      snapshotAtMs: row.snapshot_ms as number,
    }
  })
}

const known = (values: object, enriched: object, submittedAtMs: number, snapshotAtMs = submittedAtMs) => ({
  values,
  enriched,
  submittedAtMs,
  snapshotAtMs,
})

test('events that arrive after a submission are not in its features, whatever their timestamps', async () => {
  const atMs = nowMs
  const mints = await Promise.all([seeded(), seeded(), seeded(), seeded(), seeded()])
  const ids = await Promise.all(mints.map((mint) => send(mint)))
  const [young, old, ancient, patched, events] = mints
  pass(1)
  await server.client.push(
    tradeOf(young, nowMs),
    tradeOf(old, atMs - 1),
    tradeOf(ancient, atMs - 10 * MINUTE_MS),
    patchOf(patched, { ...LATER, ...LATER_ENRICHED }, atMs - MINUTE_MS),
    { type: 'graduated', mint: events, ts: atMs - 1 },
    { type: 'token', mint: events, ts: atMs - 1, name: 'Other', symbol: 'OTHER', totalSupply: 1 },
  )
  const before = ids.map(() => known(VALUES, ENRICHED, atMs))
  expect(await featuresOf(...ids)).toEqual(before)
  // The server has accepted all of these events.
  const now = await Promise.all(mints.map((mint) => server.client.get(`/api/v1/datapoint?mint=${mint}`)))
  expect(now.map(({ body }) => body.data.priceUsd)).toEqual([5, 5, 5, LATER.priceUsd, VALUES.priceUsd])
  expect(now[4].body.data.bondingProgress).toBe(100)
  server = await server.restart()
  await server.client.push(
    patchOf(patched, { ...LATER, ...LATER_ENRICHED }, atMs - MINUTE_MS),
    tradeOf(old, atMs - 1),
  )
  expect(await featuresOf(...ids)).toEqual(before)
})

test('a snapshot with a time in the future is compared with what is known now', async () => {
  const mint = await seeded()
  const atMs = nowMs
  const promised = { ...VALUES, priceUsd: 0.0011, marketCap: 1_100_000 }
  const id = await send(mint, { ...promised, snapshotAt: atMs + 20_000 })
  pass(20_000)
  await server.client.push(patchOf(mint, promised))
  expect(await featuresOf(id)).toEqual([known(VALUES, ENRICHED, atMs)])
})

test('an older snapshot is compared with what was known at its time, not with a later, backdated patch', async () => {
  const mint = await seeded()
  const readAtMs = nowMs
  pass(MINUTE_MS)
  await server.client.push(patchOf(mint, LATER, readAtMs - 10_000))
  pass(1_000)
  const id = await send(mint, { ...VALUES, snapshotAt: readAtMs })
  expect(await featuresOf(id)).toEqual([known(VALUES, ENRICHED, nowMs, readAtMs)])
})

test('a submission that races with a change has all values from before it or all from after it', async () => {
  const mint = await seeded()
  const atMs = nowMs
  const ids = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      if (i === 10) await server.client.push(patchOf(mint, { ...LATER, ...LATER_ENRICHED }))
      return send(mint)
    }),
  )
  const before = known(VALUES, ENRICHED, atMs)
  const after = known(LATER, LATER_ENRICHED, atMs)
  for (const features of await featuresOf(...ids))
    expect(features).toEqual(features.values.priceUsd === VALUES.priceUsd ? before : after)
})

test('an outcome is in the lake once its horizon is over, and not before', async () => {
  const mint = await seeded()
  await server.client.push(tradeOf(mint, nowMs))
  const id = await send(mint)
  const atMs = nowMs
  const outcomes = async () => {
    await server.store.bars.flush()
    await server.store.flushLake()
    await server.store.flushLake()
    return readSql(
      `SELECT labelled_to, epoch_ms(label_available_at)::DOUBLE AS available, epoch_ms(known_at)::DOUBLE AS known
       FROM lake.outcomes WHERE analysis_id = '${id}'`,
      `ATTACH '${server.dataDir}/lake/catalog.duckdb' AS lake (READ_ONLY)`,
    )
  }
  const passTo = async (ms: number) => {
    pass(atMs + ms - nowMs)
    // The bars up to that time have been emitted.
    await expect.poll(() => server.market.barsEmittedToMs).toBe(nowMs - 15_000)
  }
  await passTo(5 * MINUTE_MS + 60_000)
  expect(await outcomes()).toEqual([])
  await passTo(5 * MINUTE_MS + 60_000 + 15_000)
  expect(await outcomes()).toEqual([
    { labelled_to: '5m', available: atMs + 6 * MINUTE_MS, known: atMs + 6 * MINUTE_MS + 15_000 },
  ])
})

test('a return is relative to the price at submission, not to that of the snapshot', async () => {
  const mint = await seeded()
  await server.client.push(tradeOf(mint, nowMs, 5))
  const { priceUsd, snapshotAt } = (await server.client.get(`/api/v1/datapoint?mint=${mint}`)).body.data
  pass(4 * MINUTE_MS)
  await server.client.push(tradeOf(mint, nowMs, 20))
  const id = await send(mint, { priceUsd, snapshotAt })
  const atMs = nowMs
  pass(2 * MINUTE_MS)
  await server.client.push(tradeOf(mint, nowMs, 25))
  pass(atMs + 6 * MINUTE_MS + 15_000 - nowMs)
  await expect.poll(() => server.market.barsEmittedToMs).toBe(nowMs - 15_000)
  await server.store.bars.flush()
  await server.store.flushLake()
  await server.store.flushLake()
  const rows = await readSql(
    `SELECT price_usd, price_at_submission_usd, base_price_usd, fwd_ret_5m
     FROM lake.training JOIN lake.outcomes USING (analysis_id) WHERE analysis_id = '${id}'`,
    `ATTACH '${server.dataDir}/lake/catalog.duckdb' AS lake (READ_ONLY)`,
  )
  expect(rows).toEqual([{ price_usd: 5, price_at_submission_usd: 20, base_price_usd: 20, fwd_ret_5m: 0.25 }])
})
