// In: accepted analyses and awards, one by one. Out: XP by agent, coverage by mint, and the boards over them.
// What is on its way to the store is kept beside what is durable: boards and totals show the latter, and a bonus that
// depends on the fate of the former waits for it, so that two racers never both take a first bonus and a refused one
// takes none with it. Never touches the store.
import { LOW_COVERAGE_COUNT } from '../schema/xp.ts'
import { COVERED_MINTS_MAX } from './limits.ts'
import { Waiters } from './rate-limits/waiters.ts'

export interface Coverage {
  count: number
  lastSentiment: string
  lastScore: number
}

export interface ScoreboardStart {
  xpTotals: readonly { agentId: string; xp: number; analyses: number }[]
  coverage: readonly ({ mint: string } & Coverage)[]
}

/** An accepted analysis on its way to the store. */
export interface PendingAnalysis {
  /** Its agent's XP with it, and with what else of the agent is on its way. */
  xpTotal: number
  /** It is durable: in the order of writing. */
  confirm(): void
  /** The store refused it. */
  cancel(): void
}

export interface Analysis {
  agentId: string
  mint: string
  xp: number
  sentiment: string
  score: number
}

export class Scoreboard {
  #xp = new Map<string, { xp: number; analyses: number }>()
  #coverage = new Map<string, Coverage>()
  #totalAnalyses = 0
  /** Analyses on their way by mint, and the XP on its way by agent. */
  readonly #pendingByMint = new Map<string, number>()
  readonly #pendingXp = new Map<string, number>()
  readonly #waiters = new Waiters()

  constructor({ xpTotals, coverage }: ScoreboardStart) {
    for (const { agentId, xp, analyses } of xpTotals) this.#xp.set(agentId, { xp, analyses })
    for (const { mint, ...rest } of coverage) {
      this.#coverage.set(mint, rest)
      this.#totalAnalyses += rest.count
    }
  }

  get totalAnalyses(): number {
    return this.#totalAnalyses
  }

  get uniqueTokens(): number {
    return this.#coverage.size
  }

  xpOf(agentId: string): number {
    return this.#xp.get(agentId)?.xp ?? 0
  }

  /** Durable analyses of a mint; for a mint beyond the maximum as many as leave no bonus. */
  countOf(mint: string): number {
    const count = this.#coverage.get(mint)?.count
    if (count !== undefined) return count
    return this.#coverage.size >= COVERED_MINTS_MAX ? Number.MAX_SAFE_INTEGER : 0
  }

  /** Analyses of a mint that come before the next one, those on their way included. */
  countBefore(mint: string): number {
    return this.countOf(mint) + (this.#pendingByMint.get(mint) ?? 0)
  }

  /** What to wait for before the next analysis of a mint can know its bonuses; null when they are certain. */
  undecided(mint: string): Promise<void> | null {
    const [durable, all] = [this.countOf(mint), this.countBefore(mint)]
    const isFirstOpen = durable === 0 && all > 0
    const isLowCoverageOpen = durable < LOW_COVERAGE_COUNT && all >= LOW_COVERAGE_COUNT
    return isFirstOpen || isLowCoverageOpen ? this.#waiters.next(mint) : null
  }

  /** Reserves an accepted analysis: it counts for those that come after it. */
  begin(analysis: Analysis): PendingAnalysis {
    const { agentId, mint, xp } = analysis
    add(this.#pendingByMint, mint, 1)
    add(this.#pendingXp, agentId, xp)
    const end = (): void => {
      add(this.#pendingByMint, mint, -1)
      add(this.#pendingXp, agentId, -xp)
      this.#waiters.wake(mint)
    }
    return {
      xpTotal: this.xpOf(agentId) + this.#pendingXp.get(agentId)!,
      confirm: () => {
        this.#cover(analysis)
        end()
      },
      cancel: end,
    }
  }

  #cover({ agentId, mint, xp, sentiment, score }: Analysis): void {
    const before = this.#coverage.get(mint)
    if (before !== undefined || this.#coverage.size < COVERED_MINTS_MAX)
      this.#coverage.set(mint, {
        count: (before?.count ?? 0) + 1,
        lastSentiment: sentiment,
        lastScore: score,
      })
    this.#totalAnalyses++
    this.award(agentId, xp, 1)
  }

  award(agentId: string, xp: number, analyses: number): void {
    const before = this.#xp.get(agentId) ?? { xp: 0, analyses: 0 }
    this.#xp.set(agentId, { xp: before.xp + xp, analyses: before.analyses + analyses })
  }

  topAgents(limit: number): { agentId: string; xp: number; analyses: number }[] {
    return [...this.#xp]
      .filter(([, { xp }]) => xp > 0)
      .sort(([a, { xp: aXp }], [b, { xp: bXp }]) => bXp - aXp || (a < b ? -1 : 1))
      .slice(0, limit)
      .map(([agentId, scoreboard]) => ({ agentId, ...scoreboard }))
  }

  topTokens(limit: number): ({ mint: string } & Coverage)[] {
    return [...this.#coverage]
      .sort(([a, { count: aCount }], [b, { count: bCount }]) => bCount - aCount || (a < b ? -1 : 1))
      .slice(0, limit)
      .map(([mint, coverage]) => ({ mint, ...coverage }))
  }
}

/** Adds to a sum; one that is zero is forgotten. */
function add(sums: Map<string, number>, key: string, amount: number): void {
  const sum = (sums.get(key) ?? 0) + amount
  if (sum === 0) sums.delete(key)
  else sums.set(key, sum)
}
