// In: nothing. Out: the XP table of the specification's section 2.7. Never computes: submissions/xp.ts does.

export const XP_TABLE = {
  analysis: { base: 10, firstBonus: 25, lowCoverageBonus: 15 },
  trade: { perSwap: 10 },
  chat: { perQuery: 5 },
  social: { firstEnrichment: 3 },
  streaming: { perHour: 10 },
} as const

/** Deviation bounds in percent, inclusive, and what each does to the XP of an analysis. */
export const XP_MULTIPLIERS = {
  validated: { deviationPctMax: 15, multiplier: 1 },
  unvalidated: { deviationPctMax: 50, multiplier: 0.5 },
  rejected: { deviationPctMax: null, multiplier: 0 },
} as const

/** Below this number of earlier accepted analyses of a mint, an analysis earns the low-coverage bonus. */
export const LOW_COVERAGE_COUNT = 5

export const XP_KINDS = ['analysis', 'trade', 'chat', 'social', 'streaming'] as const
export type XpKind = (typeof XP_KINDS)[number]
