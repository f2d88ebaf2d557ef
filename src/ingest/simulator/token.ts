import { DAY_MS } from '../../lib/time.ts'
import { CURVE_SUPPLY } from '../../schema/bonding-curve.ts'
import { mintOfSymbol } from '../../schema/mint.ts'
import { Activity } from './activity.ts'
import {
  CURVE_SOL_RAISED,
  curveAfterRaising,
  newCurve,
  type Reserves,
  tokensSold,
  tradedPool,
} from './curve.ts'
import { Holders } from './holders.ts'
import { drawMoodTrades, drawSettledMood, type MoodName } from './mood.ts'
import { inventWords, makeImageUri, type TokenWords } from './names.ts'
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
  /** How much it is traded, from 1 upward, before its mood is taken into account. */
  appeal: number
  holders: Holders
  activity: Activity
  trades: number
  /** Tokens that were traded since its holders were last told; infinite before the first time. */
  tokensMoved: number
  viewerCount: number | null
  dexPaid: boolean
  dexBoosted: boolean
  hasFreezeAuthority: boolean
  hasMintAuthority: boolean
  transferFeeEnabled: boolean | null
  isMutableMetadata: boolean
}

const APPEAL_EXPONENT = 1.15
export const APPEAL_MAX = 250
const AGE_MEAN_MS = 3 * DAY_MS
const AGE_MS_MAX = 40 * DAY_MS
const RAISED_MEAN_SOL = 9
const GRADUATED_SHARE = 0.06
/** With less SOL the pool would hold nearly all tokens. */
const POOL_SOL_MIN = 25

/** A simulated mint: a valid base58 address of 32 bytes. */
const simulatedMint = (marketName: string, number: number): string =>
  mintOfSymbol(`mintlake simulated ${marketName} token ${number}`)
const simulatedPair = (mint: string): string => mintOfSymbol(`mintlake simulated pair ${mint}`)

/** What tells a new token from others, and the generator that its properties are drawn from. */
export interface TokenIdentity {
  random: Random
  marketName: string
  /** Counts the tokens of the simulation, from 0. */
  number: number
  slot: number
  nextWallet: () => string
}

function createToken({ random, marketName, number, slot, nextWallet }: TokenIdentity): SimulatedToken {
  const mint = simulatedMint(marketName, number)
  return {
    ...inventWords(random, number),
    slot,
    mint,
    imageUri: makeImageUri(mint),
    creator: nextWallet(),
    createdAtMs: 0,
    reserves: newCurve(),
    isGraduated: false,
    pairAddress: null,
    mood: 'fresh',
    moodTradesLeft: drawMoodTrades(random, 'fresh'),
    appeal: random.pareto(APPEAL_EXPONENT, APPEAL_MAX),
    holders: new Holders(nextWallet),
    activity: new Activity(),
    trades: 0,
    tokensMoved: Number.POSITIVE_INFINITY,
    viewerCount: null,
    dexPaid: false,
    dexBoosted: false,
    hasFreezeAuthority: random.chance(0.03),
    hasMintAuthority: random.chance(0.04),
    transferFeeEnabled: random.chance(0.05) ? null : random.chance(0.02),
    isMutableMetadata: random.chance(0.3),
  }
}

/** Creates a token at its launch. */
export function createLaunchedToken(identity: TokenIdentity, nowMs: number): SimulatedToken {
  return { ...createToken(identity), createdAtMs: nowMs }
}

/** Draws the age of a token that existed before the simulation. */
export const drawAgeMs = (random: Random): number =>
  Math.floor(Math.min(AGE_MS_MAX, random.exponential(AGE_MEAN_MS)))

/** Creates a token that existed before the simulation, with a plausible past. */
export function createAgedToken(identity: TokenIdentity, createdAtMs: number): SimulatedToken {
  const { random } = identity
  const token = createToken(identity)
  token.createdAtMs = createdAtMs
  token.mood = drawSettledMood(random)
  token.moodTradesLeft = drawMoodTrades(random, token.mood)
  if (random.chance(GRADUATED_SHARE)) {
    graduate(token, tradedPool(Math.max(POOL_SOL_MIN, random.lognormal(120, 0.9))))
    token.appeal = Math.min(APPEAL_MAX, token.appeal * 6)
    token.holders.distribute(random, CURVE_SUPPLY - token.reserves.tokens)
  } else {
    token.reserves = curveAfterRaising(
      0.05 + Math.min(CURVE_SOL_RAISED - 2, random.exponential(RAISED_MEAN_SOL)),
    )
    token.holders.distribute(random, tokensSold(token.reserves))
  }
  return token
}

/** Moves a token from its curve into a pool. */
export function graduate(token: SimulatedToken, pool: Reserves): void {
  token.reserves = pool
  token.isGraduated = true
  token.pairAddress = simulatedPair(token.mint)
}
