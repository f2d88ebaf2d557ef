import type { Outcome } from '../../schema/vocabulary.ts'
import { type AwardedKind, LOW_COVERAGE_COUNT, XP_MULTIPLIERS, XP_TABLE } from '../../schema/xp.ts'
import type { XpBreakdown } from '../types.ts'

/** The outcome of a deviation in percent. Bounds are inclusive. */
export function outcomeOf(deviationPct: number): Outcome {
  if (deviationPct <= XP_MULTIPLIERS.validated.deviationPctMax) return 'validated'
  return deviationPct <= XP_MULTIPLIERS.unvalidated.deviationPctMax ? 'unvalidated' : 'rejected'
}

/** `acceptedBefore`: accepted analyses of the mint so far, by all agents. */
export function xpBreakdown(outcome: Outcome, acceptedBefore: number): XpBreakdown {
  const { base, firstBonus, lowCoverageBonus } = XP_TABLE.analysis
  return {
    base,
    firstBonus: acceptedBefore === 0 ? firstBonus : 0,
    lowCoverageBonus: acceptedBefore < LOW_COVERAGE_COUNT ? lowCoverageBonus : 0,
    multiplier: XP_MULTIPLIERS[outcome].multiplier,
  }
}

/** (base + first bonus + low-coverage bonus) x multiplier. Halves are exact in doubles. */
export function xpEarned(breakdown: XpBreakdown): number {
  return (breakdown.base + breakdown.firstBonus + breakdown.lowCoverageBonus) * breakdown.multiplier
}

/** XP of one unit of an activity that the operator awards. */
export const XP_PER_UNIT: Readonly<Record<AwardedKind, number>> = {
  trade: XP_TABLE.trade.perSwap,
  chat: XP_TABLE.chat.perQuery,
  social: XP_TABLE.social.firstEnrichment,
  streaming: XP_TABLE.streaming.perHour,
}
