// Records with extreme numbers and texts: those accepted can be read in every format with finite numbers, can be submitted on
// and are recorded.
import { tableFromIPC } from 'apache-arrow'
import fc from 'fast-check'
import { unpack } from 'msgpackr'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { COUNT_MAX } from '../../../src/schema/bounds.ts'
import { fewAndMany } from '../../support/cases.ts'
import { newMint, submission, submit, VALUES } from '../../support/submission.ts'
import { checkedFetch, FEED_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'

let server: TestServer
let key: string
beforeAll(async () => {
  server = await openTestServer({ 'submit-limits': 'rate=0,cooldown-ms=0,strikes=0' })
  key = await server.client.register()
})
afterAll(() => server.remove())

const number = fc.oneof(
  fc.constantFrom(0, 1, 1e9, 1e30, 1e-30, 1e300, 1e-300, 5e-324, 1.7976931348623157e308, -1, -9e15, 8.64e15),
  fc.constantFrom(1e29, 3e-29, 1_073_000_000, 30, 115.005, 100, 2 ** 53, 1e15),
  fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
)
const text = fc.oneof(
  fc.string(),
  fc.constantFrom(
    'x'.repeat(1_000_000),
    '🐕'.repeat(300),
    '\ud800',
    '\u0000',
    '"\\\n',
    '\u2028',
    '</script>',
  ),
)
const often = (value: fc.Arbitrary<unknown>) => fc.option(value, { nil: undefined, freq: 4 })
const FIGURES = [
  ...['priceUsd', 'priceSol', 'solPriceUsd', 'priceChange1h', 'marketCap', 'fdv', 'liquidity', 'totalSupply'],
  ...[
    'volume1m',
    'volume24h',
    'buys24h',
    'sells24h',
    'tradeCount',
    'holderCount',
    'tradeRate1m',
    'viewerCount',
  ],
  ...['buySellImbalance1m', 'bondingProgress', 'top10HolderPct', 'createdAt', 'virtualSolReserves'],
  ...['unique_wallet_24h', 'buy_volume_24h_usd', 'enriched_at'],
]
const TEXTS = ['name', 'symbol', 'description', 'imageUri', 'website', 'primaryDex', 'pairAddress', 'creator']
const one = <Value>(names: readonly string[], value: fc.Arbitrary<Value>) =>
  fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 3 })
const record = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('trade'),
      side: fc.constantFrom('buy', 'sell'),
      tokenAmount: number,
      priceUsd: often(number),
      solAmount: often(number),
      vSol: often(number),
      vTokens: often(number),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('token'),
      name: text,
      symbol: text,
      totalSupply: often(number),
    }),
  },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('patch'), fields: one(FIGURES, number) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('patch'), fields: one(TEXTS, text) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('solPrice'), usd: number }) },
)

/** Throws if a number in the value is not finite. */
function expectFinite(value: unknown, path = ''): void {
  if (typeof value === 'number') expect(Number.isFinite(value), `${path} is ${value}`).toBe(true)
  else if (typeof value === 'object' && value !== null)
    for (const [name, member] of Object.entries(value)) expectFinite(member, `${path}/${name}`)
}

/** Waits until the token profiles are stored, and checks that none is left waiting. */
async function expectRecorded(): Promise<void> {
  await server.recorded()
  expect((await server.client.get('/metrics')).text).toMatch(/^mintlake_lake_tokens_waiting 0$/m)
}

async function read(path: string): Promise<Buffer> {
  const response = await checkedFetch(server.url + path)
  const body = Buffer.from(await response.arrayBuffer())
  expect(response.status, `${path}: ${body.subarray(0, 300)}`).toBe(200)
  return body
}

async function expectReadable(path: string): Promise<void> {
  const [json, ndjson, msgpack, arrow] = await Promise.all(
    ['json', 'ndjson', 'msgpack', 'arrow'].map((format) => read(`${path}&format=${format}`)),
  )
  expectFinite(JSON.parse(json.toString()), path)
  for (const line of ndjson.toString().split('\n').slice(0, -1)) expectFinite(JSON.parse(line), path)
  expectFinite(unpack(msgpack), path)
  for (const row of tableFromIPC(arrow).toArray()) expectFinite(row.toJSON(), path)
}

for (const { runs, tags } of fewAndMany(3, 25))
  test(`accepted records have finite numbers in every format, and their tokens can be submitted on and are recorded: ${runs} cases`, {
    tags,
    timeout: 120_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 12 }), async (records) => {
        const mint = newMint()
        const lines = [
          { type: 'token', name: 'Extreme', symbol: 'X' },
          { type: 'patch', fields: VALUES },
          ...records,
        ].map((each) => JSON.stringify({ ...each, mint, ts: Date.now() }))
        const pushed = await server.client.request('POST', '/api/v1/ingest', lines.join('\n'), {
          'Content-Type': 'application/x-ndjson',
          Authorization: `Bearer ${FEED_KEY}`,
        })
        expect(pushed.body.accepted, pushed.text).toBeGreaterThanOrEqual(2)
        for (const sort of ['hot', 'market_cap', 'created_timestamp'])
          await expectReadable(`/api/v1/market?limit=20&sort=${sort}`)
        await expectReadable(`/api/v1/ohlc?mint=${mint}&tf=1m`)
        const datapoint = JSON.parse((await read(`/api/v1/datapoint?mint=${mint}`)).toString()).data
        expectFinite(datapoint)
        expect(JSON.stringify(datapoint).length).toBeLessThan(20_000)
        const snapshots = [
          undefined,
          { ...VALUES, snapshotAt: Date.now() },
          { priceUsd: 1e30, snapshotAt: Date.now() },
        ]
        for (const snapshot of snapshots) {
          const answer = await submit(server.client, key, submission(mint, { snapshot }))
          expect([201, 422], answer.text).toContain(answer.status)
          expectFinite(answer.body)
        }
        await expectRecorded()
      }),
      { numRuns: runs },
    )
  })

test('a count that a feed has set to the most there can be stays there with the next trade', async () => {
  const mint = newMint()
  const ts = Date.now()
  await server.client.push(
    { type: 'patch', mint, ts, fields: { tradeCount: COUNT_MAX } },
    { type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: 1 },
  )
  const { data } = JSON.parse((await read(`/api/v1/datapoint?mint=${mint}`)).toString())
  expect(data).toMatchObject({ priceUsd: 1, tradeCount: COUNT_MAX })
})

test('a record with a value that no row can hold is rejected, and its neighbours are recorded', async () => {
  const { client } = server
  const mints = [newMint(), newMint(), newMint()]
  const patch = (mint: string, fields: object) =>
    JSON.stringify({ type: 'patch', mint, ts: Date.now(), fields })
  const pushed = await client.request(
    'POST',
    '/api/v1/ingest',
    [
      patch(mints[0], { name: 'before' }),
      patch(mints[1], { name: 'far away', createdAt: -9e15 }),
      patch(mints[1], { name: 'far ahead', createdAt: 8.64e15 }),
      patch(mints[2], { name: 'after', createdAt: Date.now() }),
    ].join('\n'),
    { 'Content-Type': 'application/x-ndjson', Authorization: `Bearer ${FEED_KEY}` },
  )
  expect(pushed.body).toMatchObject({
    accepted: 2,
    errors: [
      { index: 1, code: 'too_small', message: expect.stringContaining('createdAt') },
      { index: 2, code: 'created_in_future', message: expect.stringContaining('createdAt') },
    ],
  })
  const [newest] = (await client.get('/api/v1/market?tab=new&limit=1')).body.data
  expect(newest.mint).toBe(mints[2])
  await expectRecorded()
})
