// A clock that is wrong before, during or after a run, over the real server: nothing is refused wrongly, nothing is forgotten, and where
// the truth cannot be told, /health says so and one command gets out of it with the market kept.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { TABLES } from '../../src/schema/tables.ts'
import { labelMoments } from '../../src/store/outcomes/label-moments.ts'
import { crashImage } from '../checkpoint/support.ts'
import { lakeGlob, readSql } from '../store/support.ts'
import { SteppedClock } from '../support/clock.ts'
import { expectProblem, seedToken, submission, submit, VALUES } from '../support/submission.ts'
import { runCommand } from '../support/terminal.ts'
import { ADMIN_KEY, openTestServer, type Settings, type TestServer } from '../support/test-server.ts'

const START_MS = 1_900_000_000_000
const SECOND_MS = 1_000
const HOUR_MS = 3_600 * SECOND_MS
const DAY_MS = 24 * HOUR_MS
/** Less and more than anything is remembered for, in either direction. */
const WRONG = [
  ['40 days ahead', 40 * DAY_MS],
  ['an hour behind', -HOUR_MS],
  ['in 1970', 5_000 - START_MS],
] as const
const [KNOWN, OTHER, NEW] = ['known', 'other', 'new'].map(mintOfSymbol) as [string, string, string]

let clock: SteppedClock
let server: TestServer
async function open(settings: Settings = {}): Promise<void> {
  clock = new SteppedClock(START_MS)
  server = await openTestServer(settings, { clock })
}
afterEach(() => server.remove())

const trade = (mint: string, ts: number) =>
  server.client.push({ type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: 2 })
const health = async () => (await server.client.get('/health')).body
const reasons = async () => (await health()).reasons
/** Health is polled: a write that runs while the clock is moved has taken so long, and the disk answers as soon as it has ended. */
const expectReady = () => expect.poll(health).toMatchObject({ status: 'ready', reasons: [] })
const pass = (ms: number): void => {
  clock.pass(ms)
  // Time is looked at, as the server does ten times a second.
  server.market.advanceTo(0)
}
const trust = () => server.client.post('/api/v1/admin/clock/trust', {}, ADMIN_KEY)
const mintlake = (...args: string[]) =>
  runCommand([...args, '--url', server.url], { MINTLAKE_ADMIN_KEY: ADMIN_KEY })

/** Trades of a token that was silent, of an active one and of a new one are taken, and counted in their windows. */
async function expectMarketGoesOn(nowMs: number, known: number): Promise<void> {
  for (const mint of [KNOWN, NEW]) await trade(mint, nowMs)
  expect((await server.client.get(`/api/v1/datapoint?mint=${NEW}`)).body.data).toMatchObject({ volume1m: 2 })
  const { data } = (await server.client.get(`/api/v1/datapoint?mint=${KNOWN}`)).body
  expect(data).toMatchObject({ buys24h: known })
}

test.each(WRONG)('a clock that is %s for 13 seconds of a run', { tags: 'drill' }, async (_, wrongMs) => {
  await open()
  await trade(KNOWN, clock.wallMs)
  pass(20 * SECOND_MS)
  await health()
  clock.step(wrongMs)
  await expect
    .poll(reasons)
    .toEqual([expect.stringMatching(/clock.*: if the clock is right, mintlake clock trust/)])
  for (let second = 0; second < 13; second++) {
    pass(SECOND_MS)
    await trade(OTHER, clock.wallMs - wrongMs)
  }
  clock.step(-wrongMs)
  pass(10 * SECOND_MS)
  await health()
  expect(server.market.stats().lateDropped).toBe(0)
  await expectMarketGoesOn(clock.wallMs, 2)
  await expectReady()
  pass(SECOND_MS)
  server = await server.restart()
  await expectReady()
  pass(20 * SECOND_MS)
  await trade(KNOWN, clock.wallMs)
  expect(server.market.stats().lateDropped).toBe(0)
})

