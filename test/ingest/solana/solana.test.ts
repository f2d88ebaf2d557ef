// The feed on a local node that does what real ones do to their readers.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { EVENT_AHEAD_MS_MAX } from '../../../src/ingest/solana/limits.ts'
import { SolanaFeed, type SolanaOptions } from '../../../src/ingest/solana/solana.ts'
import { LiveSource, type LiveSourceOptions } from '../../../src/ingest/solana/source.ts'
import type { Feed } from '../../../src/ingest/types.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { TradeEvent } from '../../../src/schema/event.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { encodeEvent } from '../../support/chain/encode.ts'
import { logsNotification, type TestTransaction, transactionOf } from '../../support/chain/transaction.ts'
import { ChainWorld, OTHER_QUOTE, SOL, USDC } from '../../support/chain/world.ts'
import { SolanaNode } from '../../support/upstreams/solana-node.ts'
import { MemoryLog, MemorySink } from '../memory-sink.ts'

const soon = { interval: 5, timeout: 10_000 }
const KEY = 'a-secret-key-of-the-endpoint'
const PUMP = '6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P'
let node: SolanaNode
let sink: MemorySink
let log: MemoryLog
let feeds: Feed[]
let world: ChainWorld

beforeEach(async () => {
  node = await SolanaNode.start()
  sink = new MemorySink()
  log = new MemoryLog()
  feeds = []
  world = new ChainWorld(7, { startMs: Date.now() })
  node.setSolPrice(150, Date.now())
})
afterEach(async () => {
  const told = JSON.stringify([feeds.map((feed) => feed.describe()), log.lines])
  for (const feed of feeds) await feed.stop()
  await node.close()
  expect(told, 'nothing that the feed tells holds a key').not.toContain(KEY)
})

const held = () => new Set(sink.data.flatMap((event) => ('mint' in event ? [event.mint] : [])))
function start(more: Partial<SolanaOptions> = {}, live: Partial<LiveSourceOptions> = {}): Feed {
  const source = new LiveSource(
    {
      ...{
        rpcUrls: [`${node.url}/${KEY}?api-key=${KEY}`],
        socketUrls: [`${node.url.replace('http', 'ws')}/?k=${KEY}`],
      },
      ...{ commitment: 'confirmed', requestsPerSecond: 1_000 },
      ...live,
    },
    systemClock,
  )
  const options: SolanaOptions = {
    ...{ source, commitment: 'confirmed', pools: 'migrated', random: () => 0 },
    ...{ reconnectMsMin: 1, reconnectMsMax: 5, holds: (mint) => held().has(mint) },
    ...more,
  }
  const feed = new SolanaFeed(options, sink, log)
  feeds.push(feed)
  return feed
}
async function connected(more?: Partial<SolanaOptions>, live?: Partial<LiveSourceOptions>): Promise<Feed> {
  const feed = start(more, live)
  await expect.poll(() => feed.describe().isConnected, soon).toBe(true)
  for (const [address, account] of world.accounts) node.accounts.set(address, account)
  return feed
}
const trades = (): TradeEvent[] => sink.data.filter((event) => event.type === 'trade')
const identity = ({ tx, eventIndex }: TradeEvent) => `${tx}:${eventIndex}`
function tell(...transactions: TestTransaction[]): void {
  for (const [address, account] of world.accounts) node.accounts.set(address, account)
  for (const transaction of transactions) node.confirm(transaction)
}
/** All trades of the ledger have arrived, each once, as the chain had them, those of a token in their order. */
async function expectLedger(): Promise<void> {
  const { ledger } = world
  await expect.poll(() => trades().length, soon).toBeGreaterThanOrEqual(ledger.length)
  const arrived = new Map(trades().map((trade) => [identity(trade), trade]))
  expect(arrived.size).toBe(trades().length)
  for (const told of ledger) {
    const trade = arrived.get(`${told.signature}:${told.eventIndex}`)
    const { mint, ts, side, tokenAmount, quoteMint, wallet } = told
    expect(trade).toMatchObject({ mint, ts, side, tokenAmount, quoteMint, wallet })
    if (quoteMint !== OTHER_QUOTE) expect(trade?.quoteAmount).toBe(told.quoteAmount)
  }
  for (const { mint } of world.tokens) {
    const order = (each: { mint: string }) => each.mint === mint
    expect(trades().filter(order).map(identity)).toEqual(
      ledger.filter(order).map(({ signature, eventIndex }) => `${signature}:${eventIndex}`),
    )
  }
}

