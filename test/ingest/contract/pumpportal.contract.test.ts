// Runs the PumpPortal feed against a local server behind a failing network. Never reaches the real PumpPortal.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PumpPortal, type PumpPortalOptions } from '../../../src/ingest/pumpportal/pumpportal.ts'
import type { Feed } from '../../../src/ingest/types.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { Market } from '../../../src/market/market.ts'
import type { EventSink, MarketEvent } from '../../../src/schema/event.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { FRAMES } from '../../fuzz/entrances.ts'
import { Mutator } from '../../support/mutations.ts'
import { FaultyNetwork } from '../../support/upstreams/faulty-network.ts'
import {
  createFrame,
  migrateFrame,
  PATH,
  PumpPortalServer,
  tradeFrame,
} from '../../support/upstreams/pumpportal-server.ts'
import { MemoryLog, MemorySink } from '../memory-sink.ts'

const mint = mintOfSymbol('contract')
const soon = { interval: 2, timeout: 10_000 }
/** Short waits without jitter, so that tests are fast. */
const HASTE: Omit<PumpPortalOptions, 'url'> = { reconnectMsMin: 1, reconnectMsMax: 1, random: () => 0 }

let upstream: PumpPortalServer
let network: FaultyNetwork
let sink: MemorySink
let log: MemoryLog
let feeds: Feed[]

beforeEach(async () => {
  upstream = await PumpPortalServer.start()
  network = await FaultyNetwork.before(upstream.port)
  sink = new MemorySink()
  log = new MemoryLog()
  feeds = []
})
afterEach(async () => {
  for (const feed of feeds) await feed.stop()
  await network.close()
  await upstream.close()
})

