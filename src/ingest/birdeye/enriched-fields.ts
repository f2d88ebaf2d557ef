// Maps Birdeye's answers for a token to the enriched fields of the DataPoint. What Birdeye does not say is null.
import { safeParse } from '../../lib/safe-parse.ts'
import { amount, count } from '../../schema/bounds.ts'
import type { Enriched } from '../../schema/datapoint.ts'

type Data = Record<string, unknown>
const NO_DATA: Data = {}

const toFlag = (value: unknown): boolean | null => (typeof value === 'boolean' ? value : null)
const toAmount = (value: unknown): number | null => safeParse(amount, value).data ?? null
const toCount = (value: unknown): number | null => safeParse(count, value).data ?? null
/** For an authority a missing field means unknown, and null means that there is none. */
const hasAuthority = (data: Data, field: string): boolean | null =>
  field in data ? data[field] != null : null

function hasTransferFee({ transferFeeEnable, isToken2022 }: Data): boolean | null {
  if (typeof transferFeeEnable === 'boolean') return transferFeeEnable
  return transferFeeEnable == null && isToken2022 === false ? false : null
}

/** Birdeye's share is a fraction. A percentage outside 0 to 100 is dropped, and reported so that it can be counted. */
export function toTop10Percent(fraction: unknown): { percent: number | null; isOutside: boolean } {
  const percent = typeof fraction === 'number' ? 100 * fraction : Number.NaN
  if (Number.isNaN(percent)) return { percent: null, isOutside: false }
  const isOutside = percent < 0 || percent > 100
  return { percent: isOutside ? null : percent, isOutside }
}

/** The nine fields from the answers of `token_security` and `token_overview`. The fields of a missing answer are null. */
export function toEnrichedFields(securityData: Data | null, overviewData: Data | null): Enriched {
  const security = securityData ?? NO_DATA
  const overview = overviewData ?? NO_DATA
  return {
    has_freeze_authority: hasAuthority(security, 'freezeAuthority'),
    has_mint_authority: hasAuthority(security, 'ownerAddress'),
    transfer_fee_enabled: hasTransferFee(security),
    is_mutable_metadata: toFlag(security.mutableMetadata),
    top10_holder_pct_onchain: toTop10Percent(security.top10HolderPercent).percent,
    unique_wallet_24h: toCount(overview.uniqueWallet24h),
    unique_wallet_1h: toCount(overview.uniqueWallet1h),
    buy_volume_24h_usd: toAmount(overview.vBuy24hUSD),
    sell_volume_24h_usd: toAmount(overview.vSell24hUSD),
  }
}
