// Events of the chain as market events. Amounts are integers of the smallest unit until here, and whole units from here on.
import { truncateText } from '../../lib/text/truncate-text.ts'
import { TIME_MS_MAX, URI_CHARS_MAX, WORD_CHARS_MAX } from '../../schema/bounds.ts'
import type { MarketEvent, TokenEvent, TradeEvent } from '../../schema/event.ts'
import { MARKET_QUOTES } from '../../schema/quote.ts'
import type { DecodedEvent } from './decode-event.ts'
import { EVENT_AHEAD_MS_MAX } from './limits.ts'
import { CURVE_TOKEN_DECIMALS, quoteDecimals, quoteMintOf, toUnits } from './quotes.ts'

/** Where an event stands on the chain. */
export interface ChainPlace {
  slot: number
  signature: string
  /** Among the events of both programs in the transaction. */
  index: number
}

/** The virtual reserves of a curve, in the smallest units. */
export interface CurveState {
  quote: bigint
  tokens: bigint
}

/** Something that happened to a token. */
export interface CurveStep {
  mint: string
  /** null: it begins a curve (`after` says with what), or comes after the curve: then it waits for all trades on it. */
  before: CurveState | null
  after: CurveState | null
  events: MarketEvent[]
  /** Of a trade; null where the event does not say it. */
  isMayhem?: boolean | null
}

/** A pool, seen from the token that is priced in it. */
export interface Pool {
  mint: string
  quoteMint: string
  /** Its base is what the token is paid in. */
  isInverted: boolean
  tokenDecimals: number
  /** null: not known, and then no amount of the quote is. */
  quoteDecimals: number | null
}

const requireInteger = (event: DecodedEvent, field: string): bigint => event.integer(field) ?? 0n

/** The event's own time, Unix ms; null where it cannot be one. An event without a time is of now. */
export function eventTimeMs(event: DecodedEvent, nowMs: number): number | null {
  const seconds = event.integer('timestamp')
  if (seconds === null) return nowMs
  const ms = Number(seconds) * 1_000
  return ms >= 1_000 && ms <= TIME_MS_MAX && ms <= nowMs + EVENT_AHEAD_MS_MAX ? ms : null
}

const positive = (value: number): number | undefined => (value > 0 ? value : undefined)

/** A token is created: with the state that its curve begins with. */
export function translateCreate(event: DecodedEvent, ts: number): CurveStep {
  const mint = event.text('mint') ?? ''
  const name = event.text('name') || event.text('symbol') || mint
  const supply = event.integer('token_total_supply')
  const curveTokens = event.integer('real_token_reserves')
  const quoteMint = quoteMintOf(event.text('quote_mint'))
  const token: TokenEvent = {
    type: 'token',
    mint,
    ts,
    name: truncateText(name, WORD_CHARS_MAX),
    symbol: truncateText(event.text('symbol') || name, WORD_CHARS_MAX),
    uri: truncateText(event.text('uri') ?? '', URI_CHARS_MAX) || undefined,
    creator: event.text('creator') ?? event.text('user') ?? undefined,
    totalSupply: supply === null ? undefined : positive(toUnits(supply, CURVE_TOKEN_DECIMALS)),
    quoteMint,
    isMayhem: event.flag('is_mayhem_mode') ?? undefined,
    curveTokens: curveTokens === null ? undefined : positive(toUnits(curveTokens, CURVE_TOKEN_DECIMALS)),
  }
  const isSol = quoteMint === MARKET_QUOTES.sol
  const quote = event.integer(isSol ? 'virtual_sol_reserves' : 'virtual_quote_reserves')
  const tokens = event.integer('virtual_token_reserves')
  const after = quote === null || tokens === null ? null : { quote, tokens }
  return { mint, before: null, after, events: [token] }
}

/** Whether a trade says what was paid: in another quote than SOL by fields of its own. */
export const saysWhatWasPaid = (event: DecodedEvent): boolean =>
  quoteMintOf(event.text('quote_mint')) === MARKET_QUOTES.sol || event.has('virtual_quote_reserves')

