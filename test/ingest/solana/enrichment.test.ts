// What the feed asks the chain of tokens beside their trades: on a local node with accounts that the programs' own libraries wrote.
import { type Address, getAddressEncoder, getProgramDerivedAddress } from '@solana/addresses'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { endpointsOf } from '../../../src/ingest/solana/endpoints.ts'
import { EnrichmentQueue } from '../../../src/ingest/solana/enrichment/enrichment-queue.ts'
import { METADATA_PROGRAM } from '../../../src/ingest/solana/enrichment/mint-facts.ts'
import { AMM_PROGRAM, PUMP_PROGRAM } from '../../../src/ingest/solana/programs.ts'
import { RpcClient } from '../../../src/ingest/solana/rpc.ts'
import { SolanaFeed, type SolanaOptions } from '../../../src/ingest/solana/solana.ts'
import { LiveSource } from '../../../src/ingest/solana/source.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { nextTurn } from '../../../src/lib/wait.ts'
import type { PatchFields } from '../../../src/schema/datapoint.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import {
  extendedMint,
  legacyMint,
  metaplexMetadata,
  tokenAccount,
} from '../../support/chain/token-accounts.ts'
import { ChainWorld, SOL } from '../../support/chain/world.ts'
import { SolanaNode } from '../../support/upstreams/solana-node.ts'
import { MemoryLog, MemorySink } from '../memory-sink.ts'

const soon = { interval: 5, timeout: 10_000 }
const SUPPLY = 1_000_000_000_000_000n
const NO_AUTHORITIES = { supply: SUPPLY, decimals: 6, mintAuthority: null, freezeAuthority: null }
const SYSTEM_PROGRAM = '11111111111111111111111111111111'
const wallet = (index: number) => mintOfSymbol(`wallet ${index}`)
const metaplexAddress = async (mint: string) => {
  const bytes = getAddressEncoder()
  const program = METADATA_PROGRAM as Address
  const seeds = ['metadata', bytes.encode(program), bytes.encode(mint as Address)]
  return (await getProgramDerivedAddress({ programAddress: program, seeds }))[0]
}

let nodes: SolanaNode[]
let node: SolanaNode
let sink: MemorySink
let log: MemoryLog
let feed: SolanaFeed | null
let world: ChainWorld
const uris: string[][] = []
beforeEach(async () => {
  nodes = [await SolanaNode.start(), await SolanaNode.start()]
  for (const each of nodes) each.setSolPrice(150, Date.now())
  node = nodes[0]
  sink = new MemorySink()
  log = new MemoryLog()
  world = new ChainWorld(3, { startMs: Date.now() })
  uris.length = 0
})
afterEach(async () => {
  await feed?.stop()
  for (const each of nodes) await each.close()
})

async function connected(
  urls: readonly string[] = [node.url],
  requestsPerSecond = 1_000,
  more: Partial<SolanaOptions> = {},
): Promise<SolanaFeed> {
  const socketUrls = [node.url.replace('http', 'ws')]
  const source = new LiveSource(
    { rpcUrls: [...urls], socketUrls, commitment: 'confirmed', requestsPerSecond, pulseMsMax: 60_000 },
    systemClock,
  )
  const held = () => new Set(sink.data.flatMap((event) => ('mint' in event ? [event.mint] : [])))
  const options = { source, commitment: 'confirmed', pools: 'migrated', random: () => 0 } as const
  const onUri = (...told: string[]) => uris.push(told)
  const holds = (mint: string) => held().has(mint)
  const started = new SolanaFeed({ ...options, holds, onUri, ...more }, sink, log)
  feed = started
  await expect.poll(() => started.describe().isConnected, soon).toBe(true)
  return started
}

/** All that the chain has said of a token, the latest last. */
const told = (mint: string): PatchFields =>
  Object.assign(
    {},
    ...sink.data.flatMap((event) => (event.type === 'patch' && event.mint === mint ? [event.fields] : [])),
  )

