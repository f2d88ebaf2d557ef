// In: a slot, an identity and random numbers. Out: one simulated token with its whole state. Never trades, never emits.
import { DAY_MS } from '../../lib/time.ts'
import { mintOfSymbol } from '../../schema/mint.ts'
import { Activity } from './activity.ts'
import {
  CURVE_SOL_RAISED,
  curveWith,
  freshCurve,
  poolWith,
  type Reserves,
  soldBy,
  TOTAL_SUPPLY,
} from './curve.ts'
import { Holders } from './holders.ts'
import { type MoodName, moodTrades, settledMood } from './mood.ts'
import { imageUriOf, inventWords, type TokenWords } from './names.ts'
import type { Random } from './random.ts'

export interface SimulatedToken extends TokenWords {
  slot: number
  mint: string
  imageUri: string
  creator: string
  createdAtMs: number
  reserves: Reserves
  isGraduated: boolean
  pairAddress: string | null
  mood: MoodName
  moodTradesLeft: number
  /** How attractive it is in itself, 1 upward; heat comes on top. */
  appeal: number
  holders: Holders
  activity: Activity
  trades: number
  viewerCount: number | null
  dexPaid: boolean
  dexBoosted: boolean
  /** What snipers, insiders, bundlers and fresh wallets held at the start, percent; it thins out with trading. */
  earlyHoldings: readonly number[]
  hasFreezeAuthority: boolean
  hasMintAuthority: boolean
  transferFeeEnabled: boolean | null
  isMutableMetadata: boolean
  /** In the queue of tokens whose patch is due. */
  isDue: boolean
}

const APPEAL_EXPONENT = 1.15
export const APPEAL_MAX = 250
const AGE_MEAN_MS = 3 * DAY_MS
const AGE_MS_MAX = 40 * DAY_MS
const RAISED_MEAN_SOL = 9
const GRADUATED_SHARE = 0.06
/** With less, the pool would have to hold nearly every token there is. */
const POOL_SOL_MIN = 25

/** A mint of the simulation: a real base58 address of 32 bytes that follows from the seed. */
export const mintOf = (seed: number, number: number): string =>
  mintOfSymbol(`mintlake simulated ${seed} token ${number}`)
const pairOf = (mint: string): string => mintOfSymbol(`mintlake simulated pair ${mint}`)

function blankToken(
  random: Random,
  seed: number,
  number: number,
  slot: number,
  creator: string,
): SimulatedToken {
  const mint = mintOf(seed, number)
  return {
    ...inventWords(random, number),
    slot,
    mint,
    imageUri: imageUriOf(mint),
    creator,
    createdAtMs: 0,
    reserves: freshCurve(),
    isGraduated: false,
    pairAddress: null,
    mood: 'fresh',
    moodTradesLeft: moodTrades(random, 'fresh'),
    appeal: random.pareto(APPEAL_EXPONENT, APPEAL_MAX),
    holders: new Holders(),
    activity: new Activity(),
    trades: 0,
    viewerCount: null,
    dexPaid: false,
    dexBoosted: false,
    earlyHoldings: [
      random.between(0, 12),
      random.between(0, 15),
      random.between(0, 20),
      random.between(5, 60),
    ],
    hasFreezeAuthority: random.chance(0.03),
    hasMintAuthority: random.chance(0.04),
    transferFeeEnabled: random.chance(0.05) ? null : random.chance(0.02),
    isMutableMetadata: random.chance(0.3),
    isDue: false,
  }
}

/** A token at its launch. */
export function launchToken(
  random: Random,
  seed: number,
  number: number,
  slot: number,
  creator: string,
  nowMs: number,
): SimulatedToken {
  return { ...blankToken(random, seed, number, slot, creator), createdAtMs: nowMs }
}

/** A token that was there before the simulation began, with a plausible past. */
export function agedToken(
  random: Random,
  seed: number,
  number: number,
  slot: number,
  creator: string,
  nowMs: number,
  wallets: () => string,
): SimulatedToken {
  const token = blankToken(random, seed, number, slot, creator)
  token.createdAtMs = nowMs - Math.floor(Math.min(AGE_MS_MAX, random.exponential(AGE_MEAN_MS)))
  token.mood = settledMood(random)
  token.moodTradesLeft = moodTrades(random, token.mood)
  if (random.chance(GRADUATED_SHARE)) {
    graduate(token, poolWith(Math.max(POOL_SOL_MIN, random.lognormal(120, 0.9))))
    token.appeal = Math.min(APPEAL_MAX, token.appeal * 6)
    token.holders.deal(random, TOTAL_SUPPLY - token.reserves.tokens, wallets)
  } else {
    token.reserves = curveWith(0.05 + Math.min(CURVE_SOL_RAISED - 2, random.exponential(RAISED_MEAN_SOL)))
    token.holders.deal(random, soldBy(token.reserves), wallets)
  }
  return token
}

/** Moves a token from its curve into a pool. */
export function graduate(token: SimulatedToken, pool: Reserves): void {
  token.reserves = pool
  token.isGraduated = true
  token.pairAddress = pairOf(token.mint)
}
