// Who holds a token, by the chain. The definition, as the documents have it: of the 20 largest accounts of the token, those of one
// owner count as one holder; accounts of its curve and of its pools are left out; shares are of the whole supply.

import { AMM_PROGRAM, PUMP_PROGRAM } from '../programs.ts'
import { toUnits } from '../quotes.ts'
import type { Account } from '../sol-price.ts'
import type { MintFacts, TokenAccount } from './mint-facts.ts'

export interface Holder {
  address: string
  /** In whole units. */
  amount: number
  /** Of the supply, percent. */
  pct: number
}

const HOLDERS_COUNTED = 10

/** What the curve or a pool owns is for sale, and nobody's. */
export const isMarketAccount = (account: Account | null): boolean =>
  account !== null && (account.owner === PUMP_PROGRAM || account.owner === AMM_PROGRAM)

/**
 * The largest holders, the largest first, and the share of the ten largest.
 * @param isMarket whether an owner is the curve or a pool
 */
export function largestHolders(
  accounts: readonly TokenAccount[],
  { supply, decimals }: Pick<MintFacts, 'supply' | 'decimals'>,
  isMarket: (owner: string) => boolean,
): { holders: Holder[]; top10Pct: number } | null {
  if (supply <= 0n) return null
  const byOwner = new Map<string, bigint>()
  for (const { owner, amount } of accounts)
    if (amount > 0n && !isMarket(owner)) byOwner.set(owner, (byOwner.get(owner) ?? 0n) + amount)
  const sorted = [...byOwner].toSorted(([a, amountA], [b, amountB]) =>
    amountA === amountB ? (a < b ? -1 : 1) : amountA > amountB ? -1 : 1,
  )
  const shareOf = (amount: bigint) => Math.min(100, Number((amount * 100_000_000n) / supply) / 1_000_000)
  const top10 = sorted.slice(0, HOLDERS_COUNTED).reduce((sum, [, amount]) => sum + amount, 0n)
  return {
    holders: sorted.map(([address, amount]) => ({
      address,
      amount: toUnits(amount, decimals),
      pct: shareOf(amount),
    })),
    top10Pct: shareOf(top10),
  }
}
