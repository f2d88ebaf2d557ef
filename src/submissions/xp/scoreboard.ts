// XP by agent and accepted analyses by mint. Leaderboards and totals show what is durable; analyses that the store has not
// acknowledged are counted beside it. A bonus that depends on whether such an analysis becomes durable waits for it: so two
// racing analyses never both earn the first bonus, and a refused one takes no bonus with it.

import { KeyedSums } from '../../lib/collections/keyed-sums.ts'
import type { RecoveredXp } from '../../schema/recovered.ts'
import { LOW_COVERAGE_COUNT } from '../../schema/xp.ts'
import { COVERED_MINTS_MAX } from '../limits.ts'
import { KeyedCondition } from '../rate-limits/keyed-condition.ts'
import type { TokenLabels } from '../types.ts'
import { firstOf, SortedList } from './sorted-list.ts'

/** An accepted analysis, as far as it counts here. */
export interface ScoredAnalysis {
  agentId: string
  mint: string
  xp: number
}

export type AgentTotal = RecoveredXp['xpTotals'][number]
/** Accepted analyses of a token, and the labels of the latest whose labels others may see; null: there is none. */
type TokenTotal = RecoveredXp['coverage'][number]

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
const byCount = (a: TokenTotal, b: TokenTotal): number => b.count - a.count || byText(a.mint, b.mint)

export class Scoreboard {
  readonly #totalByAgent = new Map<string, AgentTotal>()
  /** Agents with XP, the most first, equal ones by identity. */
  readonly #agents: SortedList<AgentTotal>
  readonly #totalByMint = new Map<string, TokenTotal>()
  #totalAnalyses = 0
  /** Analyses that the store has not acknowledged, by mint, and their XP by agent. */
  readonly #pendingByMint = new KeyedSums()
  readonly #pendingXp = new KeyedSums()
  readonly #decided = new KeyedCondition()

  constructor({ xpTotals, coverage }: Pick<RecoveredXp, 'xpTotals' | 'coverage'>) {
    for (const { agentId, xp, analyses } of xpTotals)
      this.#totalByAgent.set(agentId, { agentId, xp, analyses })
    for (const total of coverage) {
      this.#totalByMint.set(total.mint, { ...total })
      this.#totalAnalyses += total.count
    }
    const ranked = [...this.#totalByAgent.values()].filter(({ xp }) => xp > 0)
    this.#agents = new SortedList((a, b) => b.xp - a.xp || byText(a.agentId, b.agentId), ranked)
  }

  /** So many analyses of a mint were accepted before. Nothing is known of who made them. */
  assume(mint: string, count: number): void {
    if (this.#totalByMint.size >= COVERED_MINTS_MAX || count <= 0) return
    this.#totalByMint.set(mint, { mint, count, lastSentiment: null, lastScore: null })
    this.#totalAnalyses += count
  }

  get totalAnalyses(): number {
    return this.#totalAnalyses
  }

  get uniqueTokens(): number {
    return this.#totalByMint.size
  }

  /** An agent's durable XP and accepted analyses. */
  total(agentId: string): AgentTotal {
    return this.#totalByAgent.get(agentId) ?? { agentId, xp: 0, analyses: 0 }
  }

  /** An agent's durable XP and that of its pending analyses. */
  xpWithPending(agentId: string): number {
    return this.total(agentId).xp + this.#pendingXp.get(agentId)
  }

  /** From 1, as on the leaderboard; null without XP. */
  rank(agentId: string): number | null {
    const total = this.#totalByAgent.get(agentId)
    return total === undefined || total.xp <= 0 ? null : this.#agents.indexOf(total) + 1
  }

  /** Durable analyses of a mint. Beyond COVERED_MINTS_MAX mints, a number at which no bonus is earned. */
  count(mint: string): number {
    const count = this.#totalByMint.get(mint)?.count
    if (count !== undefined) return count
    return this.#totalByMint.size >= COVERED_MINTS_MAX ? Number.MAX_SAFE_INTEGER : 0
  }

  /** Analyses of a mint, pending ones included: those that come before the next one. */
  countWithPending(mint: string): number {
    return this.count(mint) + this.#pendingByMint.get(mint)
  }

  /** Null when the bonuses of the next analysis of a mint are certain, else a promise to wait for before asking again. */
  waitForBonus(mint: string): Promise<void> | null {
    const [durable, all] = [this.count(mint), this.countWithPending(mint)]
    const isFirstOpen = durable === 0 && all > 0
    const isLowCoverageOpen = durable < LOW_COVERAGE_COUNT && all >= LOW_COVERAGE_COUNT
    return isFirstOpen || isLowCoverageOpen ? this.#decided.wait(mint) : null
  }

  /** Counts an analysis as pending. `confirm` or `cancel` must follow. */
  begin({ agentId, mint, xp }: ScoredAnalysis): void {
    this.#pendingByMint.add(mint, 1)
    this.#pendingXp.add(agentId, xp)
  }

  /** The analysis is durable. Called in the order in which they became so. */
  confirm(analysis: ScoredAnalysis): void {
    this.#cover(analysis)
    this.cancel(analysis)
  }

  /** The analysis is no longer pending. */
  cancel({ agentId, mint, xp }: ScoredAnalysis): void {
    this.#pendingByMint.add(mint, -1)
    this.#pendingXp.add(agentId, -xp)
    this.#decided.notifyAll(mint)
  }

  /** Adds durable XP, of so many accepted analyses. */
  award(agentId: string, xp: number, analyses: number): void {
    const before = this.total(agentId)
    const total = { agentId, xp: before.xp + xp, analyses: before.analyses + analyses }
    if (before.xp > 0) this.#agents.remove(before)
    if (total.xp > 0) this.#agents.add(total)
    this.#totalByAgent.set(agentId, total)
  }

  /** Shows labels of an analysis as the latest of its mint. */
  showLabels({ mint, sentiment, score }: TokenLabels): void {
    const total = this.#totalByMint.get(mint)
    if (total === undefined) return
    total.lastSentiment = sentiment
    total.lastScore = score
  }

  /** Agents with the most XP, equal ones by identity. */
  topAgents(limit: number): AgentTotal[] {
    return this.#agents.first(limit)
  }

  /** Tokens with the most analyses, equal ones by mint. */
  topTokens(limit: number): TokenTotal[] {
    return firstOf(this.#totalByMint.values(), limit, byCount)
  }

  #cover({ agentId, mint, xp }: ScoredAnalysis): void {
    const before = this.#totalByMint.get(mint)
    if (before !== undefined || this.#totalByMint.size < COVERED_MINTS_MAX) {
      if (before !== undefined) before.count++
      else this.#totalByMint.set(mint, { mint, count: 1, lastSentiment: null, lastScore: null })
    }
    this.#totalAnalyses++
    this.award(agentId, xp, 1)
  }
}