test.each(WRONG.filter(([, wrongMs]) => wrongMs < 0))(
  'a clock that is %s at a start',
  { tags: 'drill' },
  async (_, wrongMs) => {
    await open()
    await trade(KNOWN, clock.wallMs)
    pass(20 * SECOND_MS)
    clock.step(wrongMs)
    server = await server.restart()
    await expect.poll(health).toMatchObject({
      status: 'degraded',
      reasons: [expect.stringMatching(/^market time is [\d ]+ s ahead of the clock: .*mintlake clock trust/)],
    })
    pass(20 * SECOND_MS)
    // By the time that it is.
    await trade(KNOWN, clock.wallMs - wrongMs)
    clock.step(-wrongMs)
    pass(20 * SECOND_MS)
    await expectMarketGoesOn(clock.wallMs, 3)
    await expectReady()
  },
)

test('a clock that is a day ahead at a start: market time goes back on an operator’s word, and stays there', async () => {
  await open()
  await trade(KNOWN, clock.wallMs)
  pass(20 * SECOND_MS)
  clock.step(DAY_MS)
  server = await server.restart()
  expect(server.market.timeMs).toBe(clock.wallMs)
  // Some trades have the wrong time too.
  await trade(OTHER, clock.wallMs)
  pass(SECOND_MS)
  clock.step(-DAY_MS)
  server = await server.restart()
  await expect.poll(health).toMatchObject({
    status: 'degraded',
    reasons: [expect.stringMatching(/^market time is 86 400 s ahead of the clock: /)],
  })
  expect(await mintlake('clock', 'trust')).toMatchObject({
    code: 0,
    out: `market time went 86400 s back: it is ${new Date(clock.wallMs).toISOString()}\n`,
  })
  await expectReady()
  expect(server.market.has(OTHER)).toBe(true)
  pass(20 * SECOND_MS)
  await trade(OTHER, clock.wallMs)
  await expectMarketGoesOn(clock.wallMs, 2)
  server = await server.restart()
  await expectReady()
  expect(server.market.timeMs).toBe(clock.wallMs)
  pass(20 * SECOND_MS)
  for (const mint of [KNOWN, OTHER, NEW]) await trade(mint, clock.wallMs)
  expect(server.market.datapoint(KNOWN)).toMatchObject({ buys24h: 3, volume1h: 6 })
  expect(server.market.datapoint(OTHER)).toMatchObject({ volume1h: 4 })
})

test.each([
  ['applies the recorded events', false],
  ['goes on from a checkpoint', true],
])(
  'what time alone has ended before market time goes back has ended too where a start %s',
  async (_, isSaved) => {
    await open()
    await trade(KNOWN, clock.wallMs)
    const healUntilMs = clock.wallMs + 12 * HOUR_MS
    await server.client.push({ type: 'disconnect', ts: clock.wallMs, healUntilMs })
    pass(DAY_MS)
    // As a tick does, which nothing records.
    server.market.advanceTo(clock.wallMs)
    clock.step(-DAY_MS)
    expect((await trust()).body.data).toMatchObject({ movedMs: -DAY_MS })
    await trade(OTHER, clock.wallMs)
    const { open: lived } = server.market.gaps(9)
    expect(lived).toEqual([expect.not.objectContaining({ healUntilMs })])
    if (isSaved) await server.checkpoint()
    const killed = server
    try {
      server = await openTestServer({}, { clock }, await crashImage(server))
      expect(server.market.gaps(9)).toMatchObject({
        open: [],
        ended: [{ reason: 'downtime' }, { feed: 'push' }],
      })
      expect(server.market.stats().gapsHealing).toBe(0)
      // What had not come to the lake is told again.
      const spans = `SELECT epoch_ms(first_at)::DOUBLE AS "first", epoch_ms(last_at)::DOUBLE AS "last" FROM lake_rewound_spans`
      expect(await rows(spans)).toEqual([{ first: START_MS, last: START_MS + DAY_MS }])
    } finally {
      await killed.remove()
    }
  },
)

test('what an earlier version recorded with a clock that was ahead is told, and settled by the same word', {
  tags: 'drill',
}, async () => {
  await open()
  clock.step(DAY_MS)
  server = await server.restart()
  await trade(KNOWN, clock.wallMs)
  clock.step(-DAY_MS)
  await server.stop()
  // Earlier versions have no such file.
  rmSync(join(server.dataDir, 'clock.json'))
  server = await openTestServer({}, { clock }, server.dataDir)
  await expect.poll(reasons).toEqual([expect.stringMatching(/^market time is 86 400 s ahead of the clock: /)])
  await trust()
  for (let run = 0; run < 2; run++) {
    pass(20 * SECOND_MS)
    await trade(KNOWN, clock.wallMs)
    await expectReady()
    if (run === 0) server = await server.restart()
  }
})

