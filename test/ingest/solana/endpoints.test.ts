// Endpoints of other chains, that fail for a while, or repeat keys in what they say.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkEndpoint } from '../../../src/ingest/solana/check-endpoint.ts'
import { endpointsOf, withoutAddresses } from '../../../src/ingest/solana/endpoints.ts'
import { HEAL_BACK_SLOTS, RPC_CONCURRENCY, RPC_PAUSE_MS } from '../../../src/ingest/solana/limits.ts'
import { PUMP_PROGRAM } from '../../../src/ingest/solana/programs.ts'
import { RpcClient } from '../../../src/ingest/solana/rpc.ts'
import { SolanaFeed, type SolanaOptions } from '../../../src/ingest/solana/solana.ts'
import { LiveSource, type LiveSourceOptions } from '../../../src/ingest/solana/source.ts'
import type { Feed, RecordedPlace } from '../../../src/ingest/types.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { within } from '../../../src/lib/wait.ts'
import { ChainWorld, SOL, slotAt } from '../../support/chain/world.ts'
import { type Refusal, SolanaNode } from '../../support/upstreams/solana-node.ts'
import { MemoryLog, MemorySink } from '../memory-sink.ts'

const soon = { interval: 5, timeout: 10_000 }
const DEVNET = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG'
const { signal } = new AbortController()

let nodes: SolanaNode[]
let feed: Feed | null
let sink: MemorySink
beforeEach(async () => {
  nodes = [await SolanaNode.start(), await SolanaNode.start()]
  for (const node of nodes) node.setSolPrice(150, Date.now())
  sink = new MemorySink()
  feed = null
})
afterEach(async () => {
  await feed?.stop()
  for (const node of nodes) await node.close()
})

const socketOf = ({ url }: SolanaNode) => url.replace('http', 'ws')
/** The chain of these tests is a minute behind the machine. */
const HEAL_MS = 600_000

function start(
  options: Partial<LiveSourceOptions>,
  pools: 'all' | 'migrated' = 'all',
  healMs = 0,
  past: Pick<SolanaOptions, 'recorded' | 'recordedTo'> = {},
): Feed {
  const source = new LiveSource(
    {
      ...{ rpcUrls: nodes.map(({ url }) => url), socketUrls: nodes.map(socketOf) },
      ...{ commitment: 'confirmed', requestsPerSecond: 1_000, ...options },
    },
    systemClock,
  )
  feed = new SolanaFeed(
    {
      ...{ source, commitment: 'confirmed', pools, random: () => 0, holds: () => true },
      ...{ reconnectMsMin: 1, reconnectMsMax: 5, healMs, ...past },
    },
    sink,
    new MemoryLog(),
  )
  return feed
}

describe('an endpoint of another chain', () => {
  it('gives way to the next, and is asked for nothing of the market', async () => {
    nodes[0].genesis = DEVNET
    const started = start({})
    await expect.poll(() => started.describe().isConnected, soon).toBe(true)
    expect(started.describe()).toMatchObject({ host: `127.0.0.1:${nodes[1].port}`, problem: null })
    expect(nodes[0].peers.size).toBe(0)
    expect(new Set(nodes[0].requests.map(({ method }) => method))).toEqual(new Set(['getGenesisHash']))
  })

  it('is not asked when the first fails for a while', async () => {
    nodes[1].genesis = DEVNET
    const rpc = new RpcClient({
      endpoints: endpointsOf(nodes.map(({ url }) => url)),
      ...{ requestsPerSecond: 1_000, genesis: nodes[0].genesis },
    })
    nodes[0].refusals.getSlot = { status: 500 }
    expect(await rpc.call('getSlot', [], signal)).toMatchObject({ ok: false, fault: 'unreachable' })
    nodes[0].refusals = {}
    expect(await rpc.call('getSlot', [], signal)).toMatchObject({ ok: false, fault: 'other_chain' })
    expect(await rpc.call('getSlot', [], signal)).toMatchObject({ ok: true })
    expect(nodes[1].asked('getSlot')).toEqual([])
  })

  it('is not subscribed to, also when calls go elsewhere', async () => {
    nodes[1].genesis = DEVNET
    nodes[0].handshake = 403
    const started = start({ rpcUrls: [nodes[0].url] })
    const reason = `127.0.0.1:${nodes[1].port} is an endpoint of another chain`
    await expect
      .poll(() => (started.describe().latestError as { message: string } | null)?.message, soon)
      .toContain(reason)
    expect(nodes[1].peers.size).toBe(0)
    nodes[0].handshake = null
    await expect.poll(() => started.describe().isConnected, soon).toBe(true)
    expect(started.describe().host).toBe(`127.0.0.1:${nodes[0].port}`)
  })
})

