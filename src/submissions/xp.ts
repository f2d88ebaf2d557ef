// In: a deviation, and how many accepted analyses of the mint came before. Out: the outcome and its XP.
// Never keeps a total: scoreboard.ts does.
import type { Outcome } from '../schema/vocabulary.ts'
import { LOW_COVERAGE_COUNT, XP_MULTIPLIERS, XP_TABLE, type XpKind } from '../schema/xp.ts'

export interface XpBreakdown {
  base: number
  /** 0 when it does not apply. */
  firstBonus: number
  /** 0 when it does not apply. */
  lowCoverageBonus: number
  multiplier: number
}

/** Bounds are inclusive: 15 % is validated, 50 % is unvalidated. */
export function outcomeOf(deviationPct: number): Outcome {
  if (deviationPct <= XP_MULTIPLIERS.validated.deviationPctMax) return 'validated'
  return deviationPct <= XP_MULTIPLIERS.unvalidated.deviationPctMax ? 'unvalidated' : 'rejected'
}

/** (base + first bonus + low-coverage bonus) x multiplier; `acceptedBefore` counts everybody's analyses of the mint. */
export function xpBreakdown(outcome: Outcome, acceptedBefore: number): XpBreakdown {
  const { base, firstBonus, lowCoverageBonus } = XP_TABLE.analysis
  return {
    base,
    firstBonus: acceptedBefore === 0 ? firstBonus : 0,
    lowCoverageBonus: acceptedBefore < LOW_COVERAGE_COUNT ? lowCoverageBonus : 0,
    multiplier: XP_MULTIPLIERS[outcome].multiplier,
  }
}

/** Points earned; halves are exact in doubles. */
export function xpEarned(breakdown: XpBreakdown): number {
  return (breakdown.base + breakdown.firstBonus + breakdown.lowCoverageBonus) * breakdown.multiplier
}

/** Points of one unit of an activity that only the operator awards. */
export function xpPerUnit(kind: Exclude<XpKind, 'analysis'>): number {
  const units = {
    trade: XP_TABLE.trade.perSwap,
    chat: XP_TABLE.chat.perQuery,
    social: XP_TABLE.social.firstEnrichment,
    streaming: XP_TABLE.streaming.perHour,
  }
  return units[kind]
}
