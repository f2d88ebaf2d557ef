// @module-tag drill
// Endpoints end their connections again and again: the feed must not grow by it.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it, vi } from 'vitest'
import { SolanaFeed } from '../../../src/ingest/solana/solana.ts'
import { LiveSource } from '../../../src/ingest/solana/source.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { MarketEvent } from '../../../src/schema/event.ts'
import { ChainWorld, SOL } from '../../support/chain/world.ts'
import { SolanaNode } from '../../support/upstreams/solana-node.ts'
import { silentLog } from '../memory-sink.ts'

const RECONNECTS = 500
const WARM_UP = 150
/** Compiled code and caches of the runtime come and go by some megabytes; a socket or a reader kept from each would be more. */
const GROWTH_BYTES_MAX = 3 * 1024 * 1024
const soon = { interval: 1, timeout: 20_000 }

/** Asks for accounts at once, so that connecting takes no time. */
class PromptSource extends LiveSource {
  readonly collectMs = 0
}

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')
function heapBytes(): number {
  for (let round = 0; round < 3; round++) collect()
  return process.memoryUsage().heapUsed
}

it(`${RECONNECTS} reconnects leave nothing behind: memory levels off, and so do sockets and timers`, async () => {
  const node = await SolanaNode.start()
  node.setSolPrice(150, Date.now())
  const world = new ChainWorld(5, { startMs: Date.now(), truncated: 0.2 })
  const told = [world.launch(SOL), ...Array.from({ length: 12 }, () => world.step())]
  for (const [address, account] of world.accounts) node.accounts.set(address, account)
  // Each goes to all subscriptions that name one of its programs.
  const toldCount = told.reduce(
    (sum, { events }) => sum + new Set(events.map((each) => each.program)).size,
    0,
  )
  const held = new Set<string>()
  let trades = 0
  const sink = {
    apply(event: MarketEvent) {
      if ('mint' in event) held.add(event.mint)
      if (event.type === 'trade') trades++
      return null
    },
  }
  const source = new PromptSource(
    { rpcUrls: [node.url], socketUrls: [], commitment: 'confirmed', requestsPerSecond: 10_000 },
    systemClock,
  )
  const options = { source, commitment: 'confirmed', pools: 'migrated', random: () => 0 } as const
  const reconnect = { reconnectMsMin: 0, reconnectMsMax: 0, holds: (mint: string) => held.has(mint) }
  const feed = new SolanaFeed({ ...options, ...reconnect }, sink, silentLog)
  const measured: { heap: number; resources: number }[] = []
  try {
    for (let round = 1; round <= RECONNECTS + 1; round++) {
      await vi.waitUntil(() => feed.describe().connects === round, soon)
      for (const transaction of told) node.confirm(transaction)
      await vi.waitUntil(() => feed.describe().notifications === round * toldCount, soon)
      if (round === WARM_UP || round === RECONNECTS + 1)
        measured.push({ heap: heapBytes(), resources: process.getActiveResourcesInfo().length })
      node.requests.length = 0
      node.urls.length = 0
      if (round <= RECONNECTS) node.drop()
    }
    expect(trades).toBe(world.ledger.length)
    const [warm, last] = measured
    expect(last.heap - warm.heap).toBeLessThan(GROWTH_BYTES_MAX)
    expect(last.resources).toBeLessThanOrEqual(warm.resources + 4)
    expect(feed.describe()).toMatchObject({ disconnects: RECONNECTS, problem: null })
  } finally {
    await feed.stop()
    await node.close()
  }
}, 120_000)