/** A trade on a curve, with the reserves before and after it. @param decimals of its quote; null: not known */
export function translateTrade(
  event: DecodedEvent,
  place: ChainPlace,
  ts: number,
  decimals: number | null,
): CurveStep {
  const mint = event.text('mint') ?? ''
  const quoteMint = quoteMintOf(event.text('quote_mint'))
  const isSol = quoteMint === MARKET_QUOTES.sol
  const isBuy = event.flag('is_buy') === true
  const tokens = requireInteger(event, 'token_amount')
  const quote = requireInteger(event, isSol ? 'sol_amount' : 'quote_amount')
  const after = {
    quote: requireInteger(event, isSol ? 'virtual_sol_reserves' : 'virtual_quote_reserves'),
    tokens: requireInteger(event, 'virtual_token_reserves'),
  }
  const before = isBuy
    ? { quote: after.quote - quote, tokens: after.tokens + tokens }
    : { quote: after.quote + quote, tokens: after.tokens - tokens }
  const real = event.integer(isSol ? 'real_sol_reserves' : 'real_quote_reserves')
  const curveTokens = event.integer('real_token_reserves')
  const inQuote = (amount: bigint | null) =>
    amount === null || decimals === null ? undefined : toUnits(amount, decimals)
  const inTokens = (amount: bigint) => toUnits(amount, CURVE_TOKEN_DECIMALS)
  const vQuote = positive(inQuote(after.quote) ?? 0)
  const trade: TradeEvent = {
    type: 'trade',
    mint,
    ts,
    side: isBuy ? 'buy' : 'sell',
    tokenAmount: inTokens(tokens),
    ...tradeTexts(event.text('user'), place),
    solAmount: isSol ? inQuote(quote) : undefined,
    vSol: isSol ? vQuote : undefined,
    vTokens: positive(inTokens(after.tokens)),
    quoteMint,
    quoteAmount: inQuote(quote),
    vQuote,
    quoteReserve: inQuote(real),
    curveTokens: curveTokens === null ? undefined : inTokens(curveTokens),
  }
  return { mint, before, after, events: [trade], isMayhem: event.flag('mayhem_mode') }
}

const tradeTexts = (wallet: string | null, { signature, slot, index }: ChainPlace) => ({
  wallet: wallet ?? undefined,
  tx: signature,
  slot,
  eventIndex: index,
})

/** The decimals of the quote that a trade on a curve was paid in; undefined: only its mint's account knows. */
export const curveQuoteDecimals = (event: DecodedEvent): number | undefined =>
  quoteDecimals(quoteMintOf(event.text('quote_mint')))

/** The sold-out curve, or its migration to a pool: where it trades then has the name that all feeds give it. */
export function translateGraduated(event: DecodedEvent, ts: number): CurveStep {
  const mint = event.text('mint') ?? ''
  const pairAddress = event.text('pool')
  const pool = pairAddress === null ? undefined : 'pump-amm'
  const events: MarketEvent[] = [{ type: 'graduated', mint, ts, pool }]
  if (pairAddress !== null) events.push({ type: 'patch', mint, ts, fields: { pairAddress } })
  return { mint, before: null, after: null, events }
}

/** A mayhem token's reserves are set anew between two trades: nothing is traded. */
export function translateReserves(event: DecodedEvent): CurveStep {
  const mint = event.text('mint') ?? ''
  const state = (quote: string, tokens: string): CurveState => ({
    quote: requireInteger(event, quote),
    tokens: requireInteger(event, tokens),
  })
  return {
    mint,
    before: state('virtual_sol_reserves', 'virtual_token_reserves'),
    after: state('new_virtual_sol_reserves', 'new_virtual_token_reserves'),
    events: [],
  }
}

/**
 * What a buy paid into the pool. The event says it with fees or without, by the instruction: the reading counts that gives the base
 * amount by constant product of the reserves before it.
 */