describe('a connection', () => {
  it('subscribes to both programs, to slots and to both prices of SOL, with the wanted commitment', async () => {
    const feed = await connected({ commitment: 'processed' }, { commitment: 'processed' })
    await expect.poll(() => node.requests.length, soon).toBeGreaterThanOrEqual(7)
    const logs = node.asked('logsSubscribe').map(({ params }) => params)
    expect(logs).toContainEqual([{ mentions: [PUMP] }, { commitment: 'processed' }])
    expect(node.asked('slotSubscribe')).toHaveLength(1)
    expect(node.asked('accountSubscribe')).toHaveLength(2)
    expect(feed.describe()).toMatchObject({ feed: 'solana', state: 'running', problem: null })
    expect(sink.data).toContainEqual(expect.objectContaining({ type: 'solPrice', usd: 150, source: 'pyth' }))
  })

  it('without a slot for the pulse is dead, however open its socket; the gap is told', async () => {
    const feed = await connected({}, { pulseMsMax: 30 })
    await expect.poll(() => feed.describe().connects, soon).toBeGreaterThanOrEqual(2)
    expect(feed.describe().latestError).toMatchObject({
      message: expect.stringContaining('no slot for 30 ms'),
    })
    expect(sink.links.map(({ type }) => type).slice(0, 4)).toEqual([
      'disconnect',
      'reconnect',
      'disconnect',
      'reconnect',
    ])
  })

  it('goes to the next endpoint when one fails', async () => {
    const other = await SolanaNode.start()
    try {
      node.handshake = 403
      const feed = start(
        {},
        {
          rpcUrls: [node.url, other.url],
          socketUrls: [node.url, other.url].map((url) => url.replace('http', 'ws')),
        },
      )
      await expect.poll(() => feed.describe().isConnected, soon).toBe(true)
      expect(feed.describe().host).toBe(`127.0.0.1:${other.port}`)
    } finally {
      await other.close()
    }
  })

  it('finds subscriptions at the port behind that of the calls, as validators have them', async () => {
    const rpc = await SolanaNode.start()
    const next = await SolanaNode.start(rpc.port + 1).catch(() => null)
    try {
      if (next === null) return
      rpc.handshake = 404
      const feed = start({}, { rpcUrls: [rpc.url], socketUrls: [] })
      await expect.poll(() => feed.describe().isConnected, soon).toBe(true)
      expect(next.peers.size).toBe(1)
    } finally {
      await rpc.close()
      await next?.close()
    }
  })

  it('to another chain is refused, with a sentence in its status', async () => {
    node.genesis = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG'
    const feed = start()
    await feed.ready
    await expect.poll(() => feed.describe().problem, soon).toContain('is an endpoint of another chain')
    expect(feed.describe().state).toBe('failed')
    expect(node.peers.size).toBe(0)
  })

  it.each([
    ['403', { status: 403 }],
    ['429 with Retry-After', { status: 429, headers: { 'Retry-After': '1' } }],
    ['429 without', { status: 429 }],
    ['an error', { error: { code: -32_000, message: 'no' } }],
  ])('whose endpoint answers %s is tried again, and comes', async (_, refusal) => {
    node.refusals.getGenesisHash = refusal
    const feed = start()
    await feed.ready
    expect(feed.whyNotReady?.()).toContain('No endpoint of Solana has been reached yet')
    node.refusals = {}
    await expect.poll(() => feed.describe().isConnected, soon).toBe(true)
  })

  it('whose node refuses a subscription that is needed ends, and one that is not goes on', async () => {
    node.refusals.logsSubscribe = { error: { code: -32_601, message: 'Method not found' } }
    const feed = start()
    await expect.poll(() => feed.describe().latestError?.message, soon).toContain('logsSubscribe is refused')
    node.refusals = { accountSubscribe: { error: { code: -32_601, message: `no accounts for ${KEY}` } } }
    await expect.poll(() => feed.describe().isConnected, soon).toBe(true)
    expect(Object.keys(feed.describe().refused as object)).toEqual(['pyth', 'orca'])
  })

  it('survives frames that are nothing, too large, or answers to nobody', async () => {
    const feed = await connected()
    node.send('no JSON')
    node.send(Buffer.from([1, 2, 3]))
    node.send({ jsonrpc: '2.0', id: 4_711, result: 1 })
    node.send({ jsonrpc: '2.0', method: 'logsNotification', params: { result: { context: { slot: -1 } } } })
    node.send({
      jsonrpc: '2.0',
      method: 'accountNotification',
      params: { subscription: 9, result: { value: null } },
    })
    await expect.poll(() => feed.describe().rejected, soon).toEqual({ unknown_frame: 5 })
    expect(feed.describe().isConnected).toBe(true)
    node.send('x'.repeat(10 * 1024 * 1024))
    await expect.poll(() => feed.describe().connects, soon).toBe(2)
    tell(world.launch(SOL))
    await expectLedger()
  })
})