test('what is submitted after market time went back is found, and labelled by the prices that follow', async () => {
  await open()
  clock.step(3 * DAY_MS)
  server = await server.restart()
  const key = await server.client.register()
  const goOn = async (priceUsd: number) => {
    pass(60 * SECOND_MS)
    for (const mint of [KNOWN, OTHER])
      await server.client.push({
        type: 'trade',
        mint,
        ts: clock.wallMs,
        side: 'buy',
        tokenAmount: 1,
        priceUsd,
      })
  }
  const label = async () => {
    // A flush makes the labels that are due, and the next one writes them.
    for (let flush = 0; flush < 2; flush++) await server.store.flushLake()
    return (await server.client.get(`/api/v1/analysis?mint=${OTHER}`)).body.data[0].outcomes.fwd_ret_5m
  }
  for (let minute = 0; minute < 3; minute++) await goOn(2)
  expect((await submit(server.client, key, submission(KNOWN))).status).toBe(201)
  await server.store.flushLake()
  clock.step(-3 * DAY_MS)
  await trust()
  await goOn(2)
  const { status, body } = await submit(server.client, key, submission(OTHER))
  expect(status).toBe(201)
  expect(await label()).toBeNull()
  for (let minute = 0; minute < 8; minute++) await goOn(20)
  await expect.poll(label).toBeCloseTo(9)
  // Not by what the run before remembers.
  server = await server.restart()
  expect((await server.client.get(`/api/v1/analysis/${body.analysisId}`)).status).toBe(200)
})

/** What the lake has by now. */
async function rows(sql: string): Promise<Record<string, unknown>[]> {
  // A flush makes the labels that are due, and the next one writes them.
  for (let flush = 0; flush < 2; flush++) await server.store.flushLake()
  const { out } = await runCommand(['sql', sql, '--format', 'jsonl', '--data-dir', server.dataDir])
  return out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}
/** So many minutes, with a trade at the end of each. */
async function tradeEachMinute(count: number, priceUsd: number): Promise<void> {
  for (let minute = 0; minute < count; minute++) {
    pass(60 * SECOND_MS)
    const of = { mint: KNOWN, ts: clock.wallMs, side: 'buy', tokenAmount: 1 }
    await server.client.push({ type: 'trade', ...of, priceUsd })
  }
}

test.each(['true', 'false'])(
  'of the time that a clock which was ahead had closed no label is made, and no bar is complete, with events=%s',
  async (recorded) => {
    await open({ 'submit-limits': 'rate=0,cooldown-ms=0', record: `events=${recorded}` })
    const key = await server.client.register()
    const labels = () =>
      rows('SELECT fwd_ret_5m IS NULL AS unknown, labelled_to FROM outcomes ORDER BY submitted_at')
    const submitNow = async () =>
      expect((await submit(server.client, key, submission(KNOWN))).status).toBe(201)
    await tradeEachMinute(30, 2)
    await submitNow()
    await server.store.flushLake()
    const aheadMs = clock.wallMs
    clock.step(-20 * 60 * SECOND_MS)
    await trust()
    const trustedMs = clock.wallMs
    await tradeEachMinute(2, 20)
    await submitNow()
    await tradeEachMinute(8, 20)
    await expect.poll(labels).toEqual([{ unknown: true, labelled_to: '5m' }])
    await tradeEachMinute(20, 20)
    await submitNow()
    await tradeEachMinute(8, 20)
    // That of the wrong clock, too: prices of its horizon by the right one are not those that followed it.
    await expect.poll(labels).toEqual([
      { unknown: true, labelled_to: '15m' },
      { unknown: true, labelled_to: '15m' },
      { unknown: false, labelled_to: '5m' },
    ])
    // One that was open when market time went back closed by the right clock.
    const ofMinute = `SELECT DISTINCT epoch_ms(t) + 60000 > ${aheadMs} AS later, complete FROM bars WHERE tf = '1m'`
    expect(await rows(`${ofMinute} AND epoch_ms(t) >= ${trustedMs} ORDER BY 1`)).toEqual([
      { later: false, complete: false },
      { later: true, complete: true },
    ])
    expect(await rows(`${ofMinute} AND epoch_ms(t) < ${trustedMs - 60 * SECOND_MS}`)).toEqual([
      { later: false, complete: true },
    ])
    if (recorded === 'true') {
      await expectReplayKnowsToo()
      await expectMomentsKnowToo(trustedMs)
    }
  },
)