function paidForBase(event: DecodedEvent, base: bigint, baseReserve: bigint, effectiveQuote: bigint): bigint {
  const readings = [requireInteger(event, 'quote_amount_in'), requireInteger(event, 'user_quote_amount_in')]
  const left = baseReserve - base
  if (left <= 0n) return readings[0]
  const exact = (effectiveQuote * base) / left
  const distance = (amount: bigint) => (amount > exact ? amount - exact : exact - amount)
  return distance(readings[1]) < distance(readings[0]) ? readings[1] : readings[0]
}

/** What a swap changed in its pool, in the smallest units: the event has the reserves before it. */
function readSwap(event: DecodedEvent) {
  const isBuy = event.name === 'BuyEvent'
  const base = requireInteger(event, isBuy ? 'base_amount_out' : 'base_amount_in')
  const baseReserve = requireInteger(event, 'pool_base_token_reserves')
  const quoteReserve = requireInteger(event, 'pool_quote_token_reserves')
  const effective = quoteReserve + requireInteger(event, 'virtual_quote_reserves')
  const quote = isBuy
    ? paidForBase(event, base, baseReserve, effective)
    : requireInteger(event, 'quote_amount_out')
  const signed = isBuy ? 1n : -1n
  return {
    isBuy,
    base,
    quote,
    baseAfter: baseReserve - signed * base,
    quoteAfter: quoteReserve + signed * quote,
    effectiveAfter: effective + signed * quote,
  }
}

/**
 * A swap of a pool as a trade of its token. Fees are not part of the amounts. Its price is that of the reserves after it, as on a curve:
 * what was paid for a few of the smallest units is rounded, and would be any price.
 */
export function translateSwap(event: DecodedEvent, place: ChainPlace, ts: number, pool: Pool): TradeEvent {
  const { isBuy, base, quote, baseAfter, quoteAfter, effectiveAfter } = readSwap(event)
  const [tokens, paid] = pool.isInverted ? [quote, base] : [base, quote]
  const [tokensAfter, paidAfter] = pool.isInverted ? [effectiveAfter, baseAfter] : [baseAfter, effectiveAfter]
  const inQuote = (amount: bigint) =>
    pool.quoteDecimals === null || amount < 0n ? undefined : toUnits(amount, pool.quoteDecimals)
  const isSol = pool.quoteMint === MARKET_QUOTES.sol
  const vQuote = positive(inQuote(paidAfter) ?? 0)
  return {
    type: 'trade',
    mint: pool.mint,
    ts,
    side: isBuy === pool.isInverted ? 'sell' : 'buy',
    tokenAmount: toUnits(tokens, pool.tokenDecimals),
    solAmount: isSol ? inQuote(paid) : undefined,
    vSol: isSol ? vQuote : undefined,
    vTokens: positive(toUnits(tokensAfter, pool.tokenDecimals)),
    ...tradeTexts(event.text('user'), place),
    quoteMint: pool.quoteMint,
    quoteAmount: inQuote(paid),
    vQuote,
    quoteReserve: inQuote(pool.isInverted ? baseAfter : quoteAfter),
  }
}

/** Which of a pool's mints is the token: the one that is no quote we know. */
export function poolOf(
  baseMint: string,
  quoteMint: string,
  decimals: (mint: string) => number | undefined,
): Pool | null {
  // SOL for dollars: neither is a token.
  if (quoteDecimals(baseMint) !== undefined && quoteDecimals(quoteMint) !== undefined) return null
  const isInverted = quoteDecimals(baseMint) !== undefined && quoteDecimals(quoteMint) === undefined
  const [mint, quote] = isInverted ? [quoteMint, baseMint] : [baseMint, quoteMint]
  const tokenDecimals = decimals(mint)
  if (tokenDecimals === undefined) return null
  return { mint, quoteMint: quote, isInverted, tokenDecimals, quoteDecimals: decimals(quote) ?? null }
}
