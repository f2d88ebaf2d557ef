// Bounds of the accounts on the bus.

/** Accounts that are being written to the bus at once. */
export const PUTS_AT_ONCE = 64
/** How often it is looked whether the accounts on the bus were deleted. */
export const CHECK_MS = 5_000
/** How long it takes until the writer is told again of a key's first use that its account does not show. */
export const TELL_AGAIN_MS = 2_000
