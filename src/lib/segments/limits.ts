// Bounds that all segments have in common.

/** A segment that reaches this size is sealed, and the next entry begins a new one. */
export const SEGMENT_BYTES = 64 * 1024 * 1024
/** How much a scan reads at once; all segments together may have gigabytes. A longer frame makes its buffer grow. */
export const SCAN_CHUNK_BYTES = 1024 * 1024
/** How much is read at once where only the first frames of a segment are needed. */
export const SEGMENT_START_BYTES = 8 * 1024
