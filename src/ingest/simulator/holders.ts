// In: who buys and sells how much of one token. Out: its holders: the largest by name, the rest as a crowd of which
// count and sum are kept, so that a token costs the same however many hold it. Never holds more or less than was bought.
import { roundTokens, TOTAL_SUPPLY } from './curve.ts'
import type { Random } from './random.ts'

export interface Holder {
  wallet: string
  tokens: number
}

/** Holders kept by name. */
const NAMED_MAX = 32
const TOP_SHOWN = 20
const TOP_TEN = 10
const TOKEN_UNITS_MIN = 1e-6

/** To the ten-thousandth. */
const percentOf = (tokens: number): number => Math.min(100, Math.round((1e6 * tokens) / TOTAL_SUPPLY) / 1e4)

/** The holders of one token. */
export class Holders {
  readonly named: Holder[] = []
  crowdCount = 0
  crowdTokens = 0

  get count(): number {
    return this.named.length + this.crowdCount
  }

  private byName(wallet: string): Holder | undefined {
    for (const holder of this.named) if (holder.wallet === wallet) return holder
    return undefined
  }

  /** The largest or smallest of the named; undefined when there are none. */
  extreme(sign: 1 | -1): Holder | undefined {
    let found = this.named[0]
    for (const holder of this.named) if (sign * holder.tokens > sign * found.tokens) found = holder
    return found
  }

  /** A buyer who is not known by name joins the crowd, or displaces the smallest of the named. */
  buy(wallet: string, tokens: number, isNewcomer: boolean): void {
    const known = this.byName(wallet)
    if (known !== undefined) known.tokens = roundTokens(known.tokens + tokens)
    else if (this.named.length < NAMED_MAX) this.named.push({ wallet, tokens })
    else this.joinCrowd({ wallet, tokens }, isNewcomer)
  }

  private joinCrowd(buyer: Holder, isNewcomer: boolean): void {
    const smallest = this.extreme(-1) as Holder
    const joining = buyer.tokens > smallest.tokens ? { ...smallest } : buyer
    if (joining !== buyer) Object.assign(smallest, buyer)
    if (isNewcomer || this.crowdCount === 0 || joining !== buyer) this.crowdCount++
    this.crowdTokens = roundTokens(this.crowdTokens + joining.tokens)
  }

  /** Takes tokens from a named holder, who is forgotten when nothing is left. */
  sellNamed(holder: Holder, tokens: number): void {
    holder.tokens = roundTokens(holder.tokens - tokens)
    if (holder.tokens < TOKEN_UNITS_MIN) this.named.splice(this.named.indexOf(holder), 1)
  }

  /** Takes tokens from the crowd; `leaves` when one of it has sold out. */
  sellCrowd(tokens: number, leaves: boolean): void {
    this.crowdTokens = roundTokens(this.crowdTokens - tokens)
    if (this.crowdTokens < TOKEN_UNITS_MIN) this.crowdCount = 0
    else if (leaves && this.crowdCount > 1) this.crowdCount--
  }

  /** Deals tokens that were bought before the simulation began among plausible holders. */
  deal(random: Random, tokens: number, wallets: () => string): void {
    const people = 4 + random.below(NAMED_MAX - 4)
    const shares = Array.from({ length: people }, () => random.pareto(1.1, 40))
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

  /** The largest holders with their share of the total supply in percent, and the share of the ten largest. */
  top(): { holders: { address: string; amount: number; pct: number }[]; top10Pct: number } {
    const sorted = [...this.named].sort((one, other) => other.tokens - one.tokens)
    const holders = sorted.slice(0, TOP_SHOWN).map(({ wallet, tokens }) => ({
      address: wallet,
      amount: tokens,
      pct: percentOf(tokens),
    }))
    const top10Tokens = sorted.slice(0, TOP_TEN).reduce((sum, { tokens }) => sum + tokens, 0)
    return { holders, top10Pct: percentOf(top10Tokens) }
  }

  percentOf(wallet: string): number {
    return percentOf(this.byName(wallet)?.tokens ?? 0)
  }
}
