import { CURVE_SUPPLY } from '../../schema/bonding-curve.ts'
import { roundTokens } from './curve.ts'
import type { Random } from './random.ts'

/** Groups of holders that a DataPoint tells of. No holder is in two. */
export type HolderGroup = 'sniper' | 'insider' | 'bundler' | 'fresh'

export interface Holder {
  wallet: string
  tokens: number
  group: HolderGroup | null
}

/** Holders that are kept one by one. */
const NAMED_MAX = 32
const TOP_SHOWN = 20
const TOP_TEN = 10
const TOKEN_UNITS_MIN = 1e-6
/** Shares of wallets, up to each group. */
const GROUPS_UP_TO: readonly (readonly [HolderGroup, number])[] = [
  ['sniper', 0.06],
  ['insider', 0.12],
  ['bundler', 0.22],
  ['fresh', 0.45],
]

/** The share of the total supply in percent, with four decimals. */
const supplyPercent = (tokens: number): number =>
  Math.min(100, Math.round((1e6 * tokens) / CURVE_SUPPLY) / 1e4)

/** Draws the group of a wallet; null: it is an ordinary one. */
export function drawGroup(random: Random): HolderGroup | null {
  const share = random.next()
  return GROUPS_UP_TO.find(([, upTo]) => share < upTo)?.[0] ?? null
}

/**
 * The holders of one token: the largest one by one, the rest as a crowd of which only number and sum are kept, so that memory does
 * not grow with the number of holders. Their tokens add up to what was bought and not sold. There is a crowd only beside as many
 * named holders as are kept, and none of them has less than one of the crowd has on average: the ten largest are the ten largest.
 */
export class Holders {
  readonly named: Holder[] = []
  crowdCount = 0
  crowdTokens = 0
  readonly #nextWallet: () => string

  /** @param nextWallet draws any wallet */
  constructor(nextWallet: () => string) {
    this.#nextWallet = nextWallet
  }

  get count(): number {
    return this.named.length + this.crowdCount
  }

  #findNamed(wallet: string): Holder | undefined {
    for (const holder of this.named) if (holder.wallet === wallet) return holder
    return undefined
  }

  #smallestNamed(): Holder {
    let smallest = this.named[0]
    for (const holder of this.named) if (holder.tokens < smallest.tokens) smallest = holder
    return smallest
  }

  /** A new buyer is kept by name while there is room, then joins the crowd or takes the place of the smallest named holder. */
  buy(buyer: Holder, isNewcomer: boolean): void {
    const known = this.#findNamed(buyer.wallet)
    if (known !== undefined) known.tokens = roundTokens(known.tokens + buyer.tokens)
    else if (this.named.length < NAMED_MAX) this.named.push(buyer)
    else this.#joinCrowd(buyer, isNewcomer)
    this.#settle()
  }

  #joinCrowd(buyer: Holder, isNewcomer: boolean): void {
    const smallest = this.#smallestNamed()
    const joining = buyer.tokens > smallest.tokens ? { ...smallest } : buyer
    if (joining !== buyer) Object.assign(smallest, buyer)
    if (isNewcomer || this.crowdCount === 0 || joining !== buyer) this.crowdCount++
    this.crowdTokens = roundTokens(this.crowdTokens + joining.tokens)
  }

  /** Takes tokens from a named holder, and removes a holder that has none left. */
  sellNamed(holder: Holder, tokens: number): void {
    holder.tokens = roundTokens(holder.tokens - tokens)
    if (holder.tokens < TOKEN_UNITS_MIN) this.named.splice(this.named.indexOf(holder), 1)
    this.#settle()
  }

  /** Takes tokens from the crowd. @param isSoldOut whether the seller has none left. */
  sellCrowd(tokens: number, isSoldOut: boolean): void {
    this.crowdTokens = roundTokens(this.crowdTokens - tokens)
    const left = isSoldOut && this.crowdCount > 1 ? this.crowdCount - 1 : this.crowdCount
    this.crowdCount = Math.min(left, Math.round(this.crowdTokens / TOKEN_UNITS_MIN))
    this.#settle()
  }

  /** Moves an average one of the crowd to the named holders for as long as there is room, or one of them has less. */
  #settle(): void {
    while (this.crowdCount > 0) {
      const tokens = roundTokens(this.crowdTokens / this.crowdCount)
      const smallest = this.named.length < NAMED_MAX ? null : this.#smallestNamed()
      if (smallest !== null && smallest.tokens >= tokens) return
      this.crowdTokens = roundTokens(this.crowdTokens - tokens + (smallest?.tokens ?? 0))
      if (smallest === null) this.crowdCount--
      else this.named.splice(this.named.indexOf(smallest), 1)
      this.named.push({ wallet: this.unnamedWallet(), tokens, group: null })
    }
  }

  /** A wallet of the crowd. */
  unnamedWallet(): string {
    for (;;) {
      const wallet = this.#nextWallet()
      if (this.#findNamed(wallet) === undefined) return wallet
    }
  }

  /** Distributes tokens that were bought before the simulation began among plausible holders. */
  distribute(random: Random, tokens: number): void {
    const namedCount = 4 + random.below(NAMED_MAX - 4)
    const shares = Array.from({ length: namedCount }, () => random.pareto(1.1, 40))
    const crowdShare = random.between(0.1, 0.6)
    const namedTokens = tokens * (1 - crowdShare)
    const sum = shares.reduce((total, share) => total + share, 0)
    let left = tokens
    for (const share of shares) {
      const dealt = roundTokens((namedTokens * share) / sum)
      left -= dealt
      this.buy({ wallet: this.#nextWallet(), tokens: dealt, group: drawGroup(random) }, true)
    }
    this.crowdTokens = roundTokens(this.crowdTokens + left)
    this.crowdCount += Math.round(random.lognormal(60, 1.1)) + 1
    this.#settle()
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

  /** What some of the named holders hold together, in percent of the total supply. */
  percentOf(isMeant: (holder: Holder) => boolean): number {
    return supplyPercent(this.named.reduce((sum, holder) => sum + (isMeant(holder) ? holder.tokens : 0), 0))
  }
}
