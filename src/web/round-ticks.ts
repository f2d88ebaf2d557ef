const TICKS_MAX = 5
/** Steps of an axis that are easy to read, of each power of ten. */
const ROUND_STEPS = [1, 2, 2.5, 5, 10]

/** Round numbers around a span, evenly apart: the first is at most `low`, the last at least `high`. */
export function roundTicks(low: number, high: number): number[] {
  if (high <= low) return roundTicks(low, low + 1)
  const raw = (high - low) / (TICKS_MAX - 1)
  const power = 10 ** Math.floor(Math.log10(raw))
  const step = power * (ROUND_STEPS.find((each) => each * power >= raw * 0.999) ?? 10)
  const [first, last] = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)]
  // Products of whole numbers: sums would leave 0.30000000000000004.
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)))
}
