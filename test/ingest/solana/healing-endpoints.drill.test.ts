// @module-tag drill
// Endpoints that fail while a feed makes up for an outage: another one has what was missed.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { SolanaFeed } from '../../../src/ingest/solana/solana.ts'
import { LiveSource } from '../../../src/ingest/solana/source.ts'
import type { Feed } from '../../../src/ingest/types.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { ChainWorld, slotAt } from '../../support/chain/world.ts'
import { type Refusal, SolanaNode } from '../../support/upstreams/solana-node.ts'
import { MemoryLog, MemorySink } from '../memory-sink.ts'

const soon = { interval: 10, timeout: 30_000 }
let nodes: SolanaNode[]
let world: ChainWorld
let sink: MemorySink
let feed: Feed
beforeEach(async () => {
  nodes = [await SolanaNode.start(), await SolanaNode.start()]
  const startMs = Date.now()
  for (const node of nodes) {
    node.beginTime()
    node.setSolPrice(150, startMs)
  }
  world = new ChainWorld(17, { startMs, slot: slotAt(startMs) })
  sink = new MemorySink()
  const rpcUrls = nodes.map(({ url }) => url)
  const socketUrls = rpcUrls.map((url) => url.replace('http', 'ws'))
  // A call that fails on a busy machine would move on to the other endpoint before anything is fetched.
  const endpoints = { rpcUrls, socketUrls, requestsPerSecond: 1_000, rpcTimeoutMs: 2_000 }
  const source = new LiveSource({ ...endpoints, commitment: 'confirmed' }, systemClock)
  feed = new SolanaFeed(
    {
      ...{ source, commitment: 'confirmed', pools: 'migrated', random: () => 0, holds: () => true },
      ...{ reconnectMsMin: 1, reconnectMsMax: 5, healMs: 60_000 },
    },
    sink,
    new MemoryLog(),
  )
  await expect.poll(() => feed.describe().isConnected, soon).toBe(true)
})
afterEach(async () => {
  await feed.stop()
  for (const node of nodes) await node.close()
})

/** So many transactions of now, told by both nodes to who is subscribed. */
function tell(count: number): void {
  world.pass(Date.now() - world.nowMs)
  const told = Array.from({ length: count }, () => world.step())
  for (const node of nodes) {
    for (const [address, account] of world.accounts) node.accounts.set(address, account)
    for (const transaction of told) node.confirm(transaction)
  }
}

const trades = () =>
  sink.data.flatMap((event) => (event.type === 'trade' ? [`${event.tx}:${event.eventIndex}`] : []))
const ledger = () => world.ledger.map(({ signature, eventIndex }) => `${signature}:${eventIndex}`)
const PAST = ['getBlock', 'getTransaction', 'getSignaturesForAddress']
const askedForPast = (node: SolanaNode) => PAST.flatMap((method) => node.asked(method)).length
const healing = () => feed.describe().healing as { healed: number; missing: object[] }

it.each<[string, Refusal]>([
  ['fails', { status: 500 }],
  ['refuses it', { error: { code: -32_601, message: 'Method not found' } }],
  ['has it no more', { error: { code: -32_001, message: 'cleaned up' } }],
  ['does not answer', 'hang'],
])(
  'an endpoint that %s in the midst of it gives way to the next, and nothing is missing',
  async (_, refusal) => {
    tell(20)
    await expect.poll(() => trades().length, soon).toBe(world.ledger.length)
    const [first, second] = nodes
    // The one is away, and what it still answers is no block; the other has a connection soon, and tells what comes then.
    first.handshake = 403
    for (const method of PAST) first.refusals[method] = refusal
    // Its subscriptions end alone: a call that fails with them would go to the other one before anything is fetched.
    for (const peer of first.peers) peer.terminate()
    tell(15)
    await expect.poll(() => healing().healed, soon).toBe(1)
    tell(5)
    await expect.poll(() => trades().length, soon).toBe(world.ledger.length)
    for (const node of nodes) expect(askedForPast(node)).toBeGreaterThan(0)
    // And back.
    first.handshake = null
    first.refusals = {}
    await second.close()
    tell(15)
    await expect.poll(() => healing().healed, soon).toBe(2)
    await expect.poll(() => trades().length, soon).toBe(world.ledger.length)
    expect(trades().sort()).toEqual(ledger().sort())
    expect(healing().missing).toEqual([])
    expect(sink.links.filter(({ type }) => type === 'reconnect')).toMatchObject([
      { feed: 'solana' },
      { healed: true },
      { healed: true },
    ])
  },
)
