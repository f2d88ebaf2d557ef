// In: a condition that the code itself guarantees. Out: nothing, or a crash. Never used on input from outside.

/** Throws when the code is wrong. Left on in production. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}