it('an endpoint that asks for a pause while it is checked is not told to lack what it was not asked for', async () => {
  const [node] = nodes
  node.refusals.getSlot = { status: 429, headers: { 'Retry-After': '60' } }
  const pulse = setInterval(() => node.nextSlot(), 20)
  const report = await checkEndpoint(node.url, socketOf(node), systemClock, 3_000)
  clearInterval(pulse)
  expect(report).toMatchObject({
    ...{ problem: null, slot: null, lacks: [] },
    unchecked: ['getMultipleAccounts', 'getSignaturesForAddress'],
  })
  expect(node.asked('getMultipleAccounts')).toEqual([])
  // Many endpoints allow few of the dear calls, and all of the others.
  node.refusals = { getMultipleAccounts: { status: 429, headers: { 'Retry-After': '60' } } }
  const dear = await checkEndpoint(node.url, socketOf(node), systemClock, 1_000)
  expect(dear).toMatchObject({ lacks: [], unchecked: ['getMultipleAccounts', 'getSignaturesForAddress'] })
  node.refusals.getGenesisHash = 'hang'
  expect((await checkEndpoint(node.url, socketOf(node), systemClock, 50)).problem).toContain('did not answer')
})

it('whose chain is known is subscribed to again, however many calls hang', async () => {
  const rpc = new RpcClient({
    endpoints: endpointsOf([nodes[0].url]),
    ...{ requestsPerSecond: 1_000, genesis: nodes[0].genesis },
  })
  const [endpoint] = endpointsOf([nodes[0].url])
  expect(await rpc.isOfChain(endpoint, signal)).toBe(true)
  nodes[0].refusals.getSlot = 'hang'
  const stopping = new AbortController()
  const calls = Array.from({ length: RPC_CONCURRENCY }, () => rpc.call('getSlot', [], stopping.signal))
  const first = await Promise.race([...calls, rpc.isOfChain(endpoint, signal)])
  stopping.abort()
  expect(first).toBe(true)
})

