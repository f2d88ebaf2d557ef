// @module-tag drill
// Notifications that are repeated after a restart: a trade that was applied before is not applied again.
import { rmSync } from 'node:fs'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { SeenTransactions } from '../../../src/ingest/solana/transactions.ts'
import { lakeGlob, readSql } from '../../store/support.ts'
import type { TestTransaction } from '../../support/chain/transaction.ts'
import { ChainWorld, SOL, slotAt, USDC } from '../../support/chain/world.ts'
import { type Client, openTestServer, spawnServer } from '../../support/test-server.ts'
import { SolanaNode } from '../../support/upstreams/solana-node.ts'

const soon = { interval: 10, timeout: 20_000 }
let node: SolanaNode
let world: ChainWorld
let told: TestTransaction[]

beforeEach(async () => {
  node = await SolanaNode.start()
  node.beginTime()
  const startMs = Date.now()
  node.setSolPrice(150, startMs)
  world = new ChainWorld(11, { startMs, slot: slotAt(startMs) })
  told = [world.launch(SOL, false), world.launch(USDC, true)]
})
afterEach(() => node.close())

const settings = () => ({ feed: 'solana', 'solana-rpc': node.url, 'solana-rps': '1000' })
const health = async (client: Client) => (await client.get('/health')).body
const connected = (client: Client) =>
  expect.poll(async () => (await health(client)).feeds[0].isConnected, soon).toBe(true)
const expectTrades = (client: Client) =>
  expect.poll(async () => (await health(client)).market.trades, soon).toBe(world.ledger.length)

/** Tells all that was told before once more, and so many new transactions of now. */
function tell(count: number): void {
  world.pass(Date.now() - world.nowMs)
  for (let step = 0; step < count; step++) told.push(world.step())
  for (const [address, account] of world.accounts) node.accounts.set(address, account)
  for (const transaction of told) node.confirm(transaction)
}

async function expectLake(dataDir: string): Promise<void> {
  const rows = await readSql(`SELECT tx, event_index FROM ${lakeGlob(dataDir, 'trades')}`)
  const places = rows.map(({ tx, event_index }) => `${tx}:${event_index}`).sort()
  expect(places).toEqual(world.ledger.map(({ signature, eventIndex }) => `${signature}:${eventIndex}`).sort())
}

it('after a kill -9', async () => {
  const killed = await spawnServer(settings())
  const { dataDir } = killed
  try {
    await connected(killed.client)
    tell(40)
    await expectTrades(killed.client)
    await killed.kill()
    // Told to nobody: it is in the past of the node alone.
    tell(15)
    const server = await openTestServer(settings(), {}, dataDir)
    try {
      await connected(server.client)
      tell(20)
      await expectTrades(server.client)
      await server.store.events.flush()
      await expectLake(dataDir)
    } finally {
      await server.stop()
    }
  } finally {
    await killed.kill()
    rmSync(dataDir, { recursive: true, force: true })
  }
})

it('a recorded trade is known by its place: others of its transaction are new', () => {
  const seen = new SeenTransactions([
    { tx: 'a', eventIndex: 1, slot: 1, isCurve: true, ts: 1 },
    { tx: 'a', eventIndex: 3, slot: 1, isCurve: true, ts: 1 },
  ])
  const events = [0, 1, 2, 3].map((index) => ({ program: '', index, bytes: new Uint8Array() }))
  const indexes = (signature: string, count: number) =>
    seen.take(signature, events.slice(0, count)).map(({ index }) => index)
  expect(indexes('a', 2)).toEqual([0])
  expect(indexes('a', 4)).toEqual([2])
  expect(indexes('a', 4)).toEqual([])
  expect(indexes('b', 2)).toEqual([0, 1])
  expect(seen.duplicates).toBe(1 + 3 + 4)
})
