// The command: runs seeds one after another until one fails, or the time is over.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { REGRESSIONS } from '../regressions/seeds.ts'
import { FAULT_KINDS, type FaultKind } from './faults.ts'
import { type RunOptions, type RunResult, simulate } from './run.ts'
import { shrink } from './shrink.ts'

const STEPS = 240
const SHRINK_MS_MAX = 60_000
const MINUTE_MS = 60_000

export const USAGE = `npm run simulate -- [SEED] [--steps N] [--runs N] [--minutes M]
  SEED        the first seed; the next ones follow it. Default: drawn
  --steps N   steps of a run, ${STEPS} unless told
  --runs N    so many seeds; 1 unless told, or as many as fit into --minutes
  --minutes M seeds until so many minutes are over
  --without K,…  faults that do not happen: ${FAULT_KINDS.join(', ')}
  --duckdb    DuckDB and Parquet beside the modelled lake: both have to say the same, and to have the same rows
  --beyond    also what the model alone cannot do: backups, repairs, ends of the lake process within a request
  --agents N  at most so many agents
  --again     the seeds of test/regressions, each with its steps, instead
  --plant BUG a bug of test/simulate/planted.ts
  --sums FILE goes on with the seed behind those whose counts FILE has, and adds to them; after each seed it is written anew
  --json      counts and the failure as one line of JSON`

export interface Totals {
  /** The first seed: the others follow it. */
  first: number
  runs: number
  /** On the real machine. */
  tookMs: number
  steps: number
  events: number
  virtualMs: number
  counts: Record<string, number>
}

const isFault = (name: string): name is FaultKind => FAULT_KINDS.some((kind) => kind === name)

function readFlags(args: string[], realNow: () => number) {
  const { positionals, values } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      steps: { type: 'string' },
      runs: { type: 'string' },
      minutes: { type: 'string' },
      without: { type: 'string' },
      agents: { type: 'string' },
      duckdb: { type: 'boolean', default: false },
      beyond: { type: 'boolean', default: false },
      plant: { type: 'string' },
      again: { type: 'boolean', default: false },
      sums: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  })
  const number = (text: string | undefined, otherwise: number): number => {
    const read = text === undefined ? otherwise : Number(text)
    if (!(read > 0)) throw new Error(`${text} is no number above 0`)
    return read
  }
  const without = (values.without ?? '').split(',').filter((name) => name !== '')
  const unknown = without.find((name) => !isFault(name))
  if (unknown !== undefined) throw new Error(`${unknown} is none of the faults ${FAULT_KINDS.join(', ')}`)
  const minutes = values.minutes === undefined ? null : number(values.minutes, 1)
  return {
    seed: number(positionals[0], 1 + (realNow() % 1_000_000)),
    minutes,
    runs: values.again
      ? REGRESSIONS.length
      : number(values.runs, minutes === null ? 1 : Number.POSITIVE_INFINITY),
    isAgain: values.again,
    isJson: values.json,
    sums: values.sums ?? null,
    of: {
      steps: number(values.steps, STEPS),
      without: without.filter(isFault),
      hasRealLake: values.duckdb,
      goesBeyond: values.beyond,
      ...(values.agents !== undefined && { agentsMax: number(values.agents, 1) }),
    },
  }
}

/** @param realNow the time of the real machine. @returns the exit code */
export async function main(args: string[], realNow: () => number): Promise<number> {
  const { seed, minutes, runs, isAgain, isJson, sums, of } = readFlags(args, realNow)
  const untilMs = minutes === null ? Number.POSITIVE_INFINITY : realNow() + minutes * MINUTE_MS
  const totals = readSums(sums) ?? noTotals(seed)
  const hashes: string[] = []
  let failed: { options: RunOptions; result: RunResult } | null = null
  while (hashes.length < runs && realNow() < untilMs && failed === null) {
    const drawn = isAgain ? REGRESSIONS[hashes.length] : { seed: totals.first + totals.runs, steps: of.steps }
    const options = { ...of, seed: drawn.seed, steps: drawn.steps }
    const beganMs = realNow()
    const result = await simulate(options)
    add(totals, result, realNow() - beganMs)
    if (sums !== null) writeSums(sums, totals)
    hashes.push(result.hash)
    if (!isJson)
      console.log(
        `seed ${options.seed}  trace ${result.hash}  ${result.steps} steps, ${result.events} turns, ${Math.round(result.virtualMs / 1_000)} s`,
      )
    if (result.failure !== null) failed = { options, result }
  }
  if (isJson) {
    // Without the time of the real machine: what is left is equal wherever it runs.
    const { tookMs: _, ...equal } = totals
    console.log(JSON.stringify({ ...equal, hashes, failure: failed?.result.failure ?? null }))
  } else report(totals)
  if (failed === null) return 0
  if (!isJson) await explain(failed, realNow)
  return 1
}

const noTotals = (first: number): Totals => ({
  ...{ first, runs: 0, tookMs: 0, steps: 0, events: 0, virtualMs: 0, counts: {} },
})

const readSums = (path: string | null): Totals | null =>
  path === null || !existsSync(path) ? null : JSON.parse(readFileSync(path, 'utf8'))

/** A kill leaves the sums of the seed before. */
function writeSums(path: string, totals: Totals): void {
  writeFileSync(`${path}.tmp`, `${JSON.stringify(totals)}\n`)
  renameSync(`${path}.tmp`, path)
}

function add(totals: Totals, { steps, events, virtualMs, counts }: RunResult, tookMs: number): void {
  totals.runs++
  totals.tookMs += tookMs
  totals.steps += steps
  totals.events += events
  totals.virtualMs += virtualMs
  for (const [name, count] of counts) totals.counts[name] = (totals.counts[name] ?? 0) + count
}

function report({ first, runs, tookMs, steps, events, virtualMs, counts }: Totals): void {
  console.log(
    `\n${runs} seeds from ${first} in ${Math.round(tookMs / 1_000)} s: ${steps} steps, ${events} turns, ${Math.round(virtualMs / 1_000)} s simulated. Go on with seed ${first + runs}.`,
  )
  const names = Object.keys(counts).sort()
  for (const name of names) console.log(`${String(counts[name]).padStart(9)}  ${name}`)
}

async function explain(
  { options, result }: { options: RunOptions; result: RunResult },
  realNow: () => number,
): Promise<void> {
  tell(options, result)
  const untilMs = realNow() + SHRINK_MS_MAX
  const shrunk = await shrink(options, result, () => realNow() >= untilMs)
  console.log(`\nSmaller, after ${shrunk.runs} more runs:`)
  tell(shrunk.options, shrunk.result)
}

function tell(
  { seed, steps, without = [], agentsMax, hasRealLake, goesBeyond }: RunOptions,
  { failure }: RunResult,
): void {
  if (failure === null) return
  console.log(`\nFAILED: ${failure.invariant}\n  ${failure.detail.slice(0, 1_500)}`)
  console.log(`  seed ${seed}, step ${failure.step}; the last events (ms):`)
  for (const line of failure.last) console.log(`    ${line.slice(0, 300)}`)
  const flags = [
    `--steps ${steps}`,
    ...(without.length > 0 ? [`--without '${without.join(',')}'`] : []),
    ...(hasRealLake === true ? ['--duckdb'] : []),
    ...(goesBeyond === true ? ['--beyond'] : []),
    ...(agentsMax === undefined ? [] : [`--agents ${agentsMax}`]),
  ]
  console.log(`  again: npm run simulate -- ${seed} ${flags.join(' ')}`)
}
