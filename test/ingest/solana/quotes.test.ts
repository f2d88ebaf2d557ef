// Trades in any quote through the whole server: pushed and from the chain, priced exactly or not at all, recorded, and there again
// after a restart.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { lakeGlob, readSql } from '../../store/support.ts'
import { ChainWorld, OTHER_QUOTE, SOL, USDC } from '../../support/chain/world.ts'
import { newMint } from '../../support/submission.ts'
import { FEED_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'
import { SolanaNode } from '../../support/upstreams/solana-node.ts'

const soon = { interval: 10, timeout: 20_000 }
let server: TestServer
let node: SolanaNode | null = null

afterAll(async () => {
  await server.remove()
  await node?.close()
})

/** Pushes records, of which some may be refused. */
const push = (...records: object[]) =>
  server.client.request(
    'POST',
    '/api/v1/ingest',
    records.map((record) => JSON.stringify(record)).join('\n'),
    {
      'Content-Type': 'application/x-ndjson',
      Authorization: `Bearer ${FEED_KEY}`,
    },
  )
const lakeRows = async (columns: string, where = 'true') => {
  await server.store.events.flush()
  return readSql(
    `SELECT ${columns} FROM ${lakeGlob(server.dataDir, 'trades')} WHERE ${where} ORDER BY event_no`,
  )
}
const datapoint = async (mint: string) =>
  (await server.client.get(`/api/v1/datapoint?mint=${mint}`)).body.data
const bars = async (mint: string) => (await server.client.get(`/api/v1/ohlc?mint=${mint}&tf=1m`)).body.data

describe('pushed', () => {
  let mint: string
  beforeAll(async () => {
    server = await openTestServer({ record: 'true' })
  })
  beforeEach(() => {
    mint = newMint()
  })
  const trade = (more: object) => ({
    type: 'trade',
    mint,
    ts: Date.now(),
    side: 'buy',
    tokenAmount: 1_000,
    ...more,
  })

  it('USDC counts as one dollar: price and volume are what was paid', async () => {
    const answer = await push(trade({ quoteMint: USDC, quoteAmount: 250 }))
    expect(answer.body).toMatchObject({ accepted: 1, rejected: 0 })
    expect(await datapoint(mint)).toMatchObject({
      priceUsd: 0.25,
      quoteMint: USDC,
      volume24h: 250,
      isMayhem: null,
    })
    expect((await bars(mint)).at(-1)).toMatchObject({ c: 0.25, v: 250, n: 1 })
  })

  it('SOL by its price of then; on a curve the price is the spot price, and the volume what was paid', async () => {
    await push(
      { type: 'solPrice', ts: Date.now(), usd: 150 },
      trade({
        quoteMint: SOL,
        quoteAmount: 2,
        vQuote: 32,
        vTokens: 1_000_000_000,
        quoteReserve: 2,
        curveTokens: 396_550_000,
      }),
    )
    const shown = await datapoint(mint)
    expect(shown).toMatchObject({
      priceSol: 32 / 1e9,
      priceUsd: (32 / 1e9) * 150,
      volume24h: 300,
      liquidity: 600,
    })
    expect(shown.bondingProgress).toBeCloseTo(50, 9)
  })

  it('32 zero bytes are SOL, as the chain’s programs say it', async () => {
    await push(
      { type: 'solPrice', ts: Date.now(), usd: 150 },
      trade({ quoteMint: '1'.repeat(32), quoteAmount: 2 }),
    )
    expect(await datapoint(mint)).toMatchObject({ priceUsd: 0.3, volume24h: 300, quoteMint: SOL })
  })

  it('another quote is recorded and counted, makes no bar, and leaves the price null', async () => {
    const answer = await push(trade({ quoteMint: OTHER_QUOTE, quoteAmount: 5 }))
    expect(answer.body).toMatchObject({ accepted: 1, rejected: 0 })
    expect(await datapoint(mint)).toMatchObject({
      priceUsd: null,
      marketCap: null,
      tradeCount: 1,
      quoteMint: OTHER_QUOTE,
    })
    expect(await bars(mint)).toEqual([])
    const item = (await server.client.get(`/api/v1/market?search=${mint}`)).body.data[0]
    expect(item).toMatchObject({ mint, priceUsd: null, quoteMint: OTHER_QUOTE, isMayhem: null })
  })

  it('without a price, an amount of SOL or a quote is refused', async () => {
    const refused = async (more: object) => (await push(trade(more))).body.errors[0].code
    expect(await refused({})).toBe('price_missing')
    expect(await refused({ quoteAmount: 5 })).toBe('price_missing')
    expect(await refused({ quoteMint: 'x', quoteAmount: 5 })).toBe('invalid_mint')
  })

  it('is what the lake has, and what a restart goes on from', async () => {
    await push(
      {
        type: 'token',
        mint,
        ts: Date.now(),
        name: 'M',
        symbol: 'M',
        totalSupply: 2e9,
        isMayhem: true,
        quoteMint: USDC,
      },
      trade({ quoteMint: USDC, quoteAmount: 250, slot: 5, eventIndex: 2, tx: 'x' }),
      trade({ quoteMint: OTHER_QUOTE, quoteAmount: 7 }),
      trade({ priceUsd: 0.3 }),
    )
    const before = await datapoint(mint)
    expect(before).toMatchObject({ isMayhem: true, totalSupply: 2e9, marketCap: 0.3 * 2e9 })
    const rows = await lakeRows(
      'quote_mint, quote_amount, price_usd, volume_usd, slot::INT AS slot, event_index',
      `mint = '${mint}'`,
    )
    expect(rows).toEqual([
      { quote_mint: USDC, quote_amount: 250, price_usd: 0.25, volume_usd: 250, slot: 5, event_index: 2 },
      {
        quote_mint: OTHER_QUOTE,
        quote_amount: 7,
        price_usd: null,
        volume_usd: null,
        slot: null,
        event_index: null,
      },
      {
        quote_mint: null,
        quote_amount: null,
        price_usd: 0.3,
        volume_usd: 300,
        slot: null,
        event_index: null,
      },
    ])
    server = await server.restart()
    const after = await datapoint(mint)
    expect({ ...after, snapshotAt: 0 }).toEqual({ ...before, snapshotAt: 0 })
  })
})

it('the chain fills a whole server: lists, DataPoints, bars, and the lake has each trade with its place', async () => {
  node = await SolanaNode.start()
  const world = new ChainWorld(3, { startMs: Date.now() })
  node.setSolPrice(150, Date.now())
  await server.remove()
  server = await openTestServer({ feed: 'solana', 'solana-rpc': node.url, 'solana-rps': '1000' })
  await expect
    .poll(async () => (await server.client.get('/health')).body.feeds[0].isConnected, soon)
    .toBe(true)
  const launches = [world.launch(SOL, false), world.launch(USDC, true), world.launch(OTHER_QUOTE, false)]
  const steps = Array.from({ length: 150 }, () => world.step())
  for (const [address, account] of world.accounts) node.accounts.set(address, account)
  for (const transaction of [...launches, ...steps]) node.confirm(transaction)
  const { ledger } = world
  await expect
    .poll(async () => (await server.client.get('/health')).body.market.trades, soon)
    .toBe(ledger.length)
  const [sol, usdc, other] = world.tokens
  const last = (mint: string) => ledger.findLast((each) => each.mint === mint)!
  expect((await datapoint(sol.mint)).priceUsd).toBe(last(sol.mint).priceInQuote * 150)
  const shown = await datapoint(usdc.mint)
  expect(shown).toMatchObject({ priceUsd: last(usdc.mint).priceInQuote, isMayhem: true, totalSupply: 2e9 })
  expect(shown.marketCap).toBe(shown.priceUsd * 2e9)
  expect(await datapoint(other.mint)).toMatchObject({ priceUsd: null, quoteMint: OTHER_QUOTE })
  const rows = await lakeRows('tx, event_index, slot::DOUBLE AS slot, mint, side, token_amount')
  const key = (tx: unknown, index: unknown) => `${tx}:${index}`
  const told = new Map(ledger.map((each) => [key(each.signature, each.eventIndex), each]))
  expect(rows).toHaveLength(ledger.length)
  for (const row of rows) {
    const each = told.get(key(row.tx, row.event_index))
    expect(row).toMatchObject({
      slot: each?.slot,
      mint: each?.mint,
      side: each?.side,
      token_amount: each?.tokenAmount,
    })
  }
})
