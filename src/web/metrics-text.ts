// Reads the Prometheus text of /metrics.

/** The sum of each family's samples by name. Histograms appear as their `_sum`, `_count` and `_bucket`. */
export function parseMetrics(text: string): Map<string, number> {
  const sums = new Map<string, number>()
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{[^}]*\})? (\S+)/.exec(line)
    const name = match?.[1]
    if (name === undefined) continue
    const value = Number(match?.[2])
    if (Number.isFinite(value)) sums.set(name, (sums.get(name) ?? 0) + value)
  }
  return sums
}

/** A counter's growth per second between two readings, or null while there is only one. */
export function rate(
  before: { values: Map<string, number>; atMs: number } | null,
  after: { values: Map<string, number>; atMs: number },
  name: string,
): number | null {
  const [from, to] = [before?.values.get(name), after.values.get(name)]
  if (before === null || from === undefined || to === undefined || after.atMs <= before.atMs) return null
  // A counter that went back belongs to a server that was started anew.
  return to < from ? null : ((to - from) * 1_000) / (after.atMs - before.atMs)
}