function start(more: Partial<PumpPortalOptions> = {}, into: EventSink = sink): Feed {
  const url = `ws://127.0.0.1:${network.port}${PATH}`
  const feed = new PumpPortal({ url, ...HASTE, ...more }, into, systemClock, log)
  feeds.push(feed)
  return feed
}
const kinds = (events: readonly MarketEvent[]) => events.map(({ type }) => type)
const story = [createFrame(mint), tradeFrame(mint, 'a'), tradeFrame(mint, 'b'), migrateFrame(mint)]
/** A frame of a server: the first byte says what it is, see RFC 6455, section 5.2. */
function frameOf(firstByte: number, payload: Uint8Array | string): Buffer {
  const bytes = Buffer.from(payload)
  const length = Buffer.of(126, bytes.length >> 8, bytes.length & 0xff)
  return Buffer.concat([Buffer.of(firstByte), bytes.length < 126 ? Buffer.of(bytes.length) : length, bytes])
}
/** The feed is away from the start on, and away and back in turn: exactly one event for each. */
function expectPairs(feed: Feed): void {
  const { disconnects } = feed.describe()
  expect(kinds(sink.links)).toEqual(sink.links.map((_, index) => (index % 2 ? 'reconnect' : 'disconnect')))
  expect(sink.links.filter(({ type }) => type === 'disconnect')).toHaveLength((disconnects as number) + 1)
  let wholeUntilMs = 0
  for (const link of sink.links) {
    if (link.type === 'reconnect') wholeUntilMs = link.ts
    else expect(link.sinceMs).toBeGreaterThanOrEqual(wholeUntilMs)
    expect(link.ts).toBeGreaterThanOrEqual(wholeUntilMs)
  }
}

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
    await expect.poll(() => feed.describe().state, soon).toBe('running')
    upstream.send(tradeFrame(mint, 'last'))
    await expect.poll(() => sink.events.at(-1), soon).toMatchObject({ type: 'trade', tx: 'last' })
    expect(kinds(sink.data)).toEqual(['token', 'trade', 'trade', 'trade', 'graduated', 'trade'])
    expectPairs(feed)
    expect(sink.links.at(-1)?.type).toBe('reconnect')
    expect(network.connections.most).toBeLessThanOrEqual(1)
  })

  test('when it is cut after the handshake or after any subscription, all of them are made again', async () => {
    const feed = start({ apiKey: 'key' })
    await expect.poll(() => feed.describe().state, soon).toBe('running')
    upstream.send(createFrame(mint))
    await expect.poll(() => upstream.messages.length, soon).toBe(3)
    for (const dropAfterMessages of [0, 1, 2, 3]) {
      upstream.dropAfterMessages = dropAfterMessages
      upstream.drop()
      const { total } = network.connections
      await expect.poll(() => network.connections.total, soon).toBeGreaterThan(total + 2)
    }
    upstream.dropAfterMessages = null
    upstream.messages.length = 0
    upstream.drop()
    await expect
      .poll(() => upstream.messages.slice(-3).map(({ method }) => method), soon)
      .toEqual(['subscribeNewToken', 'subscribeMigration', 'subscribeTokenTrade'])
    await expect.poll(() => feed.describe().state, soon).toBe('running')
    upstream.send(tradeFrame(mint, 'after'))
    await expect.poll(() => sink.data.at(-1), soon).toMatchObject({ tx: 'after' })
    expectPairs(feed)
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

  test('data count as missing since the last frame, not since the loss was found', async () => {
    const feed = start({ pingMs: 300 })
    await expect.poll(() => feed.describe().state, soon).toBe('running')
    upstream.send(tradeFrame(mint, 'last'))
    await expect.poll(() => sink.data.length, soon).toBe(1)
    const lastAtMs = feed.describe().latestFrameAtMs
    upstream.freeze()
    await expect.poll(() => sink.links.length, soon).toBe(4)
    const [, , lost] = sink.links
    expect(lost).toMatchObject({ type: 'disconnect', sinceMs: lastAtMs })
    expect(lost.ts - (lastAtMs as number)).toBeGreaterThan(200)
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

  test('a frame that stalls ends the connection by its ping; frames that arrive byte by byte are read', {
    tags: 'drill',
  }, async () => {
    upstream.onPeer = (peer) => peer.send(JSON.stringify(migrateFrame(mint)))
    network.faultOf = (connection) => (connection === 0 ? { stallAfterBytes: 200 } : { dripMs: 0 })
    const feed = start({ pingMs: 800 })
    await expect.poll(() => kinds(sink.data), soon).toEqual(['graduated'])
    expect(feed.describe().connects).toBe(2)
    // Nothing had come over the first connection.
    expect(kinds(sink.links)).toEqual(['disconnect', 'reconnect'])
  })

  test('five hundred reconnects leak no socket, no timer and no memory', { tags: 'drill' }, async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    upstream.onPeer = (peer) => {
      for (const frame of story) peer.send(JSON.stringify(frame), () => peer.terminate())
    }
    const feed = start()
    const countOf = (kind: string) => process.getActiveResourcesInfo().filter((each) => each === kind).length
    const after = async (connects: number) => {
      await expect
        .poll(() => feed.describe().connects as number, { ...soon, timeout: 30_000 })
        .toBeGreaterThanOrEqual(connects)
      sink.received.length = 0
      log.lines.length = 0
      upstream.messages.length = 0
      upstream.queries.length = 0
      collect()
      return {
        heapBytes: process.memoryUsage().heapUsed,
        sockets: countOf('TCPSocketWrap'),
        timers: countOf('Timeout'),
      }
    }
    const early = await after(100)
    const late = await after(600)
    expect((late.heapBytes - early.heapBytes) / 500).toBeLessThan(4_096)
    // One connection may be open at one time and none at the other: with the network in between it has four ends.
    expect(late.sockets - early.sockets).toBeLessThanOrEqual(4)
    expect(late.timers - early.timers).toBeLessThanOrEqual(4)
    expect(network.connections.most).toBeLessThanOrEqual(1)
    expect(upstream.connections.open).toBeLessThanOrEqual(2)
    await feed.stop()
    await expect.poll(() => network.connections.open, soon).toBe(0)
    await expect.poll(() => upstream.connections.open, soon).toBe(0)
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
    const whole = JSON.stringify(tradeFrame(mint, 'whole'))
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
      Buffer.from(whole),
      whole.slice(0, -1),
      `${whole}${whole}`,
      whole.replace('1000', '1e999'),
      whole.replace('1000', '-1'),
      whole.replace('1000', '"1000"'),
      whole.replace('1000', '9'.repeat(400)),
      whole.replace('"buy"', '"swap"'),
    ]
    for (const trick of tricks) upstream.send(trick)
    const mutator = new Mutator(3)
    for (let at = 0; at < 500; at++) upstream.send(mutator.json(mutator.pick(FRAMES)))
    upstream.send(tradeFrame(mint, 'after'))
    await expect.poll(() => sink.events.at(-1), soon).toMatchObject({ tx: 'after' })
    const { rejected, connects, disconnects } = feed.describe()
    expect({ connects, disconnects }).toEqual({ connects: 1, disconnects: 0 })
    expect(rejected.upstream_error).toBeGreaterThanOrEqual(2)
    expect(rejected.unknown_frame).toBeGreaterThanOrEqual(15)
    expect(rejected.fault).toBeUndefined()
    expect(sink.data.some((event) => event.type === 'trade' && event.tx === 'whole')).toBe(false)
    // One log line for all reports of the upstream, not one for each.
    expect(log.lines.filter(({ message }) => message === 'PumpPortal reports an error')).toHaveLength(1)
  })

  test.each([
    ['bytes that are no frame', Buffer.alloc(4_096, 0xff), /^Invalid WebSocket frame/],
    [
      'a text that is no UTF-8',
      frameOf(0x81, Buffer.alloc(64, 0xff)),
      /^Invalid WebSocket frame: invalid UTF-8/,
    ],
    ['a compressed frame, which was not agreed on', frameOf(0xc1, 'x'.repeat(99)), /RSV1 must be clear/],
    [
      'a frame that claims 2^62 bytes',
      Buffer.of(0x81, 127, 0x40, 0, 0, 0, 0, 0, 0, 0),
      /^(Unsupported|Max payload)/,
    ],
    ['a fragment that continues nothing', frameOf(0x80, 'x'), /invalid opcode 0/],
    [
      'a frame without end',
      Buffer.concat([frameOf(0x01, 'x'), ...Array(20_000).fill(frameOf(0x00, ''))]),
      /fragments/,
    ],
    ['a close with a reserved code', frameOf(0x88, Buffer.of(0x03, 0xed)), /invalid status code 1005/],
    ['a close', frameOf(0x88, Buffer.of(0x03, 0xe9)), /^closed by the upstream \(1001\)/],
  ])('%s ends only the connection', async (_, bytes, message) => {
    const feed = start()
    await expect.poll(() => feed.describe().state, soon).toBe('running')
    upstream.sendBytes(bytes)
    await expect.poll(() => feed.describe().connects, soon).toBe(2)
    expect(feed.describe().latestError?.message).toMatch(message)
    await expect.poll(() => feed.describe().state, soon).toBe('running')
    upstream.send(tradeFrame(mint, 'after'))
    await expect.poll(() => kinds(sink.data), soon).toEqual(['trade'])
    expectPairs(feed)
    expect(feed.describe().disconnects).toBe(1)
  })

  test.each([
    ['a frame', (text: string) => upstream.send(text)],
    [
      'fragments',
      (text: string) => {
        for (let from = 0; from < text.length; from += 60_000)
          upstream.sendBytes(frameOf(from === 0 ? 0x01 : 0x00, text.slice(from, from + 60_000)))
      },
    ],
  ])('10 MB in %s are not kept, and end only the connection', async (_, send) => {
    const feed = start()
    await expect.poll(() => feed.describe().state, soon).toBe('running')
    const before = process.memoryUsage().arrayBuffers
    send(`{"message":"${'x'.repeat(10_000_000)}"}`)
    await expect.poll(() => feed.describe().connects, soon).toBe(2)
    expect(feed.describe().latestError).toMatchObject({ message: 'Max payload size exceeded' })
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(40e6)
    await expect.poll(() => feed.describe().state, soon).toBe('running')
    upstream.send(tradeFrame(mint, 'after'))
    await expect.poll(() => kinds(sink.data), soon).toEqual(['trade'])
  })

  test('a message whose fragments drip in for ever ends by its silence, although each ping is answered', async () => {
    const feed = start({ pingMs: 50, silenceMsMax: 300 })
    await expect.poll(() => feed.describe().state, soon).toBe('running')
    upstream.sendBytes(frameOf(0x01, 'x'))
    const dripping = setInterval(() => upstream.sendBytes(frameOf(0x00, 'x')), 10)
    await expect.poll(() => feed.describe().disconnects, soon).toBe(1)
    clearInterval(dripping)
    expect(feed.describe().latestError).toMatchObject({ message: 'no data for 300 ms' })
  })

  test('an upstream that pings but does not read is left before its pongs fill the memory', async () => {
    // Without the network in between, which would read.
    const feed = start({ url: upstream.url, pingMs: 60_000 })
    await expect.poll(() => feed.describe().state, soon).toBe('running')
    upstream.freeze()
    const pings = Buffer.concat(Array(2_000).fill(frameOf(0x89, 'x'.repeat(125))))
    const flooding = setInterval(() => upstream.sendBytes(pings), 2)
    const before = process.memoryUsage().arrayBuffers
    await expect.poll(() => feed.describe().disconnects, { ...soon, timeout: 30_000 }).toBe(1)
    clearInterval(flooding)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20e6)
    // The library has a bound of its own, on pongs.
    expect(feed.describe().latestError?.message).toMatch(
      /^(the upstream does not read|closed by the upstream)/,
    )
  })

  const switching = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
  test.each<[string, PumpPortalServer['handshake'], RegExp]>([
    ...[401, 404, 429, 500, 503].map((status): [string, number, RegExp] => [
      `status ${status}`,
      status,
      RegExp(`^refused with status ${status}$`),
    ]),
    ['a page', { bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>' }, /^refused with status 200$/],
    ['half an answer', { bytes: 'HTTP/1.1 101 Swit' }, /socket hang up|Parse Error/],
    ['nothing', { bytes: '' }, /socket hang up|ECONNRESET/],
    ['bytes that are no answer', { bytes: '\u0000\u0001ha\n'.repeat(50) }, /Parse Error/],
    ['a header of 1 MB', { bytes: `HTTP/1.1 101 OK\r\nX: ${'x'.repeat(1e6)}\r\n\r\n` }, /overflow/],
    [
      'the acceptance of another key',
      { bytes: `${switching}Sec-WebSocket-Accept: x\r\n\r\n` },
      /Sec-WebSocket-Accept/,
    ],
    [
      'an upgrade to something else',
      { bytes: 'HTTP/1.1 101 OK\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n' },
      /Upgrade/,
    ],
  ])('a handshake that is answered with %s is told of and tried again', async (_, handshake, message) => {
    upstream.handshake = handshake
    const feed = start()
    await expect.poll(() => network.connections.total, soon).toBeGreaterThan(2)
    expect(feed.describe()).toMatchObject({ state: 'reconnecting', isConnected: false, connects: 0 })
    expect(feed.describe().latestError?.message).toMatch(message)
    expect(network.connections.most).toBeLessThanOrEqual(1)
    upstream.handshake = 'take'
    await expect.poll(() => feed.describe().state, soon).toBe('running')
    // One loss, however many attempts there were.
    expect(kinds(sink.links)).toEqual(['disconnect', 'reconnect'])
  })

  test('a redirect is not followed: the key goes to nobody else', async () => {
    let asked = 0
    const elsewhere = createServer(() => void asked++).on('upgrade', () => void asked++)
    await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
    const { port } = elsewhere.address() as AddressInfo
    const location = `ws://127.0.0.1:${port}/`
    upstream.handshake = { bytes: `HTTP/1.1 302 Found\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n` }
    const feed = start({ apiKey: 'secret-key' })
    await expect.poll(() => network.connections.total, soon).toBeGreaterThan(2)
    expect(feed.describe().latestError).toMatchObject({ message: 'refused with status 302' })
    expect(asked).toBe(0)
    elsewhere.close()
  })

  test('the wait that a refusal asks for is kept', async () => {
    const refusal = (retryAfter: string) => ({
      bytes: `HTTP/1.1 429 No\r\nContent-Length: 0\r\nConnection: close\r\nRetry-After: ${retryAfter}\r\n\r\n`,
    })
    upstream.handshake = refusal('0.4')
    const feed = start()
    await feed.ready
    const refusedAtMs = performance.now()
    upstream.handshake = refusal('soon')
    await expect.poll(() => network.connections.total, soon).toBeGreaterThanOrEqual(2)
    expect(performance.now() - refusedAtMs).toBeGreaterThan(200)
    // A wait that is no time does not count.
    await expect.poll(() => network.connections.total, soon).toBeGreaterThanOrEqual(3)
    upstream.handshake = refusal('1000000000')
    await sleep(50)
    const { total } = network.connections
    await sleep(50)
    expect(network.connections.total, 'the feed waits, and can be stopped').toBe(total)
    await feed.stop()
  })

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
    // A timer counts from the beginning of its turn of the event loop, which may have begun well before.
    for (const [index, gapMs] of gapsMs.entries()) expect(gapMs).toBeGreaterThan(10 * 2 ** (index + 1) * 0.6)
    upstream.onPeer = () => {}
    await expect.poll(() => feed.describe().connects, soon).toBe(7)
    await sleep(60)
    const droppedAtMs = performance.now()
    upstream.drop()
    await expect.poll(() => feed.describe().connects, soon).toBe(8)
    expect(performance.now() - droppedAtMs).toBeLessThan(320)
  })

  test('the key appears in no log line and no status, as it is or as an address has it', async () => {
    const keys = ['secret key/1', 'secret+key%2F1', 'secret%20key%2F1']
    upstream.onPeer = (peer) => peer.send(JSON.stringify({ errors: `not good: ${keys.join(', ')}` }))
    const feed = start({ apiKey: keys[0] })
    await expect.poll(() => feed.describe().latestError, soon).toMatchObject({ message: 'not good: …, …, …' })
    for (const key of keys) expect(JSON.stringify([log.lines, feed.describe()])).not.toContain(key)
  })

  test('an address that cannot be used is told of, and does not end the feed', async () => {
    const feed = start({ url: `ws://127.0.0.1:${network.port}${PATH}#part` })
    await feed.ready
    expect(feed.describe()).toMatchObject({ state: 'reconnecting', latestError: { message: /fragment/ } })
  })
})

