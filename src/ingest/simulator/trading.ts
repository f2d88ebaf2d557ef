import { CURVE_SUPPLY } from '../../schema/bonding-curve.ts'
import type { TradeEvent } from '../../schema/event.ts'
import { buy, CURVE_TOKENS_AT_GRADUATION, sell, spotPriceSol, tokensSold } from './curve.ts'
import { drawGroup, type Holder, type HolderGroup } from './holders.ts'
import { drawMoodTrades, MOODS, nextMood } from './mood.ts'
import type { Random } from './random.ts'
import type { SimulatedToken } from './token.ts'

/** What a trade depends on besides its token. */
export interface TradeContext {
  random: Random
  timeMs: number
  solUsd: number
  nextWallet(): string
  nextTransaction(): string
}

const SIZE_MEDIAN_SOL = 0.11
const SIZE_SIGMA = 1.25
const SIZE_SOL_MIN = 0.001
const SIZE_SOL_MAX = 12
/** Trades of a token on the curve are larger by the factor 1 + ln(appeal) / this. */
const APPEAL_SIZE_EFOLDS = 2.5
/** The share of buys falls by this for each e-fold of SOL in a pool, which pulls its price back. */
const POOL_PULL = 0.05
const POOL_SOL_CALM = 150
const NEWCOMER_SHARE = 0.55
const NAMED_SELLER_SHARE = 0.4
const SELL_OUT_SHARE = 0.2
const CROWD_LEAVES_SHARE = 0.5
/** Snipers, insiders and bundlers are among the buyers of the first trades. */
const EARLY_TRADES = 20
/** Of the tokens held, what may be traded before holders are told anew. */
const MOVED_SHARE_MAX = 0.05
/** With fewer tokens held, a token can only be bought. */
const TOKENS_HELD_MIN = 1

function drawSizeSol({ random }: TradeContext, token: SimulatedToken): number {
  const depth = token.isGraduated
    ? Math.sqrt(token.reserves.sol / 30)
    : 1 + Math.log(token.appeal) / APPEAL_SIZE_EFOLDS
  const size = random.lognormal(SIZE_MEDIAN_SOL, SIZE_SIGMA) * depth
  return Math.min(Math.max(size, SIZE_SOL_MIN), SIZE_SOL_MAX * depth)
}

function buyShare(token: SimulatedToken): number {
  const { buyShare: share } = MOODS[token.mood]
  return token.isGraduated ? share - POOL_PULL * Math.log(token.reserves.sol / POOL_SOL_CALM) : share
}

const tokensHeld = (token: SimulatedToken): number =>
  token.isGraduated ? CURVE_SUPPLY - token.reserves.tokens : tokensSold(token.reserves)
const tokensForSale = (token: SimulatedToken): number =>
  token.isGraduated ? token.reserves.tokens * 0.5 : token.reserves.tokens - CURVE_TOKENS_AT_GRADUATION

function tradeEvent(
  token: SimulatedToken,
  context: TradeContext,
  side: 'buy' | 'sell',
  wallet: string,
  filled: { sol: number; tokens: number },
): TradeEvent {
  const { reserves, isGraduated } = token
  return {
    type: 'trade',
    mint: token.mint,
    ts: context.timeMs,
    side,
    tokenAmount: filled.tokens,
    priceUsd: isGraduated ? spotPriceSol(reserves) * context.solUsd : undefined,
    solAmount: filled.sol,
    vSol: isGraduated ? undefined : reserves.sol,
    vTokens: isGraduated ? undefined : reserves.tokens,
    wallet,
    tx: context.nextTransaction(),
  }
}

/** The group of a new buyer: most groups are those of the first ones. */
function drawBuyerGroup(random: Random, token: SimulatedToken): HolderGroup | null {
  const group = drawGroup(random)
  return group === 'fresh' || token.trades <= EARLY_TRADES ? group : null
}

