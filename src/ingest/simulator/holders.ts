import { roundTokens, TOTAL_SUPPLY } from './curve.ts'
import type { Random } from './random.ts'

export interface Holder {
  wallet: string
  tokens: number
}

/** Holders that are kept one by one. */
const NAMED_MAX = 32
const TOP_SHOWN = 20
const TOP_TEN = 10
const TOKEN_UNITS_MIN = 1e-6

/** The share of the total supply in percent, with four decimals. */
const supplyPercent = (tokens: number): number =>
  Math.min(100, Math.round((1e6 * tokens) / TOTAL_SUPPLY) / 1e4)

/**
 * The holders of one token: the largest one by one, the rest as a crowd of which only number and sum are kept, so that memory does
 * not grow with the number of holders. Their tokens add up to what was bought and not sold.
 */
export class Holders {
  readonly named: Holder[] = []
  crowdCount = 0
  crowdTokens = 0

  get count(): number {
    return this.named.length + this.crowdCount
  }

  #findNamed(wallet: string): Holder | undefined {
    for (const holder of this.named) if (holder.wallet === wallet) return holder
    return undefined
  }

  /** A new buyer is kept by name while there is room, then joins the crowd or takes the place of the smallest named holder. */
  buy(wallet: string, tokens: number, isNewcomer: boolean): void {
    const known = this.#findNamed(wallet)
    if (known !== undefined) known.tokens = roundTokens(known.tokens + tokens)
    else if (this.named.length < NAMED_MAX) this.named.push({ wallet, tokens })
    else this.#joinCrowd({ wallet, tokens }, isNewcomer)
  }

  #joinCrowd(buyer: Holder, isNewcomer: boolean): void {
    let smallest = this.named[0]
    for (const holder of this.named) if (holder.tokens < smallest.tokens) smallest = holder
    const joining = buyer.tokens > smallest.tokens ? { ...smallest } : buyer
    if (joining !== buyer) Object.assign(smallest, buyer)
    if (isNewcomer || this.crowdCount === 0 || joining !== buyer) this.crowdCount++
    this.crowdTokens = roundTokens(this.crowdTokens + joining.tokens)
  }

  /** Takes tokens from a named holder, and removes a holder that has none left. */
  sellNamed(holder: Holder, tokens: number): void {
    holder.tokens = roundTokens(holder.tokens - tokens)
    if (holder.tokens < TOKEN_UNITS_MIN) this.named.splice(this.named.indexOf(holder), 1)
  }

  /** Takes tokens from the crowd. @param isSoldOut whether the seller has none left. */
  sellCrowd(tokens: number, isSoldOut: boolean): void {
    this.crowdTokens = roundTokens(this.crowdTokens - tokens)
    if (this.crowdTokens < TOKEN_UNITS_MIN) this.crowdCount = 0
    else if (isSoldOut && this.crowdCount > 1) this.crowdCount--
  }

  /** Distributes tokens that were bought before the simulation began among plausible holders. */
  distribute(random: Random, tokens: number, wallets: () => string): void {
    const namedCount = 4 + random.below(NAMED_MAX - 4)
    const shares = Array.from({ length: namedCount }, () => random.pareto(1.1, 40))
    const crowdShare = random.between(0.1, 0.6)
    const namedTokens = tokens * (1 - crowdShare)
    const sum = shares.reduce((total, share) => total + share, 0)
    let left = tokens
    for (const share of shares) {
      const dealt = roundTokens((namedTokens * share) / sum)
      left -= dealt
      this.buy(wallets(), dealt, true)
    }
    this.crowdTokens = roundTokens(this.crowdTokens + left)
    this.crowdCount += Math.round(random.lognormal(60, 1.1)) + 1
  }

  /** The largest holders with their shares of the total supply, and the share of the ten largest, in percent. */
  top(): { holders: { address: string; amount: number; pct: number }[]; top10Pct: number } {
    const sorted = [...this.named].sort((one, other) => other.tokens - one.tokens)
    const holders = sorted.slice(0, TOP_SHOWN).map(({ wallet, tokens }) => ({
      address: wallet,
      amount: tokens,
      pct: supplyPercent(tokens),
    }))
    const top10Tokens = sorted.slice(0, TOP_TEN).reduce((sum, { tokens }) => sum + tokens, 0)
    return { holders, top10Pct: supplyPercent(top10Tokens) }
  }

  percentHeldBy(wallet: string): number {
    return supplyPercent(this.#findNamed(wallet)?.tokens ?? 0)
  }
}
