/** Bytes of a megabyte, as settings and messages count them. */
export const MEGABYTE = 1_048_576
