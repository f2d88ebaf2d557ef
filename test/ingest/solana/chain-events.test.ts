// What events of the chain make of the market: which tokens it gets by them, which pools count, and what swaps are worth.
import { type Address, getAddressEncoder, getProgramDerivedAddress } from '@solana/addresses'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Accounts, Mints } from '../../../src/ingest/solana/accounts.ts'
import { ChainEvents } from '../../../src/ingest/solana/chain-events.ts'
import { AMM_PROGRAM, PUMP_PROGRAM } from '../../../src/ingest/solana/programs.ts'
import type { Rpc } from '../../../src/ingest/solana/rpc.ts'
import { Market } from '../../../src/market/market.ts'
import type { EventRejection } from '../../../src/schema/event.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import {
  encodeEvent,
  type FieldValue,
  migrationCreator,
  mintAccount,
  poolAccount,
} from '../../support/chain/encode.ts'
import { SOL } from '../../support/chain/world.ts'

const NOW = 1_795_000_000_000
const SECONDS = BigInt(NOW / 1_000)
const TOKEN_2022 = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'
const SOL_USD = 150
const [mint, pool, wallet] = ['a token', 'its pool', 'a wallet'].map(mintOfSymbol)
let market: Market
let chain: ReturnType<typeof readingOf>
let stopping: AbortController

/** The reading of events into the market, on a chain with these accounts. */
function readingOf(pools: 'migrated' | 'all') {
  const known = new Map<string, { owner: string; data: Buffer }>()
  const node = { slot: 1_000, asked: 0, onAsked: () => {} }
  const answer = async (_method: string, [addresses]: readonly unknown[]) => {
    node.asked++
    node.onAsked()
    return { ok: true as const, result: answerOf(addresses as string[]) }
  }
  const answerOf = (addresses: string[]) => ({
    context: { slot: node.slot },
    value: addresses.map((address) => {
      const account = known.get(address)
      return account === undefined ? null : { ...account, data: [account.data.toString('base64'), 'base64'] }
    }),
  })
  const accounts = new Accounts(
    { call: answer } as unknown as Pick<Rpc, 'call'>,
    'confirmed',
    stopping.signal,
    0,
  )
  const rejections: EventRejection[] = []
  const events = new ChainEvents(
    accounts,
    new Mints(accounts),
    { pools, holds: (held) => market.has(held) },
    {
      apply: (event) => {
        const rejection = market.apply(event, NOW)
        if (rejection !== null) rejections.push(rejection)
      },
      onUnreadable: () => {},
      onTimeInvalid: () => {},
    },
  )
  let count = 0
  const tell = async (name: string, values: Record<string, FieldValue>) => {
    const { program, bytes } = encodeEvent(name, { timestamp: SECONDS, user: wallet, ...values })
    const place = { slot: 10 + count, signature: `transaction ${count++}` }
    const told = { ...place, nowMs: NOW, monotonicMs: count, isLive: true }
    events.take({ program, bytes, index: 0 }, told)
    // Nothing else comes: what waits for its predecessor goes on without it.
    for (let isAnswered = false; !isAnswered; ) {
      events.order.forget()
      isAnswered = accounts.pending === null
      await accounts.pending
    }
  }
  return { known, node, events, rejections, tell }
}

beforeEach(() => {
  stopping = new AbortController()
  market = new Market({ tokensMax: 100 })
  market.apply({ type: 'solPrice', ts: NOW, usd: SOL_USD, source: 'pyth' }, NOW)
  chain = readingOf('migrated')
  chain.known.set(mint, { owner: TOKEN_2022, data: mintAccount(10n ** 15n, 6) })
})
afterEach(() => stopping.abort())

const shown = (of = mint) => market.datapoint(of)!
const migrate = () => chain.tell('CompletePumpAmmMigrationEvent', { mint, pool })

