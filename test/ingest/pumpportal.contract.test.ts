// Runs the PumpPortal feed against a local server behind a failing network. Never reaches the real PumpPortal.
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type PumpPortalOptions, startPumpPortal } from '../../src/ingest/pumpportal/pumpportal.ts'
import type { Feed, FeedLog } from '../../src/ingest/types.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Market } from '../../src/market/market.ts'
import type { EventSink, MarketEvent } from '../../src/schema/event.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { FRAMES } from '../fuzz/entrances.ts'
import { Mutator } from '../support/mutations.ts'
import { FaultyNetwork } from '../support/upstreams/faulty-network.ts'
import {
  createFrame,
  migrateFrame,
  PATH,
  PumpPortalServer,
  tradeFrame,
} from '../support/upstreams/pumpportal-server.ts'
import { MemorySink } from './memory-sink.ts'

const mint = mintOfSymbol('contract')
const soon = { interval: 2, timeout: 10_000 }
/** Short waits without jitter, so that tests are fast. */
const HASTE: Omit<PumpPortalOptions, 'url'> = { reconnectMsMin: 1, reconnectMsMax: 1, random: () => 0 }

let upstream: PumpPortalServer
let network: FaultyNetwork
let sink: MemorySink
let lines: { level: string; message: string; error?: string; suppressed?: number }[]
let feeds: Feed[]
const log: FeedLog = {
  info: (details, message) => void lines.push({ ...details, level: 'info', message }),
  warn: (details, message) => void lines.push({ ...details, level: 'warn', message }),
  error: (details, message) => void lines.push({ ...details, level: 'error', message }),
}

beforeEach(async () => {
  upstream = await PumpPortalServer.start()
  network = await FaultyNetwork.before(upstream.port)
  sink = new MemorySink()
  lines = []
  feeds = []
})
afterEach(async () => {
  for (const feed of feeds) await feed.stop()
  await network.close()
  await upstream.close()
})

function start(more: Partial<PumpPortalOptions> = {}, into: EventSink = sink): Feed {
  const url = `ws://127.0.0.1:${network.port}${PATH}`
  const feed = startPumpPortal({ url, ...HASTE, ...more }, into, systemClock, log)
  feeds.push(feed)
  return feed
}
const kinds = (events: readonly MarketEvent[]) =>
  events.map(({ type }) => type).filter((type) => type !== 'disconnect')
const story = [createFrame(mint), tradeFrame(mint, 'a'), tradeFrame(mint, 'b'), migrateFrame(mint)]

describe('a network that fails', () => {
  test('when the connection is cut anywhere, each event still arrives once, over one connection at a time', async () => {
    upstream.onPeer = (peer) => {
      for (const frame of story) peer.send(JSON.stringify(frame))
    }
    const STEP_BYTES = 11
    const CUTS = 140
    network.faultOf = (connection) => (connection < CUTS ? { cutAfterBytes: connection * STEP_BYTES } : {})
    const feed = start()
    await expect.poll(() => network.connections.total, soon).toBe(CUTS + 1)
    await expect.poll(() => feed.describe().isConnected, soon).toBe(true)
    upstream.send(tradeFrame(mint, 'last'))
    await expect.poll(() => sink.events.at(-1), soon).toMatchObject({ type: 'trade', tx: 'last' })
    expect(kinds(sink.events)).toEqual(['token', 'trade', 'trade', 'trade', 'graduated', 'trade'])
    const { connects, disconnects } = feed.describe()
    expect(disconnects).toBe((connects as number) - 1)
    expect(sink.events.filter(({ type }) => type === 'disconnect')).toHaveLength(disconnects as number)
    expect(network.connections.most).toBeLessThanOrEqual(1)
  })

  test('a half-open connection is detected by a ping and replaced', async () => {
    const feed = start({ pingMs: 20 })
    await expect.poll(() => upstream.peers.size, soon).toBe(1)
    network.faultOf = () => ({})
    upstream.freeze()
    await expect.poll(() => feed.describe().connects, soon).toBe(2)
    expect(feed.describe().latestError).toMatchObject({ message: 'no answer to a ping within 20 ms' })
    expect(network.connections.open).toBe(1)
  })

  test('a connection without data is replaced even if pings are answered', async () => {
    const feed = start({ pingMs: 100, silenceMsMax: 350 })
    await expect.poll(() => feed.describe().connects, soon).toBe(2)
    expect(feed.describe().latestError).toMatchObject({ message: 'no data for 350 ms' })
    expect(network.connections.most).toBeLessThanOrEqual(1)
  })

  test.each([
    ['that is never answered', 'hang' as const, {}],
    ['that drips in for ever', 'take' as const, { dripMs: 5 }],
  ])('a handshake %s is given up, and the next one succeeds', async (_, handshake, fault) => {
    upstream.handshake = handshake
    network.faultOf = (connection) => (connection < 3 ? fault : {})
    const feed = start({ connectMsMax: 40 })
    await expect.poll(() => network.connections.total, soon).toBe(3)
    expect(feed.describe()).toMatchObject({
      connects: 0,
      isConnected: false,
      latestError: { message: 'no connection within 40 ms' },
    })
    upstream.handshake = 'take'
    await expect.poll(() => feed.describe().isConnected, soon).toBe(true)
    expect(network.connections.open).toBe(1)
  })

  test('a frame that stalls ends the connection by its ping; frames that arrive byte by byte are read', async () => {
    upstream.onPeer = (peer) => peer.send(JSON.stringify(migrateFrame(mint)))
    network.faultOf = (connection) => (connection === 0 ? { stallAfterBytes: 200 } : { dripMs: 0 })
    const feed = start({ pingMs: 800 })
    await expect.poll(() => kinds(sink.events), soon).toEqual(['graduated'])
    expect(feed.describe()).toMatchObject({ connects: 2, disconnects: 1 })
  })

  test('hundreds of reconnects leak neither sockets nor memory', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    upstream.onPeer = (peer) => {
      for (const frame of story) peer.send(JSON.stringify(frame), () => peer.terminate())
    }
    const feed = start()
    const heapBytesAfter = async (connects: number) => {
      await expect.poll(() => feed.describe().connects as number, soon).toBeGreaterThanOrEqual(connects)
      sink.received.length = 0
      lines.length = 0
      collect()
      return process.memoryUsage().heapUsed
    }
    const early = await heapBytesAfter(100)
    const late = await heapBytesAfter(400)
    expect((late - early) / 300).toBeLessThan(4_096)
    expect(network.connections.most).toBeLessThanOrEqual(1)
    expect(upstream.connections.open).toBeLessThanOrEqual(2)
    await feed.stop()
    await expect.poll(() => network.connections.open, soon).toBe(0)
    const sockets = process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap')
    expect(sockets.length).toBeLessThanOrEqual(2)
  })
})

