// Tests of a server that replays a file of trades: what it takes shows in the market, and what it refuses is told.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createClient, type Submission } from '../../src/client/index.ts'
import type { FeedStatus } from '../../src/ingest/types.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { openReplayPlan } from '../../src/store/query/replay-plan.ts'
import { removeFolder, temporaryFolder } from '../store/support.ts'
import { submission, submit } from '../support/submission.ts'
import { runCommand } from '../support/terminal.ts'
import { openTestServer, type Settings, type TestServer } from '../support/test-server.ts'

const FIRST_MS = Date.UTC(2025, 0, 1)
const ROWS = 60
const ROW_NUMBERS = Array.from({ length: ROWS }, (_, at) => at)

let folder: string
let server: TestServer | null = null
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(async () => {
  await server?.remove()
  server = null
  removeFolder(folder)
})

interface Report {
  status: string
  simulated: boolean
  reasons: string[]
  feeds: FeedStatus[]
}

/** Replays the file to its end. @returns /health afterwards. */
async function replay(text: string, as = '', flags: Settings = {}, dataDir?: string): Promise<Report> {
  const path = join(folder, 'trades.csv')
  writeFileSync(path, text)
  const settings = { feed: 'replay', replay: `file=${path},speed=max,${as}`, ...flags }
  server = await openTestServer(settings, {}, dataDir)
  const { url } = server
  const read = async (): Promise<Report> => (await (await fetch(`${url}/health`)).json()) as Report
  await expect.poll(async () => (await read()).feeds[0].state, { timeout: 10_000 }).toBe('finished')
  return read()
}

const metric = async (name: string): Promise<string | undefined> => {
  const text = await (await fetch(`${server?.url}/metrics`)).text()
  return text.split('\n').find((line) => line.startsWith(`${name}{`) && line.includes('replay'))
}

test('a file newest first, with Unix ms as text and a second header, is taken whole but for that header', async () => {
  const lines = ROW_NUMBERS.map((at) => `"${FIRST_MS + 60_000 * at}","SPY","${100 + at}","1"`).reverse()
  const header = '"ts","symbol","price","size"'
  const { status, reasons, feeds } = await replay(
    [header, ...lines.slice(0, 30), header, ...lines.slice(30)].join('\n'),
  )
  expect({ status, reasons }).toEqual({ status: 'ready', reasons: [] })
  // The token of the symbol is an event too.
  expect(feeds[0]).toMatchObject({ accepted: ROWS + 1, rejected: { time_invalid: 1 } })
  expect(server?.market.stats()).toMatchObject({ trades: ROWS, lateDropped: 0 })
  expect(server?.market.timeMs).toBe(FIRST_MS + 60_000 * (ROWS - 1))
})

test('a file that is replayed again into the same folder is told of, as its rows are there twice', async () => {
  const text = ['ts,symbol,price,size', ...ROW_NUMBERS.map((at) => `${FIRST_MS + at},SPY,1,1`)].join('\n')
  expect((await replay(text)).reasons).toEqual([])
  const { dataDir } = server!
  await server!.stop()
  const { status, reasons } = await replay(text, '', {}, dataDir)
  expect(status).toBe('degraded')
  expect(reasons).toEqual([expect.stringMatching(/events of an earlier run.*use an empty --data-dir/)])
})

