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

it('asks first about what is read, however many tokens wait', async () => {
  await start('25')
  const mints = Array.from({ length: 40 }, launch)
  await expect.poll(async () => (await server.client.get('/health')).body.market.tokens, soon).toBe(40)
  const [wanted] = mints
  await datapoint(wanted)
  await expect.poll(async () => (await datapoint(wanted)).top10_holder_pct_onchain, soon).toBe(20)
  const { holders } = (await server.client.get('/health')).body.feeds[0].enrichment
  expect(holders.answered).toBeLessThan(40)
})