describe('an upstream that misbehaves', () => {
  test('repeated and reordered frames lead to the same market', async () => {
    const market = new Market({ tokensMax: 10 })
    market.apply({ type: 'solPrice', ts: Date.now(), usd: 150 }, Date.now())
    const feed = start({}, market)
    await expect.poll(() => upstream.peers.size, soon).toBe(1)
    const [create, buy, other, migrate] = story
    for (const frame of [migrate, buy, buy, create, other, create, migrate, buy]) upstream.send(frame)
    await expect.poll(() => feed.describe().duplicates, soon).toBe(4)
    expect(market.datapoint(mint)).toMatchObject({
      name: 'A Token',
      symbol: 'TOK',
      bondingComplete: true,
      tradeCount: 3,
    })
  })

  test('hostile frames are counted, and the frames after them are applied', async () => {
    const feed = start()
    await expect.poll(() => upstream.messages.length, soon).toBe(2)
    const deep = (depth: number) => `{"errors":${'['.repeat(depth)}${']'.repeat(depth)}}`
    const tricks = [
      deep(100_000),
      '{"errors":{"toString":1}}',
      '{"txType":"buy","signature":{"length":{"toString":1}}}',
      '{"message":{"length":{"toString":1}}}',
      '"text"',
      '[]',
      '{}',
      '',
      '\u0000',
      Buffer.from([1, 2, 3]),
    ]
    for (const trick of tricks) upstream.send(trick)
    const mutator = new Mutator(3)
    for (let at = 0; at < 500; at++) upstream.send(mutator.json(mutator.pick(FRAMES)))
    upstream.send(tradeFrame(mint, 'after'))
    await expect.poll(() => sink.events.at(-1), soon).toMatchObject({ tx: 'after' })
    const { rejected, connects, disconnects } = feed.describe()
    expect({ connects, disconnects }).toEqual({ connects: 1, disconnects: 0 })
    expect(rejected.upstream_error).toBeGreaterThanOrEqual(2)
    expect(rejected.unknown_frame).toBeGreaterThanOrEqual(7)
    expect(rejected.fault).toBeUndefined()
    // One log line for all reports of the upstream, not one for each.
    expect(lines.filter(({ message }) => message === 'PumpPortal reports an error')).toHaveLength(1)
  })

  test('an exception while a frame is applied is logged, and the next frame is applied', async () => {
    let isBroken = true
    const broken: EventSink = {
      apply: (event, receivedAtMs) => {
        if (isBroken) throw new Error('broken')
        return sink.apply(event, receivedAtMs)
      },
    }
    const feed = start({}, broken)
    await expect.poll(() => upstream.peers.size, soon).toBe(1)
    upstream.send(tradeFrame(mint, 'a'))
    await expect.poll(() => feed.describe().rejected.fault, soon).toBe(1)
    expect(lines.at(-1)).toMatchObject({ level: 'error', message: 'a frame could not be applied' })
    isBroken = false
    upstream.send(tradeFrame(mint, 'b'))
    await expect.poll(() => sink.events.length, soon).toBe(1)
  })

  test('bytes that are not a frame, and a frame of 10 MB, end only the connection', async () => {
    const feed = start()
    await expect.poll(() => upstream.peers.size, soon).toBe(1)
    upstream.sendBytes(Buffer.alloc(4_096, 0xff))
    await expect.poll(() => feed.describe().connects, soon).toBe(2)
    await expect.poll(() => upstream.peers.size, soon).toBe(1)
    const before = process.memoryUsage().arrayBuffers
    upstream.send(`{"message":"${'x'.repeat(10_000_000)}"}`)
    await expect.poll(() => feed.describe().connects, soon).toBe(3)
    expect(feed.describe().latestError).toMatchObject({ message: 'Max payload size exceeded' })
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(40e6)
    await expect.poll(() => upstream.peers.size, soon).toBe(1)
    upstream.send(tradeFrame(mint, 'after'))
    await expect.poll(() => kinds(sink.events), soon).toEqual(['trade'])
  })

  test.each([401, 404, 429, 500])(
    'a handshake refused with %i is told of and tried again',
    async (status) => {
      upstream.handshake = status
      const feed = start()
      await expect.poll(() => network.connections.total, soon).toBeGreaterThan(2)
      expect(feed.describe()).toMatchObject({
        state: 'reconnecting',
        isConnected: false,
        latestError: { message: `Unexpected server response: ${status}` },
      })
      expect(network.connections.most).toBeLessThanOrEqual(1)
      upstream.handshake = 'take'
      await expect.poll(() => feed.describe().isConnected, soon).toBe(true)
    },
  )

  test('waits grow while each connection drops after one event, and shrink when one lasts', async () => {
    const startedAtMs: number[] = []
    let frames = 0
    upstream.onPeer = (peer) => {
      startedAtMs.push(performance.now())
      peer.send(JSON.stringify(tradeFrame(mint, `${frames++}`)), () => peer.terminate())
    }
    const feed = start({ reconnectMsMin: 10, reconnectMsMax: 5_000, random: () => 0.999, steadyMs: 50 })
    await expect.poll(() => startedAtMs.length, soon).toBe(6)
    const gapsMs = startedAtMs.slice(1).map((atMs, index) => atMs - startedAtMs[index])
    for (const [index, gapMs] of gapsMs.entries()) expect(gapMs).toBeGreaterThan(10 * 2 ** (index + 1) * 0.99)
    upstream.onPeer = () => {}
    await expect.poll(() => feed.describe().connects, soon).toBe(7)
    await sleep(60)
    const droppedAtMs = performance.now()
    upstream.drop()
    await expect.poll(() => feed.describe().connects, soon).toBe(8)
    expect(performance.now() - droppedAtMs).toBeLessThan(320)
  })

  test('the key appears in no log line and no status, whatever error the network reports', async () => {
    upstream.onPeer = (peer) => peer.send(JSON.stringify({ errors: 'the key secret-key is not good' }))
    const feed = start({ apiKey: 'secret-key' })
    await expect
      .poll(() => feed.describe().latestError, soon)
      .toMatchObject({ message: 'the key … is not good' })
    expect(JSON.stringify([lines, feed.describe()])).not.toContain('secret-key')
  })
})

describe('logging', () => {
  test('an unreachable upstream is logged at once and then rarely, and its status has the error and the time', async () => {
    await upstream.close()
    const feed = startPumpPortal({ url: upstream.url, ...HASTE }, sink, systemClock, log)
    feeds.push(feed)
    await feed.ready
    expect(feed.describe()).toMatchObject({
      state: 'reconnecting',
      isConnected: false,
      latestError: { message: expect.stringContaining('ECONNREFUSED') },
    })
    expect(Date.now() - (feed.describe().stateSinceMs as number)).toBeLessThan(10_000)
    expect(feed.whyNotReady?.()).toMatch(/^PumpPortal has not been reached yet: .*ECONNREFUSED/)
    await sleep(60)
    expect(lines).toEqual([
      expect.objectContaining({
        level: 'warn',
        message: 'not connected: trying again',
        attempt: 1,
        suppressed: 0,
      }),
    ])
    const back = await PumpPortalServer.start(upstream.port)
    await expect.poll(() => feed.describe().isConnected, soon).toBe(true)
    expect(feed.whyNotReady?.()).toBe(null)
    expect(feed.describe().state).toBe('running')
    await feed.stop()
    await back.close()
  })
})
