// A seeded chain: tokens on curves paid in SOL, USDC or something else, some in mayhem mode, that graduate to pools and go on there;
// with its own ledger of what was traded, which knows nothing of the code that reads the events.
import { random } from '../../../bench/datasets/random.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import {
  encodeEvent,
  type FieldValue,
  migrationCreator,
  mintAccount,
  poolAccount,
  ZERO_ADDRESS,
} from './encode.ts'
import {
  signatureOf,
  type TestEvent,
  type TestTransaction,
  type TransactionOptions,
  transactionOf,
} from './transaction.ts'

export const SOL = 'So11111111111111111111111111111111111111112'
export const USDC = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
export const OTHER_QUOTE = mintOfSymbol('another quote')
const PUMP = '6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P'
const AMM = 'pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA'
const TOKEN_PROGRAM = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'
const FOREIGN = 'LanMV9sAd7wArD4vJFi2qDdfnVhFxYSUg6eADduJ3uj'

/** A trade as the chain had it. Numbers of whole units. */
export interface LedgerTrade {
  signature: string
  eventIndex: number
  slot: number
  ts: number
  mint: string
  side: 'buy' | 'sell'
  tokenAmount: number
  quoteMint: string
  quoteAmount: number
  /** Quote for one token: the spot price after the trade, of the curve or of the pool. */
  priceInQuote: number
  wallet: string
}

export interface Token {
  mint: string
  quoteMint: string
  quoteDecimals: number
  isMayhem: boolean
  supply: bigint
  vQuote: bigint
  vTokens: bigint
  realQuote: bigint
  realTokens: bigint
  pool: Pool | null
}

export interface WorldOptions {
  startMs: number
  slot?: number
  /** How likely a step is of each kind, in parts of all: the rest are trades. */
  launches?: number
  /** How likely a transaction's log is truncated. */
  truncated?: number
}

export interface Pool {
  address: string
  base: bigint
  quote: bigint
}

const INITIAL = { vTokens: 1_073_000_000_000_000n, realTokens: 793_100_000_000_000n }

/** With fewer tokens left a curve counts as sold out. */
const LAST_TOKENS = 20_000_000_000_000n
/** Events of the newest programs are longer than any layout that is known. */
const UNKNOWN_BYTES = Buffer.alloc(8, 7)

/** The slot of a time. */
export const slotAt = (ms: number): number => 300_000_000 + Math.floor((ms - 1_772_000_000_000) / 400)

export class ChainWorld {
  readonly tokens: Token[] = []
  readonly ledger: LedgerTrade[] = []
  readonly accounts = new Map<string, { owner: string; data: Buffer }>()
  nowMs: number
  slot: number
  #count = 0
  readonly #launches: number
  readonly #truncated: number
  readonly random: () => number

  constructor(
    seed: number,
    { startMs, slot = 300_000_000, launches = 0.02, truncated = 0.02 }: WorldOptions,
  ) {
    this.random = random(seed)
    this.nowMs = startMs
    this.slot = slot
    this.#launches = launches
    this.#truncated = truncated
    this.accounts.set(OTHER_QUOTE, { owner: TOKEN_PROGRAM, data: mintAccount(10n ** 18n, 9) })
  }

  pass(ms: number): void {
    this.nowMs += ms
    this.slot = Math.max(this.slot, slotAt(this.nowMs))
  }

