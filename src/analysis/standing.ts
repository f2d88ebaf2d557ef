// In: accepted analyses and awards, one by one. Out: XP by agent, coverage by mint, and the boards over them.
// Reservations are made before the store has answered and undone when it refuses, so that two racers never both take
// a first bonus. Never touches the store.
import { COVERED_MINTS_MAX } from './limits.ts'

export interface Coverage {
  count: number
  lastSentiment: string
  lastScore: number
}

export interface StandingStart {
  xpTotals: readonly { agentId: string; xp: number; analyses: number }[]
  coverage: readonly ({ mint: string } & Coverage)[]
}

export class Standing {
  #xp = new Map<string, { xp: number; analyses: number }>()
  #coverage = new Map<string, Coverage>()
  #totalAnalyses = 0

  constructor({ xpTotals, coverage }: StandingStart) {
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

  /** Accepted analyses of a mint; for a mint beyond the maximum as many as leave no bonus. */
  countOf(mint: string): number {
    const count = this.#coverage.get(mint)?.count
    if (count !== undefined) return count
    return this.#coverage.size >= COVERED_MINTS_MAX ? Number.MAX_SAFE_INTEGER : 0
  }

  /** Counts an accepted analysis. @returns what undoes it. */
  accept(agentId: string, mint: string, xp: number, sentiment: string, score: number): () => void {
    const before = this.#coverage.get(mint)
    const covered = before !== undefined || this.#coverage.size < COVERED_MINTS_MAX
    if (covered)
      this.#coverage.set(mint, {
        count: (before?.count ?? 0) + 1,
        lastSentiment: sentiment,
        lastScore: score,
      })
    this.#totalAnalyses++
    this.award(agentId, xp, 1)
    return () => {
      this.#totalAnalyses--
      this.award(agentId, -xp, -1)
      const now = this.#coverage.get(mint)
      if (!covered || now === undefined) return
      if (now.count === 1) this.#coverage.delete(mint)
      else this.#coverage.set(mint, { ...now, count: now.count - 1 })
    }
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
      .map(([agentId, standing]) => ({ agentId, ...standing }))
  }

  topTokens(limit: number): ({ mint: string } & Coverage)[] {
    return [...this.#coverage]
      .sort(([a, { count: aCount }], [b, { count: bCount }]) => bCount - aCount || (a < b ? -1 : 1))
      .slice(0, limit)
      .map(([mint, coverage]) => ({ mint, ...coverage }))
  }
}
