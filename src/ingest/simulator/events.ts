import { CURVE_SUPPLY } from '../../schema/bonding-curve.ts'
import type { PatchFields } from '../../schema/datapoint.ts'
import { ENRICHED_SOURCES } from '../../schema/enrichment.ts'
import type { GraduatedEvent, PatchEvent, TokenEvent } from '../../schema/event.ts'
import type { HolderGroup } from './holders.ts'
import type { SimulatedToken } from './token.ts'

const POOL_NAME = 'pump-amm'
const CURVE_DEX = 'pumpfun'

const toCent = (usd: number): number => Math.round(usd * 100) / 100

export function tokenEvent(token: SimulatedToken): TokenEvent {
  return {
    type: 'token',
    mint: token.mint,
    ts: token.createdAtMs,
    name: token.name,
    symbol: token.symbol,
    description: token.description,
    image_uri: token.imageUri,
    creator: token.creator,
    website: token.website,
    twitter: token.twitter,
    telegram: token.telegram,
    totalSupply: CURVE_SUPPLY,
  }
}

export const graduatedEvent = (token: SimulatedToken, timeMs: number): GraduatedEvent => ({
  type: 'graduated',
  mint: token.mint,
  ts: timeMs,
  pool: POOL_NAME,
})

/** What a provider estimates of a day's trades that the market has not seen all of. */
function tradeFields({ activity }: SimulatedToken, timeMs: number): PatchFields {
  const recent = activity.readAt(timeMs)
  return {
    unique_wallet_24h: recent.wallets24h,
    unique_wallet_1h: recent.wallets1h,
    buy_volume_24h_usd: toCent(recent.buyUsd24h),
    sell_volume_24h_usd: toCent(recent.sellUsd24h),
  }
}

function securityFields(token: SimulatedToken, top10Pct: number, timeMs: number): PatchFields {
  return {
    has_freeze_authority: token.hasFreezeAuthority,
    has_mint_authority: token.hasMintAuthority,
    transfer_fee_enabled: token.transferFeeEnabled,
    is_mutable_metadata: token.isMutableMetadata,
    top10_holder_pct_onchain: top10Pct,
    enriched_at: timeMs,
    enriched_source: ENRICHED_SOURCES.simulated,
  }
}

/** The liquidity of a pool; that of a curve follows from its trades. */
function poolFields(token: SimulatedToken, solUsd: number): PatchFields {
  if (!token.isGraduated) return { primaryDex: CURVE_DEX }
  return {
    primaryDex: POOL_NAME,
    pairAddress: token.pairAddress,
    liquidity: toCent(2 * token.reserves.sol * solUsd),
  }
}

/** The share of a group in percent. The creator belongs to none. */
const percentHeldBy = (token: SimulatedToken, of: HolderGroup): number =>
  token.holders.percentOf(({ group, wallet }) => group === of && wallet !== token.creator)

/**
 * What does not follow from the market's own trades, as of a time in Unix ms: holders, security, pool and promotion.
 * @param isWatched the market has seen all trades of the token
 */
export function patchEvent(
  token: SimulatedToken,
  solUsd: number,
  timeMs: number,
  isWatched: boolean,
): PatchEvent {
  const { holders, top10Pct } = token.holders.top()
  return {
    type: 'patch',
    mint: token.mint,
    ts: timeMs,
    fields: {
      holderCount: token.holders.count,
      topHolders: holders,
      top10Holding: top10Pct,
      top10HolderPct: top10Pct,
      snipersHolding: percentHeldBy(token, 'sniper'),
      insidersHolding: percentHeldBy(token, 'insider'),
      bundleHolding: percentHeldBy(token, 'bundler'),
      freshWalletsHolding: percentHeldBy(token, 'fresh'),
      creatorHolding: token.holders.percentOf(({ wallet }) => wallet === token.creator),
      dexPaid: token.dexPaid,
      dexBoosted: token.dexBoosted,
      ...poolFields(token, solUsd),
      ...securityFields(token, top10Pct, timeMs),
      ...(!isWatched && tradeFields(token, timeMs)),
    },
  }
}