describe('trades that cannot be priced', () => {
  const links = (market: Market): EventSink => ({
    apply: (event, receivedAtMs) => {
      if ('feed' in event && event.feed === 'solPrice') sink.apply(event, receivedAtMs)
      return market.apply(event, receivedAtMs)
    },
  })

  test('are told as a loss of the price of SOL, until one is taken again', async () => {
    const market = new Market({ tokensMax: 10, solPriceMaxAgeMs: 60_000 })
    const feed = start({}, links(market))
    await expect.poll(() => feed.describe().state, soon).toBe('running')
    const price = (ageMs: number) =>
      market.apply({ type: 'solPrice', ts: Date.now() - ageMs, usd: 150 }, Date.now())
    const trade = async (name: string) => {
      const counted = () =>
        feed.describe().accepted + Object.values(feed.describe().rejected).reduce((a, b) => a + b, 0)
      const before = counted()
      upstream.send(tradeFrame(mint, name))
      await expect.poll(counted, soon).toBe(before + 1)
    }
    await trade('a')
    await trade('b')
    price(70_000)
    await trade('c')
    expect(feed.describe().rejected).toEqual({ sol_price_unknown: 2, sol_price_stale: 1 })
    expect(kinds(sink.events)).toEqual(['disconnect'])
    price(0)
    await trade('d')
    await trade('e')
    market.apply({ type: 'patch', mint, ts: Date.now(), fields: { solPriceUsd: null } }, Date.now())
    await trade('f')
    expect(kinds(sink.events)).toEqual(['disconnect', 'reconnect', 'disconnect'])
    for (const link of sink.links) if (link.type === 'disconnect') expect(link.sinceMs).toBe(link.ts)
    expect(market.datapoint(mint)?.tradeCount).toBe(2)
    expect(feed.describe().state, 'PumpPortal itself is not away').toBe('running')
  })
})

describe('logging', () => {
  test('an unreachable upstream is logged at once and then rarely, and its status has the error and the time', async () => {
    await upstream.close()
    const feed = new PumpPortal({ url: upstream.url, ...HASTE }, sink, systemClock, log)
    feeds.push(feed)
    await feed.ready
    expect(feed.describe()).toMatchObject({
      state: 'reconnecting',
      isConnected: false,
      latestError: { message: expect.stringContaining('ECONNREFUSED') },
    })
    expect(Date.now() - feed.describe().stateSinceMs).toBeLessThan(10_000)
    expect(feed.whyNotReady?.()).toMatch(/^PumpPortal has not been reached yet: .*ECONNREFUSED/)
    await sleep(60)
    expect(log.lines).toEqual([
      expect.objectContaining({
        level: 'warn',
        message: 'not connected: trying again',
        attempt: 1,
        suppressed: 0,
      }),
    ])
    const back = await PumpPortalServer.start(upstream.port)
    await expect.poll(() => feed.describe().state, soon).toBe('running')
    expect(feed.whyNotReady?.()).toBe(null)
    await feed.stop()
    await back.close()
  })
})
