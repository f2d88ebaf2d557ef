// Recorded events on their way from a journal into files of the lake.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { MarketEvent } from '../../../src/schema/event.ts'
import { withLakeReader } from '../../../src/store/query/lake-reader.ts'
import { findEvents, listRuns } from '../../../src/store/query/recorded-events.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { allEvents } from '../../support/lake/all-events.ts'
import { lakeGlob, NOON_MS, readSql, removeFolder, temporaryFolder } from '../support.ts'
import { MINT, openWorld, trade, type World } from './world.ts'

const DAY_MS = 86_400_000
let dataDir: string
let world: World

beforeEach(async () => {
  dataDir = temporaryFolder()
  world = await openWorld(dataDir)
})
afterEach(async () => {
  await world.close()
  removeFolder(dataDir)
})

const solPrice = (usd: number): MarketEvent => ({ type: 'solPrice', ts: NOON_MS, usd, source: 'birdeye' })
const rows = (table: string, columns = '*') =>
  readSql(`SELECT ${columns} FROM ${lakeGlob(dataDir, table)} ORDER BY event_no`)

async function readBack(): Promise<number[]> {
  const found: number[] = []
  for await (const batch of allEvents(dataDir)) found.push(...batch.map(({ eventNo }) => eventNo))
  return found
}

async function expectVerified(): Promise<void> {
  await world.close()
  expect(await verifyLake({ dataDir, nowMs: NOON_MS })).toMatchObject({ scope: 'whole', findings: [] })
  world = await openWorld(dataDir, { journal: world.journal })
}

test('a trade becomes a row with what was sent and with the prices of the engine', async () => {
  world.journal.append([solPrice(150), trade({ wallet: 'w', tx: 't', ts: NOON_MS - 1 })])
  await world.flush(NOON_MS + 5)
  const [row] = await rows('trades', '* EXCLUDE (dt)')
  expect(row).toEqual({
    event_no: 2n,
    ...{ at: new Date(NOON_MS), received_at: new Date(NOON_MS - 3), ts: new Date(NOON_MS - 1) },
    ...{ mint: MINT, side: 'buy', token_amount: 4, sol_amount: 1, price_usd: 37.5, price_sol: 0.25 },
    ...{ volume_usd: 150, v_sol: null, v_tokens: null, wallet: 'w', tx: 't', feed: 'push' },
    ...{ reported_price_usd: null, sol_price_usd: 150, known_at: new Date(NOON_MS + 5) },
    ...{
      simulated: null,
      schema_version: 5,
      ...{ quote_mint: null, quote_amount: null, v_quote: null, quote_reserve: null },
      ...{ curve_tokens: null, slot: null, event_index: null },
    },
  })
})

test('a trade on the curve has the price of its reserves, one with a price in USD that price', async () => {
  const [vSol, vTokens] = [32.19, 1_000_000_000]
  world.journal.append([
    trade({ vSol, vTokens, side: 'sell' }),
    trade({ solAmount: undefined, priceUsd: 3 }),
    trade({ vSol: 1, vTokens: 2 }),
  ])
  await world.flush()
  expect(await rows('trades', 'side, price_usd, price_sol, reported_price_usd, v_sol, sol_amount')).toEqual([
    {
      side: 'sell',
      price_usd: (vSol / vTokens) * 150,
      price_sol: vSol / vTokens,
      reported_price_usd: null,
      v_sol: vSol,
      sol_amount: 1,
    },
    { side: 'buy', price_usd: 3, price_sol: 0.02, reported_price_usd: 3, v_sol: null, sol_amount: null },
    { side: 'buy', price_usd: 37.5, price_sol: 0.25, reported_price_usd: null, v_sol: 1, sol_amount: 1 },
  ])
})

test('a request that comes while another is carried out, since its caller gave up, is answered when that has ended', async () => {
  world.journal.append([trade(), trade(), trade()])
  expect(await Promise.all([world.ask(), world.ask()])).toEqual([3, 3])
  expect(await readBack()).toEqual([1, 2, 3])
})

