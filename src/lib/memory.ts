const KIBIBYTE = 1_024

/**
 * Memory for what a server keeps and collects more of. V8 does not count shared memory as something that a collection could free; of
 * other memory outside its heap, each 64 MB more ask for an old collection, which finds nothing where all of it is kept.
 */
export const lastingMemory = (bytes: number): SharedArrayBuffer => new SharedArrayBuffer(bytes)

/** The most memory that this process has used so far. */
export const peakMemoryBytes = (): number => process.resourceUsage().maxRSS * KIBIBYTE