describe('calls', () => {
  it('that fail together move to the next endpoint once', async () => {
    const rpc = new RpcClient({
      endpoints: endpointsOf(nodes.map(({ url }) => url)),
      requestsPerSecond: 1_000,
    })
    nodes[0].refusals.getSlot = { status: 500 }
    const answers = await Promise.all([rpc.call('getSlot', [], signal), rpc.call('getSlot', [], signal)])
    expect(answers).toMatchObject([{ ok: false }, { ok: false }])
    expect(rpc.host).toBe(`127.0.0.1:${nodes[1].port}`)
  })

  it.each<Refusal>(['hang', { status: 429, headers: { 'Retry-After': '20' } }])(
    'for SOL’s price that find no answer hold up no stop (%o)',
    async (refusal) => {
      nodes[0].refusals.getMultipleAccounts = refusal
      const stopped = start({ rpcUrls: [nodes[0].url] })
      await expect.poll(() => nodes[0].asked('getMultipleAccounts').length, soon).toBe(1)
      feed = null
      expect(await within(5_000, stopped.stop())).toBe(true)
      expect(stopped.describe().state).toBe('stopped')
    },
  )

  it.each<[string, number, (response: ServerResponse) => void]>([
    [
      'with status 429 and a body that does not end',
      2_000,
      (response) => response.writeHead(429, { 'Retry-After': '2' }).write('x'),
    ],
    [
      'with an error of status 200',
      RPC_PAUSE_MS,
      (response) =>
        response.end(
          JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32_429, message: 'slow down' } }),
        ),
    ],
  ])('that are too many, told %s, are followed by a pause', async (_, pauseMs, refuse) => {
    const server = createServer((request, response) => {
      request.resume()
      refuse(response)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const endpoints = endpointsOf([`http://127.0.0.1:${port}`, nodes[0].url])
    try {
      const rpc = new RpcClient({ endpoints, requestsPerSecond: 1_000, timeoutMs: 5_000 })
      expect(await rpc.call('getSlot', [], signal)).toMatchObject({ fault: 'rate_limited' })
      const refusedAtMs = performance.now()
      expect(await rpc.call('getSlot', [], signal)).toMatchObject({ ok: true })
      expect(performance.now() - refusedAtMs).toBeGreaterThan(pauseMs - 200)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  it.each([
    [
      'are had as long as they go on coming: a block does so for long on a slow line',
      4,
      { ok: true, result: 1 },
    ],
    ['without an end are given up', Number.POSITIVE_INFINITY, { ok: false, fault: 'timeout' }],
  ])('%s', async (_, timeouts, expected) => {
    const timeoutMs = 300
    const answer = JSON.stringify({ jsonrpc: '2.0', id: 1, result: 1 })
    const server = createServer(async (request, response) => {
      request.resume()
      const startedMs = performance.now()
      while (performance.now() - startedMs < timeouts * timeoutMs && !response.destroyed) {
        response.write(' ')
        await delay(timeoutMs / 10)
      }
      response.end(answer)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const endpoints = endpointsOf([`http://127.0.0.1:${port}`])
    try {
      const rpc = new RpcClient({ endpoints, requestsPerSecond: 1_000, timeoutMs })
      expect(await rpc.call('getBlock', [1], signal)).toMatchObject(expected)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  it('of a key that is refused say so, though the answer has no number', async () => {
    const rpc = new RpcClient({ endpoints: endpointsOf([nodes[0].url]), requestsPerSecond: 1_000 })
    // Behind `id`, so it counts.
    nodes[0].refusals.getSlot = { error: { code: -32_000, message: 'bad key' }, id: null } as never
    const answer = await rpc.call('getSlot', [], signal)
    expect(answer).toMatchObject({ fault: 'refused', message: expect.stringContaining('bad key') })
  })

  it('that fail for a while lose no pool for good: the swaps that waited are counted', async () => {
    const world = new ChainWorld(3, { startMs: Date.now() })
    world.launch(SOL)
    const [token] = world.tokens
    while (token.pool === null) world.trade(token)
    const [node] = nodes
    node.refusals.getMultipleAccounts = { status: 500 }
    const started = start({ rpcUrls: [node.url], socketUrls: [socketOf(node)] })
    await expect.poll(() => started.describe().isConnected, soon).toBe(true)
    const pools = () => started.describe().pools as { swapsDropped: number }
    node.confirm(world.trade(token))
    await expect.poll(() => pools().swapsDropped, soon).toBe(1)
    for (const [address, account] of world.accounts) node.accounts.set(address, account)
    node.refusals = {}
    const swap = world.trade(token)
    node.confirm(swap)
    const trades = () => sink.data.flatMap((event) => (event.type === 'trade' ? [event.tx] : []))
    await expect.poll(trades, soon).toEqual([swap.signature])
  })
})

const NO_ANSWERS: Refusal[] = ['hang', { status: 429, headers: { 'Retry-After': '30' } }]
it.each(NO_ANSWERS)(
  'a lost connection is opened again though calls find no answer, and a first one without a price of SOL (%o)',
  async (refusal) => {
    const [node] = nodes
    node.refusals.getMultipleAccounts = refusal
    const started = start({ rpcUrls: [node.url], socketUrls: [socketOf(node)] })
    await expect.poll(() => started.describe().isConnected, { ...soon, timeout: 5_000 }).toBe(true)
    node.setSolPrice(160, Date.now())
    await expect.poll(() => sink.data, soon).toMatchObject([{ type: 'solPrice', usd: 160 }])
    node.refusals.getGenesisHash = refusal
    for (const peer of node.peers) peer.terminate()
    await expect.poll(() => started.describe().connects, { ...soon, timeout: 5_000 }).toBe(2)
    expect(started.describe()).toMatchObject({ isConnected: true, state: 'running' })
  },
)

it('a subscription that says nothing any more while slots come ends its connection, with a gap of that time', async () => {
  const [node] = nodes
  const started = start({ rpcUrls: [node.url], socketUrls: [socketOf(node)], logsSilenceMsMax: 200 })
  await expect.poll(() => started.describe().isConnected, soon).toBe(true)
  const slots = setInterval(() => node.nextSlot(), 20)
  try {
    await expect.poll(() => started.describe().connects, soon).toBeGreaterThan(1)
  } finally {
    clearInterval(slots)
  }
  expect(started.describe().latestError).toMatchObject({
    message: expect.stringMatching(/^no log of (pump|amm) for 200 ms/),
  })
  const [, connected, lost] = sink.links
  expect(lost).toMatchObject({ type: 'disconnect', sinceMs: expect.any(Number) })
  // Nothing had come since it was subscribed to: the gap begins there, give or take the tick of the clocks.
  expect(Math.abs((lost as { sinceMs: number }).sinceMs - connected.ts)).toBeLessThan(10)
})

it.each(['is found out', 'ends by itself', 'ends with its process'])(
  'a connection that is silent of one program and %s: all that was not told since is fetched',
  { tags: 'drill' },
  async (how) => {
    const [node] = nodes
    const startMs = Date.now() - 60_000
    const world = new ChainWorld(17, { startMs, slot: slotAt(startMs), truncated: 0 })
    node.slot = world.slot
    const logsSilenceMsMax = how === 'is found out' ? 1_000 : 60_000
    const endpoint = { rpcUrls: [node.url], socketUrls: [socketOf(node)], logsSilenceMsMax }
    let started = start(endpoint, 'all', HEAL_MS)
    await expect.poll(() => started.describe().isConnected, soon).toBe(true)
    const passing = setInterval(() => {
      world.pass(400)
      while (node.slot < world.slot) node.history.addBlock(node.nextSlot())
      const told = [world.step(), world.stranger()]
      for (const [address, account] of world.accounts) node.accounts.set(address, account)
      for (const transaction of told) node.confirm(transaction)
    }, 10)
    const had = () =>
      new Set(sink.data.map((event) => (event.type === 'trade' ? `${event.tx}:${event.eventIndex}` : '')))
    const lost = () => {
      const trades = had()
      return world.ledger.filter(({ signature, eventIndex }) => !trades.has(`${signature}:${eventIndex}`))
    }
    try {
      await expect.poll(() => had().size, soon).toBeGreaterThan(20)
      // What is asked for again lies within what the node has.
      const firstSlot = slotAt(startMs)
      await expect.poll(() => node.slot, soon).toBeGreaterThan(firstSlot + 2 * HEAL_BACK_SLOTS)
      node.mute(PUMP_PROGRAM)
      const mutedSlot = node.slot
      await expect.poll(() => node.slot, soon).toBeGreaterThan(mutedSlot + 60)
      if (how === 'ends by itself') for (const peer of node.peers) peer.terminate()
      if (how === 'ends with its process') {
        await started.stop()
        const recorded = sink.data.flatMap((event): RecordedPlace[] =>
          event.type === 'trade'
            ? [
                {
                  ...{ tx: event.tx!, eventIndex: event.eventIndex!, slot: event.slot!, ts: event.ts },
                  isCurve: event.curveTokens != null,
                },
              ]
            : [],
        )
        const timeMs = Math.max(...recorded.map(({ ts }) => ts))
        started = start(endpoint, 'all', HEAL_MS, { recorded, recordedTo: { timeMs, awaySinceMs: null } })
      } else await expect.poll(() => started.describe().connects, soon).toBe(2)
      await expect.poll(() => started.describe().healing, soon).toMatchObject({ healed: 1, missing: [] })
    } finally {
      clearInterval(passing)
    }
    await expect.poll(lost, soon).toEqual([])
    for (const link of sink.links)
      if ('sinceMs' in link) expect(link.sinceMs).toBe(Math.round(Number(link.sinceMs)))
  },
)

it.each([
  ['https://node.example/SECRETKEY/x', 'no such path: /SECRETKEY/x'],
  ['https://node.example/?SECRETKEY', 'unknown key SECRETKEY'],
  ['https://node.example/?k=SECRET%20KEY', 'unknown key SECRET KEY'],
  ['https://user:SECRET%2FKEY@node.example', 'not allowed: SECRET/KEY'],
  ['https://node.example/SECRET%2FKEY', 'unknown: SECRET/KEY'],
])('of %s nothing is told but the host', (url, message) => {
  const told = withoutAddresses(`${url} says ${message}`, endpointsOf([url]))
  expect(told).not.toMatch(/SECRET|KEY/)
  expect(told).toContain('node.example')
})
