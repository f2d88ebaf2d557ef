const KIBIBYTE = 1_024

/** The most memory that this process has used so far. */
export const peakMemoryBytes = (): number => process.resourceUsage().maxRSS * KIBIBYTE