  /** What happens next: a launch, or a trade of a token. Popular tokens are traded more. */
  step(): TestTransaction {
    if (this.tokens.length === 0 || this.random() < this.#launches) return this.launch()
    return this.trade(this.pick())
  }

  /** A token; the older ones are the popular ones. */
  pick(): Token {
    return this.tokens[Math.floor(this.tokens.length * this.random() ** 2)]
  }

  launch(quoteMint = this.#pickQuote(), isMayhem = this.random() < 0.1): TestTransaction {
    const mint = mintOfSymbol(`token ${this.tokens.length} ${this.random()}`)
    const decimals = quoteMint === USDC ? 6 : 9
    const token: Token = {
      ...{ mint, quoteMint, quoteDecimals: decimals, isMayhem, pool: null, realQuote: 0n, ...INITIAL },
      supply: isMayhem ? 2_000_000_000_000_000n : 1_000_000_000_000_000n,
      vQuote: quoteMint === USDC ? 4_500_000_000n : 30_000_000_000n,
    }
    this.tokens.push(token)
    this.accounts.set(mint, { owner: TOKEN_PROGRAM, data: mintAccount(token.supply, 6) })
    const create = encodeEvent('CreateEvent', {
      ...{
        name: `Token ${this.tokens.length}`,
        symbol: `T${this.tokens.length}`,
        uri: `https://x.example/${mint}`,
      },
      ...{ mint, user: this.#wallet(), creator: this.#wallet(), timestamp: this.#seconds },
      ...{
        virtual_token_reserves: token.vTokens,
        virtual_sol_reserves: quoteMint === SOL ? token.vQuote : 0n,
      },
      ...{
        real_token_reserves: token.realTokens,
        token_total_supply: token.supply,
        token_program: TOKEN_PROGRAM,
      },
      ...{
        is_mayhem_mode: isMayhem,
        quote_mint: this.#told(quoteMint),
        virtual_quote_reserves: token.vQuote,
      },
    })
    const name = this.#name('create')
    // The creator buys in the same transaction.
    const buy = this.#curveTrade(token, true, name, 1)
    return this.#transaction(name, [create, buy])
  }

  trade(token: Token): TestTransaction {
    if (token.pool !== null) return this.#swap(token, token.pool)
    const name = this.#name('trade')
    const event = this.#curveTrade(token, this.random() < 0.6, name, 0)
    const isSoldOut = token.realTokens < LAST_TOKENS
    return isSoldOut ? this.#graduate(token, name, event) : this.#transaction(name, [event])
  }

  /** Trades on several curves in one transaction, as routers and bots make them. */
  bundle(tokens: readonly Token[]): TestTransaction {
    const name = this.#name('bundle')
    const onCurve = [...new Set(tokens)].filter(
      ({ pool, realTokens }) => pool === null && realTokens > LAST_TOKENS * 2n,
    )
    const events = onCurve.map((token, index) => this.#curveTrade(token, this.random() < 0.6, name, index))
    return this.#transaction(name, events)
  }

  /** A swap in a pool of tokens that were never on a curve. */
  stranger(): TestTransaction {
    const number = Math.floor(this.random() * 50)
    const [address, mint] = [`pool ${number}`, `stranger ${number}`].map(mintOfSymbol)
    this.accounts.set(address, { owner: AMM, data: poolAccount(mint, SOL) })
    const reserves = { pool_base_token_reserves: 10n ** 15n, pool_quote_token_reserves: 10n ** 12n }
    const swap = { timestamp: this.#seconds, pool: address, user: this.#wallet(), ...reserves }
    const event = encodeEvent('SellEvent', {
      ...swap,
      base_amount_in: 10n ** 9n,
      quote_amount_out: 10n ** 6n,
    })
    return this.#transaction(this.#name('stranger'), [event])
  }

  /** A mayhem token's virtual reserves are set anew. */
  setReserves(token: Token): TestTransaction {
    const [tokens, quote] = [token.vTokens, token.vQuote]
    token.vTokens += token.vTokens / 50n
    const event = encodeEvent('UpdateMayhemVirtualParamsEvent', {
      ...{
        timestamp: this.#seconds,
        mint: token.mint,
        virtual_token_reserves: tokens,
        virtual_sol_reserves: quote,
      },
      ...{ new_virtual_token_reserves: token.vTokens, new_virtual_sol_reserves: token.vQuote },
      ...{ real_token_reserves: token.realTokens, real_sol_reserves: token.realQuote },
    })
    return this.#transaction(this.#name('reserves'), [event])
  }

  /** A copy that failed: nothing in it has happened. */
  failed(transaction: TestTransaction): TestTransaction {
    return transactionOf(this.#name('failed'), this.slot, transaction.events, { failed: true })
  }

  /** An event with our discriminator and another program's layout. */
  foreign(): TestTransaction {
    const { bytes } = encodeEvent('TradeEvent', { sol_amount: 5n, token_amount: 7n }, 'sol_amount')
    const own = { program: FOREIGN, bytes }
    return transactionOf(this.#name('foreign'), this.slot, [
      own,
      { program: PUMP, bytes: Buffer.from('00'.repeat(40), 'hex') },
    ])
  }

  #curveTrade(token: Token, wantsBuy: boolean, name: string, eventIndex: number): TestEvent {
    const share = BigInt(1 + Math.floor(this.random() * 2_000))
    let tokens = (token.vTokens * share) / 200_000n
    let quote = (token.vQuote * tokens) / (token.vTokens + tokens)
    // A curve cannot pay more than was paid into it.
    const isBuy = wantsBuy || quote > token.realQuote
    if (isBuy) {
      quote = (token.vQuote * share) / 100_000n
      tokens = (token.vTokens * quote) / (token.vQuote + quote)
    }
    const sign = isBuy ? 1n : -1n
    token.vQuote += sign * quote
    token.realQuote += sign * quote
    token.vTokens -= sign * tokens
    token.realTokens -= sign * tokens
    const isSol = token.quoteMint === SOL
    const inSol = (amount: bigint) => (isSol ? amount : 0n)
    const user = this.#wallet()
    const values: Record<string, FieldValue> = {
      ...{ mint: token.mint, sol_amount: inSol(quote), token_amount: tokens, is_buy: isBuy, user },
      ...{ timestamp: this.#seconds, virtual_sol_reserves: inSol(token.vQuote) },
      ...{ virtual_token_reserves: token.vTokens, real_sol_reserves: inSol(token.realQuote) },
      ...{
        real_token_reserves: token.realTokens,
        ix_name: isBuy ? 'buy' : 'sell',
        mayhem_mode: token.isMayhem,
      },
      ...{ quote_mint: this.#told(token.quoteMint), quote_amount: quote },
      ...{ virtual_quote_reserves: token.vQuote, real_quote_reserves: token.realQuote },
    }
    this.#note(token, signatureOf(name), eventIndex, isBuy, tokens, quote, user, {
      quote: token.vQuote,
      tokens: token.vTokens,
    })
    return encodeEvent('TradeEvent', values)
  }

  #graduate(token: Token, name: string, trade: TestEvent): TestTransaction {
    const address = mintOfSymbol(`pool of ${token.mint}`)
    token.pool = { address, base: 206_900_000_000_000n, quote: token.realQuote }
    const [mint, quote] = [token.mint, token.quoteMint]
    this.accounts.set(address, { owner: AMM, data: poolAccount(mint, quote, migrationCreator(mint)) })
    const complete = encodeEvent('CompleteEvent', { mint, user: this.#wallet(), timestamp: this.#seconds })
    const migration = encodeEvent('CompletePumpAmmMigrationEvent', {
      ...{ mint, pool: address, timestamp: this.#seconds, quote_mint: this.#told(quote) },
    })
    return this.#transaction(name, [trade, complete, migration])
  }

  #swap(token: Token, pool: Pool): TestTransaction {
    const isBuy = this.random() < 0.5
    const [baseBefore, quoteBefore] = [pool.base, pool.quote]
    const base = (pool.base * BigInt(1 + Math.floor(this.random() * 500))) / 100_000n
    const left = isBuy ? pool.base - base : pool.base + base
    const quote = isBuy ? (pool.quote * base) / left + 1n : (pool.quote * base) / left
    pool.base = left
    pool.quote += isBuy ? quote : -quote
    const user = this.#wallet()
    const fee = quote / 400n
    const isExact = this.random() < 0.5
    const name = this.#name('swap')
    const values: Record<string, FieldValue> = {
      ...{
        timestamp: this.#seconds,
        pool: pool.address,
        user,
        ix_name: isExact ? 'buy_exact_quote_in' : 'buy',
      },
      ...{ pool_base_token_reserves: baseBefore, pool_quote_token_reserves: quoteBefore, lp_fee: fee },
      ...(isBuy
        ? {
            ...{ base_amount_out: base, quote_amount_in: isExact ? quote + fee : quote },
            user_quote_amount_in: isExact ? quote + 1n : quote + fee,
          }
        : { base_amount_in: base, quote_amount_out: quote, user_quote_amount_out: quote - fee }),
    }
    const paid = isBuy && isExact ? quote + 1n : quote
    this.#note(token, signatureOf(name), 0, isBuy, base, paid, user, {
      quote: quoteBefore + (isBuy ? paid : -paid),
      tokens: left,
    })
    return this.#transaction(name, [encodeEvent(isBuy ? 'BuyEvent' : 'SellEvent', values)])
  }

  #note(
    { mint, quoteMint, quoteDecimals }: Token,
    signature: string,
    eventIndex: number,
    isBuy: boolean,
    tokens: bigint,
    quote: bigint,
    wallet: string,
    spot: { quote: bigint; tokens: bigint },
  ): void {
    const [tokenAmount, quoteAmount] = [Number(tokens) / 1e6, Number(quote) / 10 ** quoteDecimals]
    const priceInQuote = Number(spot.quote) / 10 ** quoteDecimals / (Number(spot.tokens) / 1e6)
    this.ledger.push({
      ...{ signature, eventIndex, slot: this.slot, ts: Number(this.#seconds) * 1_000, mint, wallet },
      ...{ side: isBuy ? 'buy' : 'sell', tokenAmount, quoteMint, quoteAmount, priceInQuote },
    })
  }

  #transaction(name: string, events: readonly TestEvent[]): TestTransaction {
    const options: TransactionOptions = { isRouted: this.random() < 0.2 }
    if (this.random() < this.#truncated) options.noiseBytes = 12_000
    const isLonger = this.random() < 0.3
    const told = events.map(({ program, bytes }) => ({
      program,
      bytes: isLonger ? Buffer.concat([bytes, UNKNOWN_BYTES]) : bytes,
    }))
    return transactionOf(name, this.slot, told, options)
  }

  #name(kind: string): string {
    return `${kind} ${this.#count++} ${this.nowMs}`
  }

  #pickQuote(): string {
    const at = this.random()
    return at < 0.75 ? SOL : at < 0.95 ? USDC : OTHER_QUOTE
  }

  #wallet(): string {
    return mintOfSymbol(`wallet ${Math.floor(this.random() * 5_000)}`)
  }

  /** Events say SOL by zero bytes. */
  #told(quoteMint: string): string {
    return quoteMint === SOL ? ZERO_ADDRESS : quoteMint
  }

  get #seconds(): bigint {
    return BigInt(Math.floor(this.nowMs / 1_000))
  }
}
