/** Throws when `condition` is false: the code itself is wrong. Also active in production. Not for checking input. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}