/** The lake that a replay of this one writes tells of the same time, though what is replayed is not recorded again. */
async function expectReplayKnowsToo(): Promise<void> {
  const known = 'SELECT tf, t, complete FROM bars ORDER BY tf, t'
  const [recorded, { dataDir }] = [await rows(known), server]
  await server.stop()
  const played = { feed: 'replay', replay: `lake=${dataDir},speed=max` }
  const replayed = await openTestServer(played, { clock })
  try {
    await expect.poll(async () => (await replayed.client.get('/health')).body.feeds[0].state).toBe('finished')
    const original = server
    server = replayed
    const complete = await rows(known)
    server = original
    expect(complete.length).toBeGreaterThan(40)
    expect(recorded).toEqual(expect.arrayContaining(complete))
  } finally {
    await replayed.remove()
  }
}

/** Features that were taken of a moment are labelled as what is submitted in it, by the lake of a server that has stopped. */
async function expectMomentsKnowToo(trustedMs: number): Promise<void> {
  const { dataDir } = server
  const [momentsPath, outPath] = [join(dataDir, 'moments.ndjson'), join(dataDir, 'labels.parquet')]
  const columns = TABLES.training.columns.filter(({ name }) =>
    ['mint', 'submitted_at', 'price_at_submission_usd'].includes(name),
  )
  const moments = [-7, 19, 21].map((minute) => ({
    ...{ mint: KNOWN, price_at_submission_usd: 2 },
    submitted_at: trustedMs + minute * 60 * SECOND_MS,
  }))
  writeFileSync(momentsPath, moments.map((moment) => `${JSON.stringify(moment)}\n`).join(''))
  const taken = { dataDir, momentsPath, columns, outPath, spillDir: join(dataDir, 'spill') }
  await labelMoments({ ...taken, knownToMs: clock.wallMs })
  expect(
    await readSql(`SELECT fwd_ret_5m IS NULL AS unknown FROM '${outPath}' ORDER BY submitted_at`),
  ).toEqual([false, true, false].map((unknown) => ({ unknown })))
}

test('bars that were open when the clock leapt ahead are not complete, though nothing came in until it was set right', async () => {
  await open()
  const minutes = 20
  await tradeEachMinute(1, 2)
  clock.step(minutes * 60 * SECOND_MS)
  // It is believed once it has lasted as long as it is far.
  for (let minute = 0; minute < minutes; minute++) {
    pass(60 * SECOND_MS)
    await trade(KNOWN, clock.wallMs - minutes * 60 * SECOND_MS)
  }
  // Nothing comes in any more, and it leaps.
  const leaptMs = clock.wallMs - (minutes - 1) * 60 * SECOND_MS
  for (let minute = 0; minute < 4; minute++) {
    pass(60 * SECOND_MS)
    await expect.poll(() => server.market.timeMs).toBe(clock.wallMs)
  }
  await expect.poll(() => server.market.barsEmittedToMs).toBe(clock.wallMs - 15 * SECOND_MS)
  await server.store.flushLake()
  clock.step(-minutes * 60 * SECOND_MS)
  await trust()
  await tradeEachMinute(30, 20)
  await expect.poll(() => server.market.barsEmittedToMs).toBe(clock.wallMs - 15 * SECOND_MS)
  const { ended } = server.market.gaps(9)
  expect(ended).toEqual([{ fromMs: leaptMs, toMs: leaptMs + 3 * 60 * SECOND_MS, reason: 'leap', feed: null }])
  // The first bars began before the server did, 100 s before it.
  const minute = `((epoch_ms(t) - ${START_MS - 100 * SECOND_MS}) // 60000)::INT AS minute`
  const of = (tf: string) => rows(`SELECT ${minute}, n, complete FROM bars WHERE tf = '${tf}' ORDER BY 1`)
  const bar = (minute: number, n: number, complete: boolean) => ({ minute, n, complete })
  // The clock leapt in minute 23, to minute 43. It was set right in minute 26, when it said 46.
  expect(await of('5m')).toEqual([
    ...[bar(0, 3, false), bar(5, 5, true), bar(10, 5, true), bar(15, 5, true)],
    ...[bar(20, 3, false), bar(25, 3, false), bar(30, 5, true), bar(35, 5, true)],
    ...[bar(40, 5, false), bar(45, 5, true), bar(50, 5, true)],
  ])
  expect(await of('15m')).toEqual([bar(0, 13, false), bar(15, 8, false), bar(30, 15, false)])
})

