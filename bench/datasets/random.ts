// In: a seed. Out: the same numbers in [0, 1) every time: thousands of steps from one seed, for loads and for tests. Never
// the generator of what is measured or tested.

/** mulberry32: small, good enough for a load; the same in bench/limits/bars.c. */
export function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
