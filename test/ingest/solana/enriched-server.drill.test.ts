// @module-tag drill
// The real server on a local node: what the chain says of tokens is in DataPoints before anybody submits, and in training rows.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { lakeGlob, readSql } from '../../store/support.ts'
import { extendedMint, tokenAccount } from '../../support/chain/token-accounts.ts'
import { ChainWorld, SOL } from '../../support/chain/world.ts'
import { quant, SUMMARY } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'
import { SolanaNode } from '../../support/upstreams/solana-node.ts'

const soon = { interval: 20, timeout: 30_000 }
const SUPPLY = 1_000_000_000_000_000n
let node: SolanaNode
let world: ChainWorld
let server: TestServer
let slots: NodeJS.Timeout
beforeEach(async () => {
  node = await SolanaNode.start()
  node.setSolPrice(150, Date.now())
  world = new ChainWorld(36, { startMs: Date.now(), truncated: 0 })
  slots = setInterval(() => node.nextSlot(), 400)
})
afterEach(async () => {
  await server.remove()
  clearInterval(slots)
  await node.close()
})

async function start(rps: string): Promise<void> {
  server = await openTestServer({ feed: 'solana', 'solana-rpc': node.url, 'solana-rps': rps })
  const isConnected = async () => (await server.client.get('/health')).body.feeds[0].isConnected
  await expect.poll(isConnected, soon).toBe(true)
}

function launch(): string {
  world.pass(1_000)
  const transaction = world.launch(SOL, false)
  const { mint } = world.tokens[world.tokens.length - 1]
  const metadata = { mint, updateAuthority: mintOfSymbol('authority'), uri: '' }
  const pointer = { authority: null, address: mint }
  const authorities = { mintAuthority: null, freezeAuthority: mintOfSymbol('authority') }
  node.accounts.set(mint, extendedMint({ supply: SUPPLY, decimals: 6, ...authorities, pointer, metadata }))
  const wallet = mintOfSymbol(`wallet of ${mint}`)
  node.accounts.set(
    mintOfSymbol(`held ${mint}`),
    tokenAccount({ mint, owner: wallet, amount: SUPPLY / 5n }, true),
  )
  node.confirm(transaction)
  return mint
}
const datapoint = async (mint: string) =>
  (await server.client.get(`/api/v1/datapoint?mint=${mint}`)).body.data

it('tells whose each field is, stores it with the submission, and has it after a restart', async () => {
  await start('1000')
  const mint = launch()
  const chain = {
    ...{ has_freeze_authority: true, has_mint_authority: false, transfer_fee_enabled: false },
    ...{ is_mutable_metadata: true, top10_holder_pct_onchain: 20 },
  }
  await expect.poll(() => datapoint(mint), soon).toMatchObject(chain)
  const { enrichedFrom, enriched_at, topHolders } = await datapoint(mint)
  const sources = enrichedFrom.map(({ source }: { source: string }) => source)
  expect(sources.filter((source: string) => source === 'chain').length).toBeGreaterThanOrEqual(1)
  expect(topHolders).toEqual([{ address: mintOfSymbol(`wallet of ${mint}`), amount: 200_000_000, pct: 20 }])
  const key = await server.client.register()
  const body = { mint, sentiment: 'neutral', score: 50, summary: SUMMARY, quant }
  const receipt = await server.client.post('/api/v1/analysis/submit', body, key)
  expect(receipt.status).toBe(201)
  expect(receipt.body.enriched).toMatchObject(chain)
  server = await server.restart()
  expect(await datapoint(mint)).toMatchObject(chain)
  const rows = await readSql(
    `SELECT *, epoch_ms(enriched_at)::BIGINT AS at_ms FROM ${lakeGlob(server.dataDir, 'training')}`,
  )
  expect(rows[0]).toMatchObject(chain)
  expect(`${rows[0].enriched_source}`.split('+')).toContain('chain')
  expect(Number(rows[0].at_ms)).toBe(enriched_at)
})

it('asks first about what is submitted or read, then about what is hot, however many tokens wait', async () => {
  await start('5')
  const mints = Array.from({ length: 60 }, launch)
  await expect.poll(async () => (await server.client.get('/health')).body.market.tokens, soon).toBe(60)
  // Launched early, so that their turn would come late; the very first had theirs at once.
  const [hot, submitted, read] = mints.slice(10)
  const asked = () => node.asked('getTokenLargestAccounts').map(({ params }) => params[0] as string)
  const before = asked().length
  await server.client.push({
    ...{ type: 'trade', mint: hot, ts: world.nowMs, side: 'buy', tokenAmount: 1_000_000, priceUsd: 1 },
  })
  const key = await server.client.register()
  const body = { mint: submitted, sentiment: 'neutral', score: 50, summary: SUMMARY, quant }
  expect((await server.client.post('/api/v1/analysis/submit', body, key)).status).toBe(201)
  await datapoint(read)
  // All others are wanted after that.
  for (const token of world.tokens.slice(13)) node.confirm(world.trade(token))
  await expect.poll(asked, soon).toEqual(expect.arrayContaining([submitted, read, hot]))
  const order = asked()
  // Behind those that had their turn already, and the few that are asked about at once.
  for (const mint of [submitted, read]) expect(order.indexOf(mint)).toBeLessThan(before + 12)
  // At the latest some seconds later, of which each has its requests.
  expect(order.indexOf(hot)).toBeLessThan(40)
  expect(new Set(order).size).toBeLessThan(50)
})
