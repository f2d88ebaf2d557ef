// XP by agent and accepted analyses by mint. Leaderboards and totals show what is durable; analyses that the store has not
// acknowledged are counted beside it. A bonus that depends on whether such an analysis becomes durable waits for it: so two
// racing analyses never both earn the first bonus, and a refused one takes no bonus with it.
import { LOW_COVERAGE_COUNT } from '../../schema/xp.ts'
import { COVERED_MINTS_MAX } from '../limits.ts'
import { KeyedCondition } from '../rate-limits/keyed-condition.ts'
import type { Coverage, RecoveredXp } from '../types.ts'

/** An accepted analysis, as far as it counts here. */
export interface ScoredAnalysis {
  agentId: string
  mint: string
  xp: number
  sentiment: string
  score: number
}

interface AgentTotal {
  xp: number
  analyses: number
}

export class Scoreboard {
  readonly #totalByAgent = new Map<string, AgentTotal>()
  readonly #coverageByMint = new Map<string, Coverage>()
  #totalAnalyses = 0
  /** Analyses that the store has not acknowledged, by mint, and their XP by agent. */
  readonly #pendingByMint = new Map<string, number>()
  readonly #pendingXp = new Map<string, number>()
  readonly #decided = new KeyedCondition()

  constructor({ xpTotals, coverage }: RecoveredXp) {
    for (const { agentId, xp, analyses } of xpTotals) this.#totalByAgent.set(agentId, { xp, analyses })
    for (const { mint, ...rest } of coverage) {
      this.#coverageByMint.set(mint, rest)
      this.#totalAnalyses += rest.count
    }
  }

  get totalAnalyses(): number {
    return this.#totalAnalyses
  }

  get uniqueTokens(): number {
    return this.#coverageByMint.size
  }

  /** An agent's durable XP. */
  xp(agentId: string): number {
    return this.#totalByAgent.get(agentId)?.xp ?? 0
  }

  /** Durable analyses of a mint. Beyond COVERED_MINTS_MAX mints, a number at which no bonus is earned. */
  count(mint: string): number {
    const count = this.#coverageByMint.get(mint)?.count
    if (count !== undefined) return count
    return this.#coverageByMint.size >= COVERED_MINTS_MAX ? Number.MAX_SAFE_INTEGER : 0
  }

  /** Analyses of a mint, pending ones included: those that come before the next one. */
  countWithPending(mint: string): number {
    return this.count(mint) + (this.#pendingByMint.get(mint) ?? 0)
  }

  /** Null when the bonuses of the next analysis of a mint are certain, else a promise to wait for before asking again. */
  waitForBonus(mint: string): Promise<void> | null {
    const [durable, all] = [this.count(mint), this.countWithPending(mint)]
    const isFirstOpen = durable === 0 && all > 0
    const isLowCoverageOpen = durable < LOW_COVERAGE_COUNT && all >= LOW_COVERAGE_COUNT
    return isFirstOpen || isLowCoverageOpen ? this.#decided.wait(mint) : null
  }

  /** Counts an analysis as pending. Returns the agent's XP with it and its other pending ones. `confirm` or `cancel` must follow. */
  begin({ agentId, mint, xp }: ScoredAnalysis): number {
    add(this.#pendingByMint, mint, 1)
    return this.xp(agentId) + add(this.#pendingXp, agentId, xp)
  }

  /** The analysis is durable. Called in the order in which they became so. */
  confirm(analysis: ScoredAnalysis): void {
    this.#cover(analysis)
    this.cancel(analysis)
  }

  /** The analysis is no longer pending. */
  cancel({ agentId, mint, xp }: ScoredAnalysis): void {
    add(this.#pendingByMint, mint, -1)
    add(this.#pendingXp, agentId, -xp)
    this.#decided.notifyAll(mint)
  }

  /** Adds durable XP, of so many accepted analyses. */
  award(agentId: string, xp: number, analyses: number): void {
    const before = this.#totalByAgent.get(agentId) ?? { xp: 0, analyses: 0 }
    this.#totalByAgent.set(agentId, { xp: before.xp + xp, analyses: before.analyses + analyses })
  }

  /** Agents with the most XP, equal ones by identity. */
  topAgents(limit: number): ({ agentId: string } & AgentTotal)[] {
    return [...this.#totalByAgent]
      .filter(([, { xp }]) => xp > 0)
      .sort(([a, { xp: aXp }], [b, { xp: bXp }]) => bXp - aXp || (a < b ? -1 : 1))
      .slice(0, limit)
      .map(([agentId, total]) => ({ agentId, ...total }))
  }

  /** Tokens with the most analyses, equal ones by mint. */
  topTokens(limit: number): ({ mint: string } & Coverage)[] {
    return [...this.#coverageByMint]
      .sort(([a, { count: aCount }], [b, { count: bCount }]) => bCount - aCount || (a < b ? -1 : 1))
      .slice(0, limit)
      .map(([mint, coverage]) => ({ mint, ...coverage }))
  }

  #cover({ agentId, mint, xp, sentiment, score }: ScoredAnalysis): void {
    const before = this.#coverageByMint.get(mint)
    if (before !== undefined || this.#coverageByMint.size < COVERED_MINTS_MAX)
      this.#coverageByMint.set(mint, {
        count: (before?.count ?? 0) + 1,
        lastSentiment: sentiment,
        lastScore: score,
      })
    this.#totalAnalyses++
    this.award(agentId, xp, 1)
  }
}

/** Adds to a sum and returns it. A sum of zero is dropped. */
function add(sums: Map<string, number>, key: string, amount: number): number {
  const sum = (sums.get(key) ?? 0) + amount
  if (sum === 0) sums.delete(key)
  else sums.set(key, sum)
  return sum
}