describe('the price of a swap', () => {
  const BASE = 206_900_000_000_000n
  const QUOTE = 85_000_000_000n
  const spotUsd = (quote: bigint, base: bigint) => (Number(quote) / 1e9 / (Number(base) / 1e6)) * SOL_USD
  const swap = (name: string, values: Record<string, FieldValue>) =>
    chain.tell(name, {
      ...{ pool, ix_name: 'buy', pool_base_token_reserves: BASE, pool_quote_token_reserves: QUOTE },
      ...values,
    })
  beforeEach(migrate)

  it('is that of the reserves after it, and its volume what was paid', async () => {
    const [base, paid] = [10n ** 12n, 412_821_757n]
    await swap('BuyEvent', { base_amount_out: base, quote_amount_in: paid, user_quote_amount_in: paid })
    expect(shown()).toMatchObject({
      priceUsd: spotUsd(QUOTE + paid, BASE - base),
      volume24h: (Number(paid) / 1e9) * SOL_USD,
      liquidity: 2 * (Number(QUOTE + paid) / 1e9) * SOL_USD,
    })
  })

  it('is not moved by one of the smallest units, whatever it is rounded to', async () => {
    await swap('BuyEvent', { base_amount_out: 1n, quote_amount_in: 1n, user_quote_amount_in: 1n })
    expect(shown().priceUsd).toBeCloseTo(spotUsd(QUOTE, BASE), 12)
    await swap('SellEvent', { base_amount_in: 1_000n, quote_amount_out: 0n })
    expect(shown().priceUsd).toBeCloseTo(spotUsd(QUOTE, BASE), 12)
    const bars = market.bars({ mint, tf: '1m', limit: 5, fromMs: null, toMs: null, fill: 'none' })
    expect(bars?.bars).toMatchObject([{ n: 2, h: expect.closeTo(spotUsd(QUOTE, BASE), 12) }])
    expect(chain.rejections).toEqual([])
  })

  it('counts what the pool holds of the quote virtually, which its liquidity does not', async () => {
    const boost = 15_000_000_000n
    const amounts = { base_amount_in: 10n ** 12n, quote_amount_out: 481_000_481n }
    await swap('SellEvent', { ...amounts, virtual_quote_reserves: boost })
    const quoteAfter = QUOTE - amounts.quote_amount_out
    expect(shown()).toMatchObject({
      priceUsd: spotUsd(quoteAfter + boost, BASE + amounts.base_amount_in),
      liquidity: 2 * (Number(quoteAfter) / 1e9) * SOL_USD,
    })
  })
})

describe('of a token that is held, with pools: migrated,', () => {
  const AUTHORITY = 'pool-authority'
  const [stranger, other, sidePool] = ['somebody', 'another token', 'a pool of somebody'].map(mintOfSymbol)
  const swap = (of: string) =>
    chain.tell('SellEvent', {
      ...{ pool: of, pool_base_token_reserves: 10n ** 6n, pool_quote_token_reserves: 10n ** 7n },
      ...{ base_amount_in: 1_000n, quote_amount_out: 9_990n },
    })
  const addPool = (address: string, base: string, quote: string, creator: string) =>
    chain.known.set(address, { owner: AMM_PROGRAM, data: poolAccount(base, quote, creator) })
  async function migrationCreatorOf(base: string): Promise<string> {
    const seeds = [AUTHORITY, getAddressEncoder().encode(base as Address)]
    return (await getProgramDerivedAddress({ programAddress: PUMP_PROGRAM as Address, seeds }))[0]
  }
  beforeEach(() => {
    chain.known.set(other, { owner: TOKEN_2022, data: mintAccount(10n ** 15n, 6) })
    market.apply({ type: 'token', mint, ts: NOW, name: 'A', symbol: 'A' }, NOW)
    market.apply({ type: 'trade', mint, ts: NOW, side: 'buy', tokenAmount: 1, priceUsd: 0.5 }, NOW)
  })

  it('the pool of its migration counts, known from the event', async () => {
    await migrate()
    await swap(pool)
    expect(shown().tradeCount).toBe(2)
  })

  it.each(['a token', 'another token', 'a third', 'a fourth', 'a fifth'])(
    'or from its account (%s)',
    async (name) => {
      const base = mintOfSymbol(name)
      market.apply({ type: 'token', mint: base, ts: NOW, name, symbol: 'A' }, NOW)
      chain.known.set(base, { owner: TOKEN_2022, data: mintAccount(10n ** 15n, 6) })
      addPool(pool, base, SOL, await migrationCreatorOf(base))
      const before = shown(base).tradeCount ?? 0
      await swap(pool)
      expect(shown(base).tradeCount).toBe(before + 1)
    },
  )

  it('a pool that anybody made moves nothing, told by its event or its account', async () => {
    const before = shown()
    const decimals = { base_mint_decimals: 6, quote_mint_decimals: 9 }
    const mints = { base_mint: mint, quote_mint: SOL, ...decimals }
    await chain.tell('CreatePoolEvent', { pool: sidePool, creator: stranger, index: 7, ...mints })
    await swap(sidePool)
    const known = mintOfSymbol('known from its account')
    addPool(known, mint, other, stranger)
    await swap(known)
    expect(shown()).toEqual(before)
    expect(chain.events.faults).toEqual({ pool_not_wanted: 2 })
  })

  it('no other token becomes one of the market by being traded for it', async () => {
    addPool(sidePool, other, mint, await migrationCreatorOf(other))
    await swap(sidePool)
    expect(market.has(other)).toBe(false)
    expect(shown().tradeCount).toBe(1)
  })
})

