// Makes a failing run smaller: fewer steps, fewer faults, fewer agents, as long as it fails in the same way.
import { FAULT_KINDS, type FaultKind } from './faults.ts'
import { type RunOptions, type RunResult, simulate } from './run.ts'

export interface Shrunk {
  options: RunOptions
  result: RunResult
  runs: number
}

/** @param isTimeOver asked before each run */
export async function shrink(
  options: RunOptions,
  failed: RunResult,
  isTimeOver: () => boolean,
): Promise<Shrunk> {
  const shrunk: Shrunk = { options: { ...options, steps: failed.steps + 1 }, result: failed, runs: 0 }
  const attempt = async (changed: Partial<RunOptions>): Promise<boolean> => {
    if (isTimeOver()) return false
    const options = { ...shrunk.options, ...changed }
    const result = await simulate(options)
    shrunk.runs++
    if (result.failure?.invariant !== failed.failure?.invariant) return false
    shrunk.options = { ...options, steps: Math.min(options.steps, result.steps + 1) }
    shrunk.result = result
    return true
  }
  for (const kind of FAULT_KINDS)
    await attempt({ without: [...(shrunk.options.without ?? []), kind] as FaultKind[] })
  for (let agentsMax = 1; agentsMax <= 4 && !(await attempt({ agentsMax })); agentsMax *= 2);
  // A run that ends sooner compares everything at its end.
  for (let low = 0; low + 1 < shrunk.options.steps && !isTimeOver(); ) {
    const steps = Math.floor((low + shrunk.options.steps) / 2)
    if (!(await attempt({ steps }))) low = steps
  }
  return shrunk
}
