// Checks that wait for the end of the test: while it runs they would take its time, and that of a server in its process. A module of
// its own, since what they check with takes long to load and is not needed by every file; see setup.ts.

/** Bytes of answers that wait to be checked. */
const PENDING_BYTES_MAX = 64 * 1024 * 1024
let pending: (() => void)[] = []
let pendingBytes = 0

/** Runs the checks of the test that ends. Throws what the first that fails throws. */
export function checkPending(): void {
  const checks = pending
  pending = []
  pendingBytes = 0
  for (const check of checks) check()
}

/** @param bytes that the check keeps until then */
export function checkLater(bytes: number, check: () => void): void {
  pending.push(check)
  pendingBytes += bytes
  if (pendingBytes > PENDING_BYTES_MAX) checkPending()
}