test('where market time went back by seconds, in which no bar can have closed, labels are made as ever', async () => {
  await open()
  const key = await server.client.register()
  await tradeEachMinute(3, 2)
  await submit(server.client, key, submission(KNOWN))
  pass(10 * SECOND_MS)
  await trade(KNOWN, clock.wallMs)
  clock.step(-3 * SECOND_MS)
  expect((await trust()).body.data).toMatchObject({ movedMs: -3 * SECOND_MS })
  await tradeEachMinute(8, 3)
  await expect.poll(() => rows('SELECT fwd_ret_5m FROM outcomes')).toEqual([{ fwd_ret_5m: 0.5 }])
  expect(await rows("SELECT mint FROM bars WHERE tf = '1m' AND NOT complete")).toEqual([])
})

test('who has every row up to a `known_at` finds all later ones behind it, also where the clock was set back in between', async () => {
  await open({ 'submit-limits': 'rate=0,cooldown-ms=0' })
  const key = await server.client.register()
  const TABLES = ['training', 'bars', 'outcomes', 'trades', 'events', 'tokens']
  const countAll = async (from: Readonly<Record<string, number>>) => {
    await expect.poll(() => server.market.barsEmittedToMs).toBe(clock.wallMs - 15 * SECOND_MS)
    // A flush makes the labels that are due, and the next one writes them.
    for (let flush = 0; flush < 2; flush++) await server.store.flushLake()
    const rows = await readSql(
      TABLES.map(
        (table) => `SELECT '${table}' AS name, count(*)::INT AS rows, epoch_ms(max(known_at))::DOUBLE AS last,
          (count(*) FILTER (known_at > epoch_ms(${from[table] ?? 0})))::INT AS behind FROM ${lakeGlob(server.dataDir, table)}`,
      ).join(' UNION ALL '),
    )
    return Object.fromEntries(rows.map(({ name, ...row }) => [name, row as Record<string, number>]))
  }
  const live = async () => {
    for (let minute = 0; minute < 8; minute++) {
      for (const mint of [KNOWN, OTHER]) {
        await server.client.push({ type: 'token', mint, ts: clock.wallMs, name: `At ${minute}`, symbol: 'A' })
        await trade(mint, clock.wallMs)
      }
      expect((await submit(server.client, key, submission(KNOWN))).status).toBe(201)
      pass(60 * SECOND_MS)
    }
  }
  await live()
  let before = await countAll({})
  for (const restarts of [false, true]) {
    clock.step(-2 * HOUR_MS)
    await trust()
    if (restarts) server = await server.restart()
    await live()
    const after = await countAll(Object.fromEntries(TABLES.map((table) => [table, before[table].last])))
    for (const table of TABLES) {
      expect(after[table].behind, table).toBeGreaterThan(0)
      expect(after[table].behind, table).toBe(after[table].rows - before[table].rows)
    }
    before = after
  }
})

/** How many recorded trades the lake has. */
async function tradesInLake(): Promise<number> {
  await server.store.flushLake()
  await server.store.compactLake()
  const { lake } = await server.store.status()
  return lake.find(({ table }) => table === 'trades')?.rows ?? 0
}

test.each(WRONG.filter(([, wrongMs]) => wrongMs < -HOUR_MS))(
  'a clock that is %s during a run deletes no recorded trade',
  { tags: 'drill' },
  async (_, wrongMs) => {
    await open()
    for (let day = 0; day < 3; day++) {
      await trade(KNOWN, clock.wallMs)
      expect(await tradesInLake()).toBe(day + 1)
      pass(DAY_MS)
    }
    clock.step(wrongMs)
    server = await server.restart()
    await trade(NEW, server.market.timeMs)
    expect(await tradesInLake()).toBe(4)
    clock.step(-wrongMs)
    server = await server.restart()
    pass(HOUR_MS)
    await trade(OTHER, server.market.timeMs)
    expect(await tradesInLake()).toBe(5)
    pass(DAY_MS)
    expect(await tradesInLake()).toBe(5)
  },
)