describe('an account that the node does not have, being behind the swap,', () => {
  const swap = () =>
    chain.tell('SellEvent', {
      ...{ pool, pool_base_token_reserves: 206_900_000_000_000n, pool_quote_token_reserves: 85_000_000_000n },
      ...{ base_amount_in: 10n ** 12n, quote_amount_out: 408_000_000n },
    })
  const addPool = () =>
    chain.known.set(pool, { owner: AMM_PROGRAM, data: poolAccount(mint, SOL, migrationCreator(mint)) })
  const lateFor = (answers: number, add: () => void) => {
    chain.node.onAsked = () => {
      if (chain.node.asked <= answers) return
      chain.node.slot = 1_000
      add()
    }
  }
  beforeEach(() => {
    chain.node.slot = 5
    market.apply({ type: 'token', mint, ts: NOW, name: 'A', symbol: 'A' }, NOW)
  })

  it('is asked for again: the swap of a pool that is known a moment later counts', async () => {
    lateFor(3, addPool)
    await swap()
    expect(shown().tradeCount).toBe(1)
    expect(chain.events.faults).toEqual({})
  })

  it('loses the swaps that waited for it, which is counted, and none after it', async () => {
    await swap()
    expect(chain.events.pools.dropped).toBe(1)
    expect(chain.events.faults).toEqual({})
    addPool()
    await swap()
    await swap()
    expect(shown().tradeCount).toBe(2)
    expect(chain.events.pools.dropped).toBe(1)
  })

  it('may be that of a mint', async () => {
    chain = readingOf('all')
    chain.node.slot = 5
    const addMint = () => chain.known.set(mint, { owner: TOKEN_2022, data: mintAccount(10n ** 15n, 6) })
    addPool()
    await swap()
    expect(chain.events.pools.dropped).toBe(1)
    lateFor(chain.node.asked + 3, addMint)
    await swap()
    await swap()
    expect(shown().tradeCount).toBe(2)
  })

  it('and one that a node without it has passed is none: its swaps are asked about once', async () => {
    chain.node.slot = 1_000
    await swap()
    await swap()
    expect(chain.events.faults).toEqual({ pool_not_wanted: 2 })
    expect(chain.node.asked).toBe(1)
  })
})

it('a trade that the market refuses makes no token of it, though its account answers', async () => {
  market = new Market({ tokensMax: 100 })
  await chain.tell('TradeEvent', {
    ...{ mint, sol_amount: 10n ** 9n, token_amount: 10n ** 12n, is_buy: true },
    ...{ virtual_sol_reserves: 31n * 10n ** 9n, virtual_token_reserves: 1_038_387_096_774_193n },
  })
  expect(chain.rejections).toEqual(['sol_price_unknown'])
  expect(market.has(mint)).toBe(false)
})

it('a curve that goes to its pool names the exchange, as other feeds do, and the pool by its address', async () => {
  await migrate()
  expect(shown()).toMatchObject({ bondingComplete: true, primaryDex: 'pump-amm', pairAddress: pool })
})