/** A token is launched; its accounts are these. */
function launch(accountsOf: (mint: string) => Record<string, { owner: string; data: Buffer }>): string {
  const transaction = world.launch(SOL, false)
  const { mint } = world.tokens[world.tokens.length - 1]
  for (const [address, account] of Object.entries(accountsOf(mint))) node.accounts.set(address, account)
  node.confirm(transaction)
  return mint
}

const CURVE = mintOfSymbol('a curve')
/** All of a token is still for sale on its curve. */
const onCurve = (mint: string, amount = SUPPLY) => ({
  [CURVE]: { owner: PUMP_PROGRAM, data: Buffer.alloc(150) },
  [mintOfSymbol(`on the curve ${mint}`)]: tokenAccount({ mint, owner: CURVE, amount }, true),
})

describe('the accounts of a token', () => {
  it('say its authorities, fee, metadata and supply, ahead of need', async () => {
    await connected()
    const mint = launch((mint) => ({
      [mint]: extendedMint({
        ...{ ...NO_AUTHORITIES, freezeAuthority: wallet(1), supply: SUPPLY / 2n },
        fees: {
          authority: wallet(1),
          older: { epoch: 0n, maximumFee: 0n, transferFeeBasisPoints: 0 },
          newer: { epoch: 1n, maximumFee: 10n ** 9n, transferFeeBasisPoints: 50 },
        },
        pointer: { authority: null, address: mint },
        metadata: { mint, updateAuthority: null, uri: 'https://x.example/1' },
      }),
    }))
    await expect
      .poll(() => told(mint), soon)
      .toMatchObject({
        ...{ has_mint_authority: false, has_freeze_authority: true, transfer_fee_enabled: true },
        ...{ is_mutable_metadata: false, totalSupply: 500_000_000, enriched_source: 'chain' },
      })
    expect(uris).toContainEqual([mint, 'https://x.example/1'])
  })

  it('of the first program have their metadata with Metaplex, and so may those that point there', async () => {
    await connected()
    const addresses: Record<string, string> = {}
    const mints: string[] = []
    for (const index of [0, 1, 2, 3]) {
      const transaction = world.launch(SOL, false)
      const { mint } = world.tokens[index]
      addresses[mint] = await metaplexAddress(mint)
      mints.push(mint)
      const pointer = { authority: index === 2 ? wallet(1) : null, address: addresses[mint] }
      node.accounts.set(
        mint,
        index < 2 ? legacyMint(NO_AUTHORITIES) : extendedMint({ ...NO_AUTHORITIES, pointer }),
      )
      const metadata = { mint, uri: `https://x.example/${index}`, isMutable: index === 0, creators: index }
      node.accounts.set(addresses[mint], metaplexMetadata(metadata))
      node.confirm(transaction)
    }
    for (const [index, isMutable] of [true, false, true, false].entries())
      await expect.poll(() => told(mints[index]).is_mutable_metadata, soon).toBe(isMutable)
  })

  it('that do not exist or are no mint say nothing; a token without metadata has none that may change or not', async () => {
    await connected()
    const bare = launch((mint) => ({ [mint]: legacyMint(NO_AUTHORITIES), ...onCurve(mint) }))
    const odd = launch((mint) => ({ [mint]: { owner: SYSTEM_PROGRAM, data: Buffer.alloc(0) } }))
    await expect
      .poll(() => told(bare), soon)
      .toMatchObject({ has_mint_authority: false, is_mutable_metadata: null })
    expect(told(odd)).toEqual({})
  })
})