/** Everything that a start could forget. */
async function beginLimits() {
  const [key, striker, other] = [
    await server.client.register('one'),
    await server.client.register('striker'),
    await server.client.register('other'),
  ]
  const [mint, second] = [
    await seedToken(server.client, clock.wallMs),
    await seedToken(server.client, clock.wallMs),
  ]
  const snapshot = { ...VALUES, liquidity: 1, snapshotAt: clock.wallMs }
  expectProblem(await submit(server.client, striker, submission(second, { snapshot })), 'snapshot_rejected')
  const body = submission(mint)
  const send = () => server.client.post('/api/v1/analysis/submit', body, key, { 'Idempotency-Key': 'once' })
  const first = await send()
  expect(first.status).toBe(201)
  return { key, striker, other, mint, send, analysisId: first.body.analysisId as string }
}
type Begun = Awaited<ReturnType<typeof beginLimits>>

async function expectRemembered({ key, striker, other, mint, send, analysisId }: Begun): Promise<void> {
  const again = await send()
  expect(again.headers.get('Idempotency-Replayed'), again.text).toBe('true')
  expect(again.body.analysisId).toBe(analysisId)
  expectProblem(await submit(server.client, key, submission(mint)), 'mint_cooldown')
  const profile = await server.client.get('/api/v1/agent/profile', { Authorization: `Bearer ${striker}` })
  expect(profile.body.standing.strikes).toBe(1)
  const shown = await server.client.get(`/api/v1/analysis/${analysisId}`, {
    Authorization: `Bearer ${other}`,
  })
  expect(shown.body.data).toMatchObject({ sentiment: null })
}

test.each(WRONG)(
  'a clock that is %s during one commit forgets nothing',
  { tags: 'drill' },
  async (_, wrongMs) => {
    await open({ 'submit-limits': 'cooldown-ms=600000', 'labels-delay-ms': '600000' })
    const begun = await beginLimits()
    pass(SECOND_MS)
    clock.step(wrongMs)
    await server.client.register('in between')
    clock.step(-wrongMs)
    server = await server.restart()
    await expectRemembered(begun)
  },
)

test.each(WRONG)(
  'a clock that is %s during a whole run forgets nothing for the next',
  { tags: 'drill' },
  async (_, wrongMs) => {
    await open({ 'submit-limits': 'cooldown-ms=600000', 'labels-delay-ms': '600000' })
    const begun = await beginLimits()
    pass(SECOND_MS)
    clock.step(wrongMs)
    server = await server.restart()
    await server.client.register('in between')
    await server.store.flushLake()
    pass(SECOND_MS)
    clock.step(-wrongMs)
    server = await server.restart()
    await expectRemembered(begun)
    if (wrongMs < 0) return
    expect((await trust()).body.data.movedMs).toBe(-wrongMs)
    await expectRemembered(begun)
  },
)

test('a start with a clock in 1970 brings nothing back that has ended', { tags: 'drill' }, async () => {
  await open()
  const register = async (name: string) =>
    (await server.client.post('/api/v1/keys/register', { name })).body.data
  const [banned, suspended, rotated] = [
    await register('banned'),
    await register('suspended'),
    await register('rotated'),
  ]
  const untilMs = clock.wallMs + HOUR_MS
  await server.client.post(
    '/api/v1/admin/ban',
    { agentId: banned.agentId, untilMs, reason: 'for an hour' },
    ADMIN_KEY,
  )
  const { key } = (await server.client.post('/api/v1/keys/rotate', {}, rotated.key)).body.data
  for (let strike = 0; strike < 3; strike++) {
    const mint = await seedToken(server.client, clock.wallMs)
    const snapshot = { ...VALUES, liquidity: 1, snapshotAt: clock.wallMs }
    await submit(server.client, suspended.key, submission(mint, { snapshot }))
  }
  pass(25 * HOUR_MS)
  clock.step(5_000 - clock.wallMs)
  server = await server.restart()
  const mint = await seedToken(server.client, server.market.timeMs)
  expectProblem(await submit(server.client, rotated.key, submission(mint)), 'revoked_key')
  for (const each of [banned.key, suspended.key, key])
    expect((await submit(server.client, each, submission(mint))).status).toBe(201)
})