describe('events', () => {
  it('of a random market arrive as its ledger has them, each once, each token in its order', async () => {
    await connected()
    tell(world.launch(SOL), world.launch(USDC), world.launch(OTHER_QUOTE))
    for (let step = 0; step < 400; step++) {
      world.pass(20)
      tell(world.step())
    }
    await expectLedger()
    expect(new Set(trades().map(({ quoteMint }) => quoteMint))).toEqual(new Set([SOL, USDC, OTHER_QUOTE]))
  })

  it('repeated, of failed transactions, of other programs, and out of order arrive once and in order', async () => {
    const feed = await connected()
    world.launch(SOL)
    tell(...[world.launch(USDC)])
    const { random } = world
    const told: TestTransaction[] = []
    for (let step = 0; step < 200; step++) {
      world.pass(5)
      const transaction = world.step()
      told.push(transaction)
      if (random() < 0.2) told.push(transaction)
      if (random() < 0.1) told.push(world.failed(transaction))
      if (random() < 0.1) told.push(world.foreign())
    }
    // Notifications of the same few slots come in any order.
    for (let at = 0; at + 6 < told.length; at += 6) told.splice(at, 6, ...told.slice(at, at + 6).reverse())
    const { ledger } = world
    ledger.splice(0, 1)
    world.tokens.splice(0, 1)
    tell(...told)
    await expect
      .poll(
        () => trades().filter(({ mint }) => world.tokens.some((token) => token.mint === mint)).length,
        soon,
      )
      .toBeGreaterThanOrEqual(
        ledger.filter(({ mint }) => world.tokens.some((token) => token.mint === mint)).length,
      )
    const status = feed.describe() as unknown as { duplicates: number; failedTransactions: number }
    expect(status.duplicates).toBeGreaterThan(0)
    expect(status.failedTransactions).toBeGreaterThan(0)
  })

  it('behind a truncated log are fetched, and read from the inner instructions', async () => {
    const feed = await connected()
    const launch = world.launch(SOL)
    const truncated = transactionOf('truncated', world.slot, launch.events, {
      noiseBytes: 20_000,
      isRouted: true,
    })
    world.ledger[0].signature = truncated.signature
    tell(truncated)
    await expectLedger()
    expect(node.asked('getTransaction')[0].params[0]).toBe(truncated.signature)
    expect(feed.describe().truncated).toEqual({ transactions: 1, fetched: 1, lost: 0 })
    expect(sink.data).toContainEqual(expect.objectContaining({ type: 'token', mint: world.tokens[0].mint }))
  })

  it('that another program logs in the name of ours are none', async () => {
    await connected()
    const { bytes } = encodeEvent('TradeEvent', {
      mint: mintOfSymbol('forged'),
      timestamp: BigInt(Math.floor(Date.now() / 1_000)),
    })
    const data = `Program data: ${bytes.toString('base64')}`
    const other = 'LanMV9sAd7wArD4vJFi2qDdfnVhFxYSUg6eADduJ3uj'
    const forged: TestTransaction = {
      ...transactionOf('forged', world.slot, [{ program: PUMP, bytes }]),
      logs: [
        ...[`Program ${other} invoke [1]`, data, `Program log: Program ${PUMP} invoke [2]`, data],
        ...[`Program log: invoke [1]`, data, `Program ${PUMP} invoke [2]`, `Program ${PUMP} success`, data],
        ...[`Program ${other} success`, data],
      ],
    }
    tell(forged)
    tell(world.launch(SOL))
    await expectLedger()
    expect(held().has(mintOfSymbol('forged'))).toBe(false)
  })

  it('of ours that cannot be read are counted, logged as a sample, and told in a sentence', async () => {
    const feed = await connected()
    const { program, bytes } = encodeEvent('TradeEvent', {})
    tell(transactionOf('changed', world.slot, [{ program, bytes: bytes.subarray(0, 60) }]))
    await expect.poll(() => feed.describe().problem, soon).toContain('1 TradeEvent')
    const line = log.lines.find(({ level }) => level === 'error')
    expect(line).toMatchObject({ event: 'TradeEvent', sample: bytes.subarray(0, 60).toString('base64') })
  })

  it('with bytes behind the last known field are read, and counted', async () => {
    const feed = await connected()
    const launch = world.launch(SOL)
    const longer = launch.events.map(({ program, bytes }) => ({
      program,
      bytes: Buffer.concat([bytes, Buffer.alloc(8)]),
    }))
    const transaction = transactionOf('longer', world.slot, longer)
    world.ledger[0].signature = transaction.signature
    tell(transaction)
    await expectLedger()
    expect(feed.describe()).toMatchObject({
      problem: null,
      longerThanKnown: { CreateEvent: 1, TradeEvent: 1 },
    })
  })

  it('on a curve wait for the one before, and go on without it after two seconds, counted', async () => {
    const feed = await connected()
    tell(world.launch(SOL))
    const [token] = world.tokens
    const lost = world.trade(token)
    const after = world.trade(token)
    tell(after)
    await expect.poll(() => feed.describe().curves, soon).toEqual({ waiting: 1, unproven: 0 })
    await expect.poll(() => feed.describe().curves, soon).toEqual({ waiting: 0, unproven: 1 })
    expect(trades().map(({ tx }) => tx)).not.toContain(lost.signature)
    expect(trades().at(-1)?.tx).toBe(after.signature)
  })

  it('that overtake their launch come after it', async () => {
    const feed = await connected()
    const launch = world.launch(SOL)
    const [token] = world.tokens
    const [first, second] = [world.trade(token), world.trade(token)]
    tell(second, first, launch)
    await expectLedger()
    expect(sink.data.filter((event) => 'mint' in event)[0]).toMatchObject({ type: 'token', mint: token.mint })
    expect(feed.describe().curves).toEqual({ waiting: 0, unproven: 0 })
  })

  it('of a mayhem token whose reserves are set anew stay in order', async () => {
    const feed = await connected()
    tell(world.launch(SOL, true))
    const [token] = world.tokens
    const steps = [world.trade(token), world.setReserves(token), world.trade(token), world.trade(token)]
    tell(...steps.reverse())
    await expectLedger()
    expect(feed.describe().curves).toEqual({ waiting: 0, unproven: 0 })
    expect(sink.data[1]).toMatchObject({ type: 'token', isMayhem: true, totalSupply: 2_000_000_000 })
  })

  it('of a token that was not seen to be created bring its supply from its account', async () => {
    await connected()
    world.launch(SOL, true)
    world.ledger.length = 0
    const [token] = world.tokens
    tell(world.trade(token))
    await expectLedger()
    const patch = { type: 'patch', mint: token.mint, fields: { totalSupply: 2_000_000_000, isMayhem: true } }
    await expect.poll(() => sink.data, soon).toContainEqual(expect.objectContaining(patch))
  })

  it('of pools follow the token that graduated; those of other tokens count with pools: all', async () => {
    await connected()
    tell(world.launch(SOL))
    const [token] = world.tokens
    while (token.pool === null) tell(world.trade(token))
    for (let swap = 0; swap < 20; swap++) tell(world.trade(token))
    await expectLedger()
    expect(sink.data).toContainEqual(
      expect.objectContaining({ type: 'graduated', mint: token.mint, pool: 'pump-amm' }),
    )
    await feeds[0].stop()
    // A feed that knows nothing asks for the pool's account.
    const before = sink.received.length
    sink = new MemorySink()
    await connected({ pools: 'migrated' })
    tell(world.trade(token))
    await expect
      .poll(() => (feeds[1].describe().ignored as Record<string, number>).pool_not_wanted, soon)
      .toBe(1)
    expect(trades()).toEqual([])
    await feeds[1].stop()
    await connected({ pools: 'all' })
    tell(world.trade(token))
    await expect.poll(() => trades().length, soon).toBe(1)
    expect(trades()[0]).toMatchObject({
      mint: token.mint,
      quoteMint: SOL,
      quoteAmount: world.ledger.at(-1)?.quoteAmount,
    })
    expect(before).toBeGreaterThan(0)
  })

  it('with a time that cannot be are refused by themselves', async () => {
    const feed = await connected()
    for (const timestamp of [0n, -5n, 2n ** 63n - 1n, BigInt(Math.floor(Date.now() / 1_000) + 3_600)]) {
      const event = encodeEvent('TradeEvent', { mint: mintOfSymbol('time'), timestamp })
      tell(transactionOf(`time ${timestamp}`, world.slot, [event]))
    }
    tell(world.launch(SOL))
    await expectLedger()
    expect(feed.describe()).toMatchObject({
      rejected: { time_invalid: 4 },
      untold: { timeInvalid: 4, sum: 4 },
    })
  })

  it('that the clock of a machine does not allow are told, since nothing else is left of the market', async () => {
    // The machine's clock is 11 minutes slow.
    world.pass(660_000)
    const feed = await connected()
    tell(...Array.from({ length: 150 }, () => world.step()))
    const isTold = { isTooMuch: true, reasons: { time_invalid: expect.any(Number) } }
    await expect.poll(() => feed.describe().refusals, soon).toMatchObject(isTold)
    expect(trades()).toEqual([])
  })
})

