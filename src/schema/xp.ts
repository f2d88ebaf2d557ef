/** The XP table of the specification's section 2.7. submissions/xp computes with it. */
export const XP_TABLE = {
  analysis: { base: 10, firstBonus: 25, lowCoverageBonus: 15 },
  trade: { perSwap: 10 },
  chat: { perQuery: 5 },
  social: { firstEnrichment: 3 },
  streaming: { perHour: 10 },
} as const

/** The largest deviation of each outcome, percent, inclusive, and the factor that its XP is multiplied by. */
export const XP_MULTIPLIERS = {
  validated: { deviationPctMax: 15, multiplier: 1 },
  unvalidated: { deviationPctMax: 50, multiplier: 0.5 },
  rejected: { deviationPctMax: null, multiplier: 0 },
} as const

/** Below this number of earlier accepted analyses of a mint, an analysis earns the low-coverage bonus. */
export const LOW_COVERAGE_COUNT = 5

/** Activities whose XP the operator awards. */
export const AWARDED_KINDS = ['trade', 'chat', 'social', 'streaming'] as const
export type AwardedKind = (typeof AWARDED_KINDS)[number]
export type XpKind = 'analysis' | AwardedKind