test('every other event becomes a row with all of it as JSON', async () => {
  const patch: MarketEvent = {
    type: 'patch',
    mint: MINT,
    ts: NOON_MS - 7,
    fields: { holderCount: null, liquidity: 1e-9 },
  }
  world.journal.append([patch, solPrice(150.25)])
  await world.flush()
  expect(await rows('events', 'event_no, ts, kind, mint, feed, data')).toEqual([
    {
      event_no: 1n,
      ts: new Date(NOON_MS - 7),
      kind: 'patch',
      mint: MINT,
      feed: 'push',
      data: JSON.stringify(patch),
    },
    {
      event_no: 2n,
      ts: new Date(NOON_MS),
      kind: 'solPrice',
      mint: null,
      feed: 'push',
      data: JSON.stringify(solPrice(150.25)),
    },
  ])
})

const run = (runId: string, simulated: boolean): MarketEvent => ({
  type: 'run',
  ts: NOON_MS,
  firstSeq: 7,
  header: {
    ...{ runId, simulated, version: '1', formatVersion: 1, node: 'v22', feeds: ['push'] },
    settings: { tokensMax: 1, newWindowMs: 1, solPriceMaxAgeMs: 0, barsPerTokenMax: 1, versionsMax: 1 },
    ...{ checkpointEventNo: null, startedAtMs: NOON_MS },
  },
})

test('a run begins with its header, and its rows say whether it was simulated', async () => {
  world.journal.append([trade(), run('one', true), trade()], NOON_MS)
  await world.flush()
  world.journal.append([trade(), run('two', false), solPrice(1), trade()], (index) => NOON_MS + index)
  await world.flush()
  expect((await rows('trades', 'event_no, simulated')).map(({ simulated }) => simulated)).toEqual([
    null,
    true,
    true,
    false,
  ])
  expect((await rows('events', 'event_no, simulated')).map(({ simulated }) => simulated)).toEqual([
    true,
    false,
    false,
  ])
  const inLake = <Result>(read: (connection: DuckDBConnection) => Promise<Result>) =>
    withLakeReader({ dataDir }, ({ connection }) => read(connection))
  expect(await inLake(listRuns)).toMatchObject([
    { eventNo: 2, atMs: NOON_MS, event: { firstSeq: 7, header: { runId: 'one' } } },
    { eventNo: 5, atMs: NOON_MS + 1, event: { header: { runId: 'two' } } },
  ])
  expect(await inLake((connection) => findEvents(connection, NOON_MS + 1, NOON_MS + 2))).toEqual({
    from: 5,
    to: 6,
  })
  expect(await inLake((connection) => findEvents(connection, NOON_MS + 9, NOON_MS + 10))).toBeNull()
})