/** Buys tokens for `sol`, or as many as are for sale. */
export function buyTokens(
  token: SimulatedToken,
  context: TradeContext,
  wallet: string,
  sol: number,
): TradeEvent {
  const filled = buy(token.reserves, sol, tokensForSale(token))
  const group = drawBuyerGroup(context.random, token)
  token.holders.buy({ wallet, tokens: filled.tokens, group }, context.random.chance(NEWCOMER_SHARE))
  return tradeEvent(token, context, 'buy', wallet, filled)
}

/** Draws the seller: in a rug pull the largest holder, else a named holder, or null for one of the crowd. */
function drawSeller(token: SimulatedToken, random: Random): Holder | null {
  const { named, crowdTokens } = token.holders
  if (named.length === 0) return null
  if (token.mood === 'rug')
    return named.reduce((most, holder) => (holder.tokens > most.tokens ? holder : most))
  return crowdTokens < TOKENS_HELD_MIN || random.chance(NAMED_SELLER_SHARE) ? random.pick(named) : null
}

function sellTokens(token: SimulatedToken, context: TradeContext): TradeEvent {
  const { random } = context
  const holder = drawSeller(token, random)
  const held = holder === null ? token.holders.crowdTokens : holder.tokens
  const wanted = drawSizeSol(context, token) / spotPriceSol(token.reserves)
  const sellsOut =
    holder !== null && (token.mood === 'rug' ? random.chance(0.7) : random.chance(SELL_OUT_SHARE))
  const largest = token.mood === 'rug' ? held : wanted * 4
  const tokens = sellsOut ? Math.min(held, largest) : Math.min(held, wanted)
  const filled = sell(token.reserves, Math.max(tokens, Math.min(held, 1e-6)))
  if (holder !== null) token.holders.sellNamed(holder, filled.tokens)
  else token.holders.sellCrowd(filled.tokens, random.chance(CROWD_LEAVES_SHARE))
  return tradeEvent(token, context, 'sell', holder?.wallet ?? token.holders.unnamedWallet(), filled)
}

function advanceMood(token: SimulatedToken, random: Random): void {
  if (--token.moodTradesLeft > 0) return
  token.mood = nextMood(random, token.mood, token.isGraduated)
  token.moodTradesLeft = drawMoodTrades(random, token.mood)
  if (token.mood !== 'pump') token.dexBoosted = false
  else if (random.chance(0.25)) token.dexPaid = token.dexBoosted = true
}

/** Simulates one trade of a random wallet: changes the token and returns the event. */
export function simulateTrade(token: SimulatedToken, context: TradeContext): TradeEvent {
  const wantsBuy = context.random.chance(buyShare(token))
  const event =
    wantsBuy || tokensHeld(token) < TOKENS_HELD_MIN
      ? buyTokens(token, context, context.nextWallet(), drawSizeSol(context, token))
      : sellTokens(token, context)
  recordTrade(token, context, event)
  return event
}

/** Updates what follows from any trade for its token: counts, activity and mood. */
export function recordTrade(token: SimulatedToken, context: TradeContext, event: TradeEvent): void {
  token.trades++
  token.tokensMoved += event.tokenAmount
  // As the market counts volume: at the price after the trade.
  const usd = event.tokenAmount * spotPriceSol(token.reserves) * context.solUsd
  token.activity.add(event.side === 'buy', usd, context.timeMs)
  advanceMood(token, context.random)
}

/** Whether so much was traded since the token's holders were told that this is out of date. */
export const arePatchedFieldsOld = (token: SimulatedToken): boolean =>
  token.tokensMoved > MOVED_SHARE_MAX * tokensHeld(token)

/** Whether the curve has sold its last token, so that the token graduates. */
export const isSoldOut = (token: SimulatedToken): boolean =>
  !token.isGraduated && token.reserves.tokens <= CURVE_TOKENS_AT_GRADUATION
