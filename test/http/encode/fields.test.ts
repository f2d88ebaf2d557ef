// The field names that deployed agents read, written out by hand: a field renamed or removed in the schema fails
// here.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newMint } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

const ITEM = `mint name symbol description image_uri usd_market_cap market_cap created_timestamp is_currently_live complete
  priceUsd creator virtual_sol_reserves virtual_token_reserves bonding_progress volume_24h_usd liquidity_usd holder_count
  last_trade_timestamp website twitter telegram analysis_count hot_score quoteMint isMayhem`
const DATAPOINT = `mint name symbol description imageUrl imageUri creator priceUsd priceSol solPriceUsd priceChange1h
  priceChange6h priceChange24h marketCap fdv liquidity totalSupply volume1m volume1h volume6h volume24h buys24h sells24h
  tradeCount holderCount tradeRate1m buySellImbalance1m bondingComplete bondingProgress isLive isCurrentlyLive
  streamSource viewerCount website twitter telegram dexPaid dexBoosted primaryDex topHolders top10Holding top10HolderPct
  snipersHolding insidersHolding bundleHolding freshWalletsHolding creatorHolding recentTrades snapshotAt ttl version
  has_freeze_authority has_mint_authority transfer_fee_enabled is_mutable_metadata top10_holder_pct_onchain
  unique_wallet_24h unique_wallet_1h buy_volume_24h_usd sell_volume_24h_usd enriched_at enriched_source createdAt
  virtualSolReserves virtualTokenReserves pairAddress quoteMint isMayhem sparkline skills enrichedFrom`
const NEVER_NULL = `mint name symbol bondingComplete isLive isCurrentlyLive streamSource dexPaid dexBoosted topHolders
  recentTrades snapshotAt ttl version sparkline skills enrichedFrom`
const words = (text: string) => text.split(/\s+/).toSorted()

let server: TestServer
const bare = newMint()
const patched = newMint()
beforeAll(async () => {
  server = await openTestServer()
  const ts = Date.now()
  await server.client.push(
    { type: 'patch', mint: bare, ts, fields: { website: 'https://example.org' } },
    {
      type: 'patch',
      mint: patched,
      ts,
      fields: { top10HolderPct: 20, topHolders: [{ address: 'w', amount: 5, pct: 2 }], holderCount: 0 },
    },
  )
})
afterAll(() => server.remove())
const datapoint = async (mint: string) =>
  (await server.client.get(`/api/v1/datapoint?mint=${mint}`)).body.data

it('a row of the market list has exactly the fields of the contract', async () => {
  const { data } = (await server.client.get('/api/v1/market')).body
  expect(data).toHaveLength(2)
  for (const row of data) expect(Object.keys(row).toSorted()).toEqual(words(ITEM))
})

it('a DataPoint has exactly the fields of the contract, alone and in a batch, with null for unknown values', async () => {
  const alone = await datapoint(bare)
  const batch = await server.client.post('/api/v1/datapoint/batch', { mints: [bare] })
  for (const found of [alone, batch.body.data[0]]) {
    expect(Object.keys(found).toSorted()).toEqual(words(DATAPOINT))
    for (const field of words(NEVER_NULL)) expect(found[field], field).not.toBeNull()
    const unknown = [
      'priceUsd',
      'liquidity',
      'holderCount',
      'top10HolderPct',
      'bondingProgress',
      'is_mutable_metadata',
    ]
    for (const field of unknown) expect(found[field], field).toBeNull()
  }
})

it('a value known to be zero is 0, and readers without a key see the top holders', async () => {
  const found = await datapoint(patched)
  expect(found).toMatchObject({ holderCount: 0, top10HolderPct: 20, top10Holding: 20 })
  expect(found.topHolders).toEqual([{ address: 'w', amount: 5, pct: 2 }])
})

it('the next steps offered to an agent name paths that exist, with their methods', async () => {
  for (const { method, path } of (await datapoint(bare)).skills) {
    const answer = await server.client.request('OPTIONS', path.split('?')[0])
    expect(answer.headers.get('allow'), path).toContain(method)
  }
})