describe('the holders of a token', () => {
  it('are the owners of its largest accounts, without the curve and pools', async () => {
    await connected()
    const pool = mintOfSymbol('a pool')
    const share = SUPPLY / 100n
    const mint = launch((mint) => {
      const accounts: Record<string, { owner: string; data: Buffer }> = {
        [mint]: extendedMint(NO_AUTHORITIES),
        ...onCurve(mint, 50n * share),
        [pool]: { owner: AMM_PROGRAM, data: Buffer.alloc(300) },
        [wallet(1)]: { owner: SYSTEM_PROGRAM, data: Buffer.alloc(0) },
      }
      const hold = (owner: string, amount: bigint) => {
        accounts[mintOfSymbol(`account ${Object.keys(accounts).length}`)] = tokenAccount(
          { mint, owner, amount },
          true,
        )
      }
      hold(pool, 20n * share)
      // One owner with two accounts, and twelve others.
      hold(wallet(1), 3n * share)
      hold(wallet(1), 2n * share)
      for (let index = 2; index < 14; index++) hold(wallet(index), share + BigInt(index))
      return accounts
    })
    await expect.poll(() => told(mint).top10_holder_pct_onchain, soon).toBeCloseTo(14, 5)
    const { topHolders } = told(mint)
    expect(topHolders).toHaveLength(13)
    expect(topHolders?.[0]).toEqual({ address: wallet(1), amount: 50_000_000, pct: 5 })
    expect(topHolders?.[1].address).toBe(wallet(13))
  })

  it.each([
    { what: 'are those that are left where one is gone', slotsBehind: 0, top10Pct: 10 },
    {
      what: 'are unknown, and never fewer, to a node that is behind the one that lists them',
      slotsBehind: 2,
      top10Pct: undefined,
    },
  ])('$what', async ({ slotsBehind, top10Pct }) => {
    const started = await connected()
    node.accountsSlotsBehind = slotsBehind
    const mint = launch((mint) => {
      const [left, gone] = [mintOfSymbol('left'), mintOfSymbol('gone')]
      node.missingAccounts.add(gone)
      return {
        [mint]: extendedMint(NO_AUTHORITIES),
        [left]: tokenAccount({ mint, owner: wallet(1), amount: SUPPLY / 10n }, true),
        [gone]: tokenAccount({ mint, owner: wallet(2), amount: SUPPLY / 5n }, true),
      }
    })
    const ofHolders = () =>
      (started.describe().enrichment as { holders: { answered: number; failed: number } }).holders
    await expect.poll(() => ofHolders().answered + ofHolders().failed, soon).toBe(1)
    expect(told(mint).top10_holder_pct_onchain).toBe(top10Pct)
  })

  it('never are its curve, where the node does not know that yet: it is asked for again', async () => {
    await connected()
    node.accountsSlotsBehind = 2
    node.missingAccounts.add(CURVE)
    const askedForCurve = () =>
      node.asked('getMultipleAccounts').filter(({ params }) => (params[0] as string[]).includes(CURVE))
    const mint = launch((mint) => ({
      [mint]: extendedMint(NO_AUTHORITIES),
      ...onCurve(mint, (SUPPLY / 100n) * 98n),
      [mintOfSymbol('held')]: tokenAccount({ mint, owner: wallet(1), amount: SUPPLY / 50n }, true),
      [wallet(1)]: { owner: SYSTEM_PROGRAM, data: Buffer.alloc(0) },
    }))
    await expect.poll(() => askedForCurve().length, soon).toBeGreaterThan(1)
    expect(told(mint).topHolders).toBeUndefined()
    node.accountsSlotsBehind = 0
    node.missingAccounts.clear()
    await expect.poll(() => told(mint).top10_holder_pct_onchain, soon).toBe(2)
    expect(told(mint).topHolders).toMatchObject([{ address: wallet(1) }])
  })

  it('are unknown where nobody is listed to hold its supply', async () => {
    const started = await connected()
    const mint = launch((mint) => ({ [mint]: extendedMint(NO_AUTHORITIES) }))
    await expect
      .poll(() => started.describe().enrichment, soon)
      .toMatchObject({ holders: { answered: 0, failed: 1 }, accounts: { answered: 1 } })
    expect(told(mint)).not.toHaveProperty('topHolders')
  })

  it('are not asked for at an endpoint that refuses it: that is learned, told once, and another is asked', async () => {
    const [, other] = nodes
    node.refusals.getTokenLargestAccounts = { error: { code: -32_601, message: 'Method not found' } }
    const started = await connected([node.url, other.url])
    const mints = [1, 2, 3, 4].map(() => {
      const mint = launch((mint) => ({ [mint]: extendedMint(NO_AUTHORITIES), ...onCurve(mint) }))
      for (const [address, account] of node.accounts) other.accounts.set(address, account)
      return mint
    })
    for (const mint of mints) await expect.poll(() => told(mint).top10_holder_pct_onchain, soon).toBe(0)
    const more = launch((mint) => ({ [mint]: extendedMint(NO_AUTHORITIES), ...onCurve(mint) }))
    for (const [address, account] of node.accounts) other.accounts.set(address, account)
    await expect.poll(() => told(more).top10_holder_pct_onchain, soon).toBe(0)
    expect(node.asked('getTokenLargestAccounts').length).toBeLessThanOrEqual(4)
    expect(
      log.lines.filter(({ message }) => `${message}`.includes('does not serve this method')),
    ).toHaveLength(1)
    expect(started.describe().rpc).toMatchObject({
      refusedMethods: { getTokenLargestAccounts: [`127.0.0.1:${node.port}`] },
    })
    // What else there is to ask goes on.
    expect(told(more).has_mint_authority).toBe(false)
  })
})

