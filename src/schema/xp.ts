// The XP table of the specification (2.7). The rules that use it are in submissions/xp.ts.

export const XP_TABLE = {
  analysis: { base: 10, firstBonus: 25, lowCoverageBonus: 15 },
  trade: { perSwap: 10 },
  chat: { perQuery: 5 },
  social: { firstEnrichment: 3 },
  streaming: { perHour: 10 },
} as const

/** The multiplier of each outcome, and the largest deviation in percent for which it applies. */
export const XP_MULTIPLIERS = {
  validated: { deviationPctMax: 15, multiplier: 1 },
  unvalidated: { deviationPctMax: 50, multiplier: 0.5 },
  rejected: { deviationPctMax: null, multiplier: 0 },
} as const

/** An analysis earns the low-coverage bonus while its mint has fewer accepted analyses than this. */
export const LOW_COVERAGE_COUNT = 5

export const XP_KINDS = ['analysis', 'trade', 'chat', 'social', 'streaming'] as const
export type XpKind = (typeof XP_KINDS)[number]
