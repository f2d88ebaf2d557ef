// In: something costly to make, and how long it stays good. Out: it, made for all who ask at once, and kept for those who
// ask soon after. Never runs two makings at once, and never keeps a failure.

/** Where no test owns it: the process's own time, ms. */
const monotonicMs = (): number => performance.now()

/**
 * One making at a time: whoever asks while it is under way waits for that one. Its result is given for `keptMs` after it
 * was made; a failure is told to those who waited for it, and the next one to ask tries again.
 */
export function shared<Value>(
  make: () => Promise<Value>,
  keptMs: number,
  nowMs: () => number = monotonicMs,
): () => Promise<Value> {
  let current: Promise<Value> | null = null
  /** Null while the current one is being made. */
  let madeAtMs: number | null = null

  function begin(): Promise<Value> {
    const making = make()
    current = making
    madeAtMs = null
    making.then(
      () => {
        madeAtMs = nowMs()
      },
      () => {
        current = null
      },
    )
    return making
  }

  return () => {
    const isGood = current !== null && (madeAtMs === null || nowMs() - madeAtMs < keptMs)
    return isGood ? current! : begin()
  }
}