describe('requests', () => {
  it('for many tokens share calls of a hundred accounts; what is fresh is not asked for again', {
    tags: 'drill',
  }, async () => {
    const started = await connected()
    const mints = Array.from({ length: 60 }, () =>
      launch((mint) => ({ [mint]: legacyMint(NO_AUTHORITIES), ...onCurve(mint) })),
    )
    for (const mint of mints)
      await expect
        .poll(() => told(mint), soon)
        .toMatchObject({ has_mint_authority: false, top10_holder_pct_onchain: 0 })
    const asked = node
      .asked('getMultipleAccounts')
      .flatMap(({ params }) => params[0] as string[])
      .filter((address) => mints.includes(address))
    const spare = () =>
      ['getTokenLargestAccounts', 'getMultipleAccounts'].map((method) => node.asked(method).length)
    const before = spare()
    // Once with the accounts, and once with the holders.
    expect(asked.length).toBe(2 * mints.length)
    for (const mint of mints) started.want(mint, 'asked')
    for (const { mint } of world.tokens)
      node.confirm(world.trade(world.tokens.find((each) => each.mint === mint) ?? world.tokens[0]))
    await expect.poll(() => sink.data.filter(({ type }) => type === 'trade').length, soon).toBe(120)
    expect(spare()).toEqual(before)
  })

  it('about a token that gave way to others and came back are made again, once', async () => {
    let since: number | null = 1
    const started = await connected([node.url], 1_000, { heldSince: () => since })
    const answered = () =>
      Object.values(
        started.describe().enrichment as Record<'accounts' | 'holders', { answered: number }>,
      ).map((queue) => queue.answered)
    const mint = launch((mint) => ({ [mint]: legacyMint(NO_AUTHORITIES), ...onCurve(mint) }))
    await expect.poll(answered, soon).toEqual([1, 1])
    since = 2
    started.want(mint, 'traded')
    await expect.poll(answered, soon).toEqual([2, 2])
    started.want(mint, 'asked')
    // What was said while it was not held is not in the market.
    since = null
    started.want(mint, 'traded')
    await expect.poll(answered, soon).toEqual([3, 3])
    since = 3
    started.want(mint, 'traded')
    await expect.poll(answered, soon).toEqual([4, 4])
    expect(sink.data.filter(({ type }) => type === 'patch')).toHaveLength(6)
  })

  it.each([
    ['that the method is not there', { error: { code: -32_601, message: 'Method not found' } }, 1],
    [
      'that the plan has it not',
      { error: { code: -32_000, message: 'method is not available on the free plan' } },
      1,
    ],
    ['403', { status: 403 }, 1],
    ['429 three times', { status: 429, headers: { 'Retry-After': '0' } }, 3],
    ['that the mint is none', { error: { code: -32_602, message: 'Invalid param: not a Token mint' } }, 5],
    ['an error of its own', { status: 500 }, 5],
  ])('to an endpoint that answers %s are learned from', async (_, refusal, asked) => {
    node.refusals.getTokenLargestAccounts = refusal
    const rpc = new RpcClient({ endpoints: endpointsOf([node.url]), requestsPerSecond: 1_000 })
    const { signal } = new AbortController()
    const told: string[] = []
    rpc.onMethodRefused = (method) => told.push(method)
    for (let index = 0; index < 5; index++)
      expect(await rpc.spare.call('getTokenLargestAccounts', [wallet(index)], signal)).toMatchObject({
        ok: false,
      })
    expect(node.asked('getTokenLargestAccounts')).toHaveLength(asked)
    expect(told).toEqual(asked === 5 ? [] : ['getTokenLargestAccounts'])
    // Other methods are asked for as before.
    expect(await rpc.spare.call('getSlot', [], signal)).toMatchObject({ ok: true })
  })

  it('that wait for their turn while others get 429 are no burst with them: the method is known to be refused at the third', async () => {
    node.refusals.getTokenLargestAccounts = { status: 429, headers: { 'Retry-After': '0' } }
    const rpc = new RpcClient({ endpoints: endpointsOf([node.url]), requestsPerSecond: 20 })
    const { signal } = new AbortController()
    const refusedAfter = new Promise<number>((resolve) => {
      rpc.onMethodRefused = () => resolve(node.asked('getTokenLargestAccounts').length)
    })
    const call = (index: number) => rpc.spare.call('getTokenLargestAccounts', [wallet(index)], signal)
    const calls = Array.from({ length: 20 }, (_, index) => call(index))
    // The first two have their turn at once; on a busy machine an answer may be late by a turn.
    expect(await refusedAfter).toBeLessThan(7)
    await Promise.all(calls)
  })

  it('that were sent before an answer 429 and get another are one burst: the method is asked for again', async () => {
    node.refusals.getTokenLargestAccounts = { status: 429, headers: { 'Retry-After': '0' } }
    const rpc = new RpcClient({ endpoints: endpointsOf([node.url]), requestsPerSecond: 1_000_000 })
    const { signal } = new AbortController()
    const call = (index: number) => rpc.spare.call('getTokenLargestAccounts', [wallet(index)], signal)
    for (const answer of await Promise.all([0, 1, 2, 3].map(call)))
      expect(answer).toMatchObject({ ok: false, fault: 'rate_limited' })
    delete node.refusals.getTokenLargestAccounts
    node.accounts.set(wallet(9), legacyMint(NO_AUTHORITIES))
    await call(9)
    expect(node.asked('getTokenLargestAccounts')).toHaveLength(5)
    expect(rpc.describe().refusedMethods).toEqual({})
  })

  it('that are spare have their turn when no live one waits, whenever they came', async () => {
    const rpc = new RpcClient({ endpoints: endpointsOf([node.url]), requestsPerSecond: 50 })
    const { signal } = new AbortController()
    const call = (lane: Pick<RpcClient, 'call'>, name: string) =>
      Array.from({ length: 6 }, () => lane.call('getSlot', [name], signal))
    await Promise.all([...call(rpc.spare, 'spare'), ...call(rpc, 'live')])
    const order = node.asked('getSlot').map(({ params }) => params[0])
    // The first has its turn at once.
    expect(order).toHaveLength(12)
    expect(order.slice(0, 7).filter((name) => name === 'live').length).toBeGreaterThanOrEqual(5)
  })

  it('are about tokens in the order of who wants them, as far as they still do: read, hot, traded; the latest first', async () => {
    const asked: string[] = []
    let nowMs = 1_000_000
    const begun = Promise.withResolvers<void>()
    const queue = new EnrichmentQueue({
      freshMs: { asked: 10, hot: 20, traded: 30 },
      concurrency: 1,
      nowMs: () => nowMs,
      heldSince: () => 0,
      ask: async (mint) => {
        asked.push(mint)
        await begun.promise
        return mint !== 'failing'
      },
    })
    queue.want(['first'], 'traded')
    queue.want(['cold', 'warm', 'failing', 'hottest', 'read'], 'traded')
    queue.want(['warm', 'failing', 'hottest', 'read'], 'hot')
    queue.want(['failing', 'read', 'submitted'], 'asked')
    // One that is wanted more urgently already is not wanted less.
    queue.want(['read'], 'traded')
    begun.resolve()
    await queue.pending
    const order = ['submitted', 'read', 'failing', 'hottest', 'warm', 'cold']
    expect(asked.splice(0)).toEqual(['first', ...order])
    expect(queue.describe()).toMatchObject({ answered: 6, failed: 1, displaced: 0, waiting: 0 })
    nowMs += 15
    for (const urgency of ['traded', 'hot', 'asked'] as const) queue.want([`${urgency} first`], urgency)
    for (const urgency of ['traded', 'hot', 'asked'] as const) queue.want(['cold'], urgency)
    await queue.pending
    expect(asked).toEqual(['traded first', 'cold', 'asked first', 'hot first'])
  })

  it('about hot tokens that cannot be had end after some attempts, until their answers would be too old', async () => {
    const asked: string[] = []
    let nowMs = 1_000_000
    const queue = new EnrichmentQueue({
      freshMs: { asked: 300_000, hot: 600_000, traded: 1_800_000 },
      concurrency: 1,
      nowMs: () => nowMs,
      heldSince: () => 0,
      ask: async (mint) => {
        asked.push(mint)
        return mint !== 'failing'
      },
    })
    for (const endMs = nowMs + 600_000; nowMs < endMs; nowMs += 5_000) {
      queue.want(['failing'], 'hot')
      queue.tick()
      await queue.pending
    }
    expect(asked.length).toBe(4)
    nowMs += 600_000
    queue.want(['failing'], 'hot')
    await queue.pending
    expect(asked.length).toBe(5)
  })

  it('about hot tokens begin with the hottest, and those that cannot be had leave room for what is traded', async () => {
    const asked: string[] = []
    const answers: (() => void)[] = []
    let nowMs = 1_000_000
    const queue = new EnrichmentQueue({
      freshMs: { asked: 300_000, hot: 600_000, traded: 1_800_000 },
      concurrency: 4,
      nowMs: () => nowMs,
      heldSince: () => 0,
      ask: (mint) => {
        asked.push(mint)
        return new Promise((resolve) => answers.push(() => resolve(mint.startsWith('launched'))))
      },
    })
    const hottest = Array.from({ length: 200 }, (_, rank) => `hot ${rank}`)
    for (let round = 0; round < 300; round++, nowMs += 5_000) {
      queue.want(hottest.toReversed(), 'hot')
      queue.tick()
      queue.want([`launched ${round}`], 'traded')
      for (const answer of answers.splice(0)) answer()
      await nextTurn()
    }
    expect(asked.slice(0, 3)).toEqual(['hot 0', 'hot 1', 'hot 2'])
    expect(asked.filter((mint) => mint.startsWith('launched')).length).toBeGreaterThan(290)
  })

  it('about a token that somebody reads come before those of tokens that are traded', async () => {
    const started = await connected([node.url], 20)
    const mints = Array.from({ length: 30 }, () =>
      launch((mint) => ({ [mint]: legacyMint(NO_AUTHORITIES), ...onCurve(mint) })),
    )
    await expect.poll(() => sink.data.filter(({ type }) => type === 'token').length, soon).toBe(30)
    const wanted = mints[3]
    started.want(wanted, 'asked')
    await expect.poll(() => told(wanted).top10_holder_pct_onchain, soon).toBe(0)
    const had = mints.filter((mint) => told(mint).top10_holder_pct_onchain !== undefined)
    expect(had.length).toBeLessThan(15)
  })
})