describe('the sequence', () => {
  test('has each number in one of the two tables, however often it is flushed and merged', {
    tags: 'drill',
  }, async () => {
    for (let flush = 0; flush < 20; flush++) {
      world.journal.append([trade(), solPrice(150 + flush), trade()])
      if (flush % 3 === 0) world.journal.append([trade()])
      await world.flush()
      await world.flush()
    }
    await world.compact()
    expect(await readBack()).toEqual(world.journal.recorded.map(({ eventNo }) => eventNo))
    expect(readdirSync(join(dataDir, 'lake/trades/dt=2025-06-01'))).toHaveLength(1)
    await expectVerified()
  })

  test('goes on across dates, also where a later run has earlier times', { tags: 'drill' }, async () => {
    const days = [0, 1, 1, 2, 0, 0, 1]
    world.journal.append(
      days.map((_, index) => (index % 2 === 0 ? trade() : solPrice(index + 1))),
      (index) => NOON_MS + days[index] * DAY_MS,
    )
    await world.flush()
    world.journal.append([trade(), solPrice(9)], NOON_MS)
    await world.flush()
    await world.compact()
    expect(await readBack()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(readdirSync(join(dataDir, 'lake/trades')).sort()).toEqual(['dt=2025-06-01', 'dt=2025-06-02'])
    await expectVerified()
  })

  test('goes on where it was when a lake is opened again', async () => {
    world.journal.append([trade(), solPrice(1)])
    await world.flush()
    await world.close()
    world = await openWorld(dataDir, { journal: world.journal })
    world.journal.append([trade()])
    expect(await world.flush()).toMatchObject({ eventNo: 3 })
    expect(await readBack()).toEqual([1, 2, 3])
  })

  test('is larger than a slice', { tags: 'drill', timeout: 30_000 }, async () => {
    const batches = 70
    for (let batch = 0; batch < batches; batch++)
      world.journal.append(
        Array.from({ length: 4_096 }, (_, index) => (index % 1_000 === 0 ? solPrice(1) : trade())),
      )
    await world.flush()
    expect((await readBack()).length).toBe(batches * 4_096)
    const files = await readSql(
      `SELECT count(DISTINCT filename)::INT AS files FROM read_parquet('${dataDir}/lake/trades/*/*.parquet', filename=true)`,
    )
    expect(files).toEqual([{ files: 3 }])
    // They are listed one after another: who reads on from the first must find the second.
    const times = await rows('trades', 'DISTINCT ON (known_at) known_at, event_no')
    expect(times.map(({ known_at }) => known_at)).toEqual([0, 1, 2].map((slice) => new Date(NOON_MS + slice)))
    await expectVerified()
  })
})

describe('what is lost', () => {
  test('in the journal is noted, told, and passed over', async () => {
    world.journal.append([trade(), trade()])
    world.journal.skip(3)
    world.journal.append([solPrice(2)])
    world.journal.damage = [
      { kind: 'invalid_bytes', file: 'x.journal', fromByte: 1, toByte: 9, missing: { from: 3, to: 5 } },
    ]
    expect(await world.flush()).toMatchObject({ eventNo: 6, damage: world.journal.damage })
    expect(world.trouble?.eventsLost).toBe(3)
    await expect(readBack()).rejects.toThrow('the lake does not have the events 3 to 5')
    await world.close()
    const { findings } = await verifyLake({ dataDir, nowMs: NOON_MS })
    expect(findings.map(({ message }) => message)).toEqual([
      'recorded events 3 to 5 are lost: the journal is damaged: invalid bytes in x.journal; see mintlake lake repair',
    ])
    world = await openWorld(dataDir)
  })

  test('at the end of the journal is passed over where damage says so, and else waited for', {
    tags: 'drill',
  }, async () => {
    world.journal.append([trade()])
    await world.flush()
    world.journal.skip(2)
    world.journal.damage = [
      { kind: 'missing', file: null, fromByte: 0, toByte: 0, missing: { from: 2, to: 3 } },
    ]
    expect(await world.flush()).toMatchObject({ eventNo: 3 })
    world.journal.append([trade()])
    await world.flush()
    await world.close()
    const { findings } = await verifyLake({ dataDir, nowMs: NOON_MS })
    expect(findings).toHaveLength(1)
    world = await openWorld(dataDir)
  })

  test('because it fits no row becomes a dead letter', async () => {
    world.journal.append([trade(), trade({ ts: 0.5 }), trade({ tokenAmount: Number.NaN }), trade()])
    await world.flush()
    expect(await rows('trades', 'event_no')).toEqual([{ event_no: 1n }, { event_no: 4n }])
    const dead = readFileSync(join(dataDir, 'dead-letters/trades.2025-06-01.ndjson'), 'utf8')
      .trimEnd()
      .split('\n')
    expect(dead.map((line) => JSON.parse(line).eventNo)).toEqual([2, 3])
    expect(world.trouble?.eventsLost).toBe(2)
  })
})

test('nothing is written where nothing is new', async () => {
  expect(await world.flush()).toMatchObject({ eventNo: 0, retainedFrom: 1 })
  expect(existsSync(join(dataDir, 'lake/trades/dt=2025-06-01'))).toBe(false)
})