describe('the price of SOL', () => {
  const prices = () => sink.data.flatMap((event) => (event.type === 'solPrice' ? [event.usd] : []))

  it('follows Pyth’s account, and is not believed while Orca’s pool is more than 2 % apart', async () => {
    const feed = await connected()
    expect(prices()).toEqual([150])
    node.setSolPrice(151, Date.now())
    await expect.poll(prices, soon).toEqual([150, 151])
    node.setSolPrice(160, Date.now(), 151)
    await expect.poll(() => feed.describe().prices, soon).toMatchObject({ isApart: true, disagreements: 1 })
    expect(prices()).toEqual([150, 151])
    node.setSolPrice(160, Date.now(), 159)
    await expect.poll(() => prices().at(-1), soon).toBe(160)
  })

  it('of a time to come is none, and those that follow are believed', async () => {
    const feed = await connected()
    node.setSolPrice(150.5, Date.now() + EVENT_AHEAD_MS_MAX + 60_000)
    await expect.poll(() => feed.describe().rejected, soon).toEqual({ time_invalid: 1 })
    node.setSolPrice(151, Date.now())
    await expect.poll(prices, soon).toEqual([150, 151])
  })

  it('of a time a little ahead is of now: those that follow are no older', async () => {
    await connected()
    node.setSolPrice(150.5, Date.now() + EVENT_AHEAD_MS_MAX - 60_000)
    await expect.poll(prices, soon).toEqual([150, 150.5])
    node.setSolPrice(151, Date.now() + 1_000)
    await expect.poll(prices, soon).toEqual([150, 150.5, 151])
  })

  it('of an account that is not fully verified, too old or another’s is none', async () => {
    node.accounts.clear()
    const feed = await connected()
    node.setSolPrice(150, Date.now() - 3_600_000)
    node.setAccount('7UVimffxr9ow1uXYxsr4LHAcV58mLzhmwaeKvJ1pjLiE', { owner: SOL, data: Buffer.alloc(134) })
    await expect.poll(() => feed.describe().rejected, soon).toEqual({ sol_price_unreadable: 1 })
    expect(prices()).toEqual([])
  })
})

it('notifications in any of the ways of JSON that a node may choose are read', async () => {
  await connected()
  const transaction = world.launch(SOL)
  const frame = logsNotification(transaction)
  node.send(
    JSON.stringify(
      { params: frame.params, method: frame.method, jsonrpc: '2.0', extra: { deep: [1] } },
      null,
      2,
    ),
  )
  await expectLedger()
})