test.each([
  [
    'decimal commas',
    (at: number) => `${FIRST_MS + at};SPY;"168,5";"1"`,
    'price_invalid',
    '"price" is "168,5"',
  ],
  [
    'an unknown form of dates',
    (at: number) => `06/${(at % 28) + 1}/2025;SPY;1;1`,
    'time_invalid',
    '"ts" is "06/1/2025"',
  ],
  ['words for sides', (at: number) => `${FIRST_MS + at};SPY;1;1;north`, 'side_unknown', '"side" is "north"'],
])(
  'a file with %s is refused as a whole, and /health, a metric and the log say so',
  { tags: 'drill' },
  async (_, row, reason, sample) => {
    const { status, reasons, feeds } = await replay(
      `ts;symbol;price;size${reason === 'side_unknown' ? ';side' : ''}\n${ROW_NUMBERS.map(row).join('\n')}\n`,
    )
    expect(status).toBe('degraded')
    expect(reasons).toEqual([
      expect.stringContaining(`the feed replay has refused ${ROWS} of ${ROWS} records (${reason} ${ROWS})`),
    ])
    expect(reasons[0]).toContain(sample)
    expect(feeds[0].refusals).toMatchObject({
      isTooMuch: true,
      share: 1,
      windowMs: null,
      reasons: { [reason]: ROWS },
    })
    expect(await metric('mintlake_feed_refusing')).toMatch(/ 1$/)
    expect(await metric('mintlake_feed_refused_ratio')).toMatch(/ 1$/)
  },
)

test('a file without a header and without symbols gets its symbol from --replay', async () => {
  const lines = ROW_NUMBERS.map((at) => `${FIRST_MS / 1_000 + at},${100 + at},0.5`)
  const { status, feeds } = await replay(lines.join('\n'), 'symbol=XBTUSD')
  expect(status).toBe('ready')
  expect(feeds[0]).toMatchObject({ accepted: ROWS + 1, rejected: {} })
  const page = await (await fetch(`${server?.url}/api/v1/market?format=ndjson`)).text()
  expect(page).toContain('XBTUSD')
})

test('a file may be declared simulated: /health and rows of the lake say so, and real data stays apart', async () => {
  const lines = ROW_NUMBERS.map((at) => `${FIRST_MS + 60_000 * at},MADEUP,${100 + at},1`)
  const text = ['ts,symbol,price,size', ...lines].join('\n')
  const { feeds, simulated } = await replay(text, 'simulated=true')
  expect({ simulated, feed: feeds[0].simulated }).toEqual({ simulated: true, feed: true })
  await server?.store.flushLake()
  const { out } = await runCommand([
    ...['sql', 'SELECT DISTINCT feed, simulated FROM bars', '--format', 'jsonl'],
    ...['--data-dir', server?.dataDir ?? ''],
  ])
  expect(JSON.parse(out)).toEqual({ feed: 'replay', simulated: true })
  await server?.stop()
  const path = join(folder, 'trades.csv')
  const real = { 'data-dir': server?.dataDir ?? '', feed: 'replay', replay: `file=${path}` }
  await expect(openTestServer(real)).rejects.toThrow(/--mixed/)
})

test('while a replay as fast as possible runs, answers of the market say warming_up; afterwards they do not', {
  tags: 'drill',
}, async () => {
  const rows = 250_000
  const lines = Array.from({ length: rows }, (_, at) => `${FIRST_MS + at},T${at % 50},${1 + (at % 7)},1`)
  const path = join(folder, 'many.csv')
  writeFileSync(path, `ts,symbol,price,size\n${lines.join('\n')}\n`)
  server = await openTestServer({ feed: 'replay', replay: `file=${path},speed=max` })
  const { client } = server
  const state = async () => ((await client.get('/health')).body as Report).feeds[0].state
  let told: unknown
  while (told === undefined && (await state()) !== 'finished') {
    const { body, headers } = await client.get('/api/v1/market?limit=1')
    told = body.meta?.warming_up
    if (told !== undefined) expect(headers.get('x-warming-up')).toBe(told)
  }
  expect(told).toMatch(/^The replay has brought \d+ (of \d+ )?rows/)
  await expect.poll(state).toBe('finished')
  const { body, headers } = await client.get('/api/v1/market?limit=1')
  expect(body.meta.warming_up).toBeUndefined()
  expect(headers.get('x-warming-up')).toBe(null)
})

test('what was recorded of a file is played from its first row on, as the market has no time before', async () => {
  const lines = ROW_NUMBERS.map((at) => `${FIRST_MS + 60_000 * at},SPY,${100 + at},1`)
  await replay(['ts,symbol,price,size', ...lines].join('\n'), '', { record: 'true' })
  await server?.stop()
  const plan = await openReplayPlan(server!.dataDir, { fromMs: null, toMs: null, checkpoints: [] })
  expect(plan).toMatchObject({
    ...{ fromMs: FIRST_MS, toMs: FIRST_MS + 60_000 * (ROWS - 1), approximate: null, endsEarly: null },
    range: { from: 1 },
  })
})

