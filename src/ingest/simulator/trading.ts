// In: a token and random numbers. Out: one trade on it, done: reserves, holders and mood moved, and the event that says
// so. Never picks the token, never emits.
import type { TradeEvent } from '../../schema/event.ts'
import { buy, CURVE_TOKENS_AT_GRADUATION, priceOf, sell, soldBy, TOTAL_SUPPLY } from './curve.ts'
import type { Holder } from './holders.ts'
import { MOODS, moodTrades, nextMood } from './mood.ts'
import type { Random } from './random.ts'
import type { SimulatedToken } from './token.ts'

/** What a trade needs to know of the world around its token. */
export interface TradeSetting {
  random: Random
  timeMs: number
  solUsd: number
  /** How much larger than usual trades are: a coarse history has fewer and larger ones. */
  scale: number
  wallet(): string
  transaction(): string
}

const SIZE_MEDIAN_SOL = 0.11
const SIZE_SIGMA = 1.25
const SIZE_SOL_MIN = 0.001
const SIZE_SOL_MAX = 12
/** What draws many also draws larger trades: one more of the usual size for each so many e-folds of appeal. */
const APPEAL_DEPTH = 2.5
/** A pool is pulled back to where it graduated by this share of buys for each e-fold of its SOL. */
const POOL_PULL = 0.05
const POOL_SOL_CALM = 150
const NEWCOMER_SHARE = 0.55
const NAMED_SELLER_SHARE = 0.4
const SELL_OUT_SHARE = 0.2
const CROWD_LEAVES_SHARE = 0.5
/** A token that nobody holds any more can only be bought. */
const TOKENS_HELD_MIN = 1

function sizeSol({ random, scale }: TradeSetting, token: SimulatedToken): number {
  const depth = token.isGraduated
    ? Math.sqrt(token.reserves.sol / 30)
    : 1 + Math.log(token.appeal) / APPEAL_DEPTH
  const size = random.lognormal(SIZE_MEDIAN_SOL, SIZE_SIGMA) * scale * depth
  return Math.min(Math.max(size, SIZE_SOL_MIN), SIZE_SOL_MAX * depth)
}

function buyShare(token: SimulatedToken): number {
  const { buyShare: share } = MOODS[token.mood]
  return token.isGraduated ? share - POOL_PULL * Math.log(token.reserves.sol / POOL_SOL_CALM) : share
}

const tokensHeld = (token: SimulatedToken): number =>
  token.isGraduated ? TOTAL_SUPPLY - token.reserves.tokens : soldBy(token.reserves)
const tokensForSale = (token: SimulatedToken): number =>
  token.isGraduated ? token.reserves.tokens * 0.5 : token.reserves.tokens - CURVE_TOKENS_AT_GRADUATION

function tradeEvent(
  token: SimulatedToken,
  setting: TradeSetting,
  side: 'buy' | 'sell',
  wallet: string,
  filled: { sol: number; tokens: number },
): TradeEvent {
  const { reserves, isGraduated } = token
  return {
    type: 'trade',
    mint: token.mint,
    ts: setting.timeMs,
    side,
    tokenAmount: filled.tokens,
    priceUsd: isGraduated ? priceOf(reserves) * setting.solUsd : undefined,
    solAmount: filled.sol,
    vSol: isGraduated ? undefined : reserves.sol,
    vTokens: isGraduated ? undefined : reserves.tokens,
    wallet,
    tx: setting.transaction(),
  }
}

/** A wallet buys for so much SOL, or what is left. */
export function buyFor(
  token: SimulatedToken,
  setting: TradeSetting,
  wallet: string,
  sol: number,
): TradeEvent {
  const filled = buy(token.reserves, sol, tokensForSale(token))
  token.holders.buy(wallet, filled.tokens, setting.random.chance(NEWCOMER_SHARE))
  return tradeEvent(token, setting, 'buy', wallet, filled)
}

/** Who sells: in a rug the largest holder, else a named holder or someone of the crowd (null). */
function seller(token: SimulatedToken, random: Random): Holder | null {
  const { named, crowdTokens } = token.holders
  if (named.length === 0) return null
  if (token.mood === 'rug')
    return named.reduce((most, holder) => (holder.tokens > most.tokens ? holder : most))
  return crowdTokens < TOKENS_HELD_MIN || random.chance(NAMED_SELLER_SHARE) ? random.pick(named) : null
}

function sellSome(token: SimulatedToken, setting: TradeSetting): TradeEvent {
  const { random } = setting
  const holder = seller(token, random)
  const held = holder === null ? token.holders.crowdTokens : holder.tokens
  const wished = sizeSol(setting, token) / priceOf(token.reserves)
  const sellsOut =
    holder !== null && (token.mood === 'rug' ? random.chance(0.7) : random.chance(SELL_OUT_SHARE))
  const largest = token.mood === 'rug' ? held : wished * 4
  const tokens = sellsOut ? Math.min(held, largest) : Math.min(held, wished)
  const filled = sell(token.reserves, Math.max(tokens, Math.min(held, 1e-6)))
  if (holder !== null) token.holders.sellNamed(holder, filled.tokens)
  else token.holders.sellCrowd(filled.tokens, random.chance(CROWD_LEAVES_SHARE))
  return tradeEvent(token, setting, 'sell', holder?.wallet ?? setting.wallet(), filled)
}

function passMood(token: SimulatedToken, random: Random): void {
  if (--token.moodTradesLeft > 0) return
  token.mood = nextMood(random, token.mood, token.isGraduated)
  token.moodTradesLeft = moodTrades(random, token.mood)
  if (token.mood !== 'pump') token.dexBoosted = false
  else if (random.chance(0.25)) token.dexPaid = token.dexBoosted = true
}

/** One trade by somebody, as the token's mood has it. */
export function tradeSome(token: SimulatedToken, setting: TradeSetting): TradeEvent {
  const wantsBuy = setting.random.chance(buyShare(token))
  const event =
    wantsBuy || tokensHeld(token) < TOKENS_HELD_MIN
      ? buyFor(token, setting, setting.wallet(), sizeSol(setting, token))
      : sellSome(token, setting)
  recordTrade(token, setting, event)
  return event
}

/** What follows from a trade for its token, whoever made it. */
export function recordTrade(token: SimulatedToken, setting: TradeSetting, event: TradeEvent): void {
  token.trades++
  token.activity.add(event.side === 'buy', (event.solAmount as number) * setting.solUsd, setting.timeMs)
  passMood(token, setting.random)
}

/** True when the last real token of the curve is sold. */
export const isSoldOut = (token: SimulatedToken): boolean =>
  !token.isGraduated && token.reserves.tokens <= CURVE_TOKENS_AT_GRADUATION