test('an agent’s record is of the days before the time of the data, however old that is', async () => {
  const minutes = 90
  const lines = Array.from({ length: 6 * minutes }, (_, at) => `${FIRST_MS + 10_000 * at},SPY,${100 + at},1`)
  const path = join(folder, 'trades.csv')
  writeFileSync(path, ['ts,symbol,price,size', ...lines].join('\n'))
  // It ends after 3.6 seconds: the submission is in time for its first outcomes.
  const settings = { feed: 'replay', replay: `file=${path},speed=1500`, 'labels-delay-ms': '0' }
  server = await openTestServer(settings)
  const { client, market, store } = server
  const key = await client.register('one')
  const mint = mintOfSymbol('SPY')
  await expect.poll(() => market.snapshot(mint)?.priceUsd, { interval: 5 }).toBeGreaterThan(0)
  expect(await submit(client, key, submission(mint))).toMatchObject({ status: 201 })
  const endMs = FIRST_MS + (6 * minutes - 1) * 10_000
  await expect.poll(() => market.timeMs, { timeout: 10_000 }).toBe(endMs)
  await expect.poll(() => market.barsEmittedToMs, { timeout: 10_000 }).toBeGreaterThan(endMs - 60_000)
  await store.bars.flush()
  for (let flush = 0; flush < 2; flush++) await store.flushLake()
  const headers = { Authorization: `Bearer ${key}` }
  const { data } = (await client.get('/api/v1/agents/record?agentId=me', headers)).body
  expect(data).toMatchObject({ asOfMs: endMs, sinceMs: endMs - 30 * 86_400_000 })
  expect(data.horizons[0]).toMatchObject({ horizon: '5m', count: 1, hits: 1 })
  expect(data.xp).toHaveLength(1)
  const leader = async () => (await client.get('/api/v1/agents/leaderboard', headers)).body.leaderboard[0]
  await expect.poll(async () => (await leader()).horizons).toEqual(data.horizons)
  expect((await client.get('/api/v1/calibration')).body.data).toMatchObject({ sinceMs: data.sinceMs })
})

test('a snapshot stamped with the agent’s own clock is told that this market has a time of its own', async () => {
  const now = Date.now()
  const lines = ROW_NUMBERS.map((at) => `${FIRST_MS + 60_000 * at},SPY,${100 + at},1`)
  await replay(['ts,symbol,price,size', ...lines].join('\n'))
  const { client } = server!
  const key = await client.register()
  const sent = await submit(client, key, submission(mintOfSymbol('SPY'), { snapshot: { snapshotAt: now } }))
  expect(sent.status, sent.text).toBe(422)
  expect(sent.body).toMatchObject({
    code: 'snapshot_in_future',
    hint: expect.stringContaining('X-Market-Time'),
    errors: [{ pointer: '/snapshot/snapshotAt', code: 'not_market_time' }],
  })
})

test('limits and waits follow the clock where the market stands at the end of a replay, and the client waits by it', async () => {
  const lines = ROW_NUMBERS.map((at) => `${FIRST_MS + 60_000 * at},SPY,${100 + at},1`)
  const limits = { 'submit-limits': 'rate=0,cooldown-ms=300' }
  await replay(['ts,symbol,price,size', ...lines].join('\n'), '', limits)
  const { client, url } = server!
  const mintlake = createClient({ baseUrl: url, key: await client.register(), waitForLimits: true })
  expect(await mintlake.now()).toBe(FIRST_MS + 60_000 * (ROWS - 1))
  const sent = submission(mintOfSymbol('SPY')) as Submission
  const first = await mintlake.submit(sent)
  await mintlake.sleep(1)
  expect((await mintlake.submit(sent)).analysisId).not.toBe(first.analysisId)
})
