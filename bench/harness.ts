// In: nothing. Out: the words that questions, candidates and the runner share, and the small tools that every question
// needs. Never measures by itself.
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Bench } from 'tinybench'

/** What one candidate did in one round. Metrics are per second, microseconds, bytes …, as their names say. */
export interface Measured {
  metrics: Record<string, number>
  /** Of what it computed: work whose result nobody looks at may vanish. */
  checksum: string
  /** Values that every candidate that gives a sample must give alike: whoever computes something else is not compared. */
  sample?: number[]
}

export interface RunOptions {
  /** A few seconds for the whole benchmark: shows that it runs, not how fast. */
  small: boolean
  /** Everything, the largest sizes included. */
  full: boolean
}

export type Candidate = (options: RunOptions) => Promise<Measured> | Measured

/** What a measured figure is held against. */
export interface Comparison {
  title: string
  metric: string
  /** The candidate whose figure it is; `ours` unless said. */
  of?: string
  /** Another candidate: the target is a ratio ours / theirs. None: the target is the figure itself. */
  against?: string
  /** The metric of the other candidate, where it has another name. */
  againstMetric?: string
  unit: string
  gate?: number
  stretch?: number
  better: 'higher' | 'lower'
  note?: string
}

export interface Question {
  name: string
  title: string
  candidates: Record<string, Candidate>
  /** Candidates measured only where everything is. */
  fullOnly?: readonly string[]
  /** Candidates that are installed for the benchmark: left out of the small run, which needs no network. */
  onDemand?: readonly string[]
  /** Candidates that are another one but for a parameter: left out of the small run too. */
  variants?: readonly string[]
  comparisons: readonly Comparison[]
  rounds: number
  /** Run first, in the runner: installs a peer, compiles a limit. What it throws is what the missing candidates say. */
  prepare?(options: RunOptions): Promise<void> | void
  /** Run last, whatever happened: removes what was prepared. */
  cleanUp?(options: RunOptions): void
}

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

export const quantile = (sorted: ArrayLike<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]

export const sha = (bytes: string | NodeJS.ArrayBufferView): string =>
  createHash('sha256').update(bytes).digest('hex').slice(0, 12)

/** Times `work` once it is warm, for `ms`, with tinybench. What it returns is used. @returns the median run, microseconds. */
export async function microsecondsOf(work: () => unknown, ms: number): Promise<number> {
  let used: unknown
  const bench = new Bench({ time: ms, warmupTime: ms / 3 })
  bench.add('work', () => {
    used = work()
  })
  const [task] = await bench.run()
  const { result } = task
  if (result.state !== 'completed') throw new Error(`the work ended as ${result.state}`)
  if (used === undefined) throw new Error('the work made nothing')
  return result.latency.p50 * 1_000
}

const CACHE = join(tmpdir(), 'mintlake-bench')

/** A peer too heavy to be a dependency, installed for the benchmark alone; throws where it cannot be had. */
export function installed<Module>(name: string, version: string): Module {
  const prefix = join(CACHE, `${name}@${version}`)
  const require = createRequire(join(prefix, 'package.json'))
  if (!existsSync(join(prefix, 'node_modules', name))) {
    mkdirSync(prefix, { recursive: true })
    execFileSync(
      'npm',
      ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', prefix, `${name}@${version}`],
      { stdio: 'ignore', timeout: 120_000 },
    )
  }
  return require(name)
}

/** A limit written in C, compiled for this machine; throws where there is no compiler. */
export function compiled(source: URL, ...flags: string[]): string {
  mkdirSync(CACHE, { recursive: true })
  const target = join(CACHE, `${sha(readFileSync(source))}-${process.arch}`)
  if (!existsSync(target))
    execFileSync('cc', ['-O2', '-Wall', '-o', target, source.pathname, '-lm', ...flags], { stdio: 'inherit' })
  return target
}

/** Runs a program and reads the JSON on its last line. */
export function jsonOf<Value>(command: string, args: readonly string[], timeoutMs = 300_000): Promise<Value> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
    child.stdout.on('data', (chunk) => {
      text += chunk
    })
    child.on('error', reject)
    child.on('close', (code) => {
      clearTimeout(timer)
      if (code === 0) resolve(JSON.parse(text.trimEnd().split('\n').at(-1)!))
      else reject(new Error(`${command} ended with ${code}`))
    })
  })
}

/** How `npm start` runs Node, so that what is measured is what users run. */
export function serverArgs(): string[] {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  const { scripts } = JSON.parse(manifest) as { scripts: { start: string } }
  return ['--no-warnings', ...scripts.start.split(' ').slice(1, -1)]
}

const hasTaskset = existsSync('/usr/bin/taskset')

/** A command on one core, where the system can hold it there. */
export const onCore = (core: 0 | 1, command: string, args: readonly string[]): [string, string[]] =>
  hasTaskset ? ['taskset', ['-c', `${core}`, command, ...args]] : [command, [...args]]

const CLOCK_TICKS_PER_SECOND = 100

/** CPU seconds that the kernel counts for a process; with those of its children that ended and were waited for, if asked. */
function cpuSecondsOf(pid: number, withEndedChildren: boolean): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
  const ticks = fields.slice(11, withEndedChildren ? 15 : 13)
  return ticks.reduce((sum, count) => sum + Number(count), 0) / CLOCK_TICKS_PER_SECOND
}

/** CPU seconds of a process so far, without its children. */
export const cpuSeconds = (pid: number): number => cpuSecondsOf(pid, false)

/** CPU seconds of a process so far and of all that it started, those that have ended included. */
export function cpuSecondsOfAll(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean)
  return children.reduce((sum, child) => sum + cpuSecondsOfAll(Number(child)), cpuSecondsOf(pid, true))
}

/** The most memory that this process held since `forgetPeak`, or ever. */
export const peakRssBytes = (): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]) * 1_024

/** A store's log that tells of trouble alone, and remembers the most memory that merging took. */
export function mergeLog() {
  const log = {
    mergePeakBytes: 0,
    info({ peakBytes }: Record<string, unknown>): void {
      if (typeof peakBytes === 'number') log.mergePeakBytes = Math.max(log.mergePeakBytes, peakBytes)
    },
    warn: console.error,
    error: console.error,
  }
  return log
}

/** Begins the peak anew, where the kernel lets a process do so. */
export function forgetPeak(): void {
  try {
    writeFileSync('/proc/self/clear_refs', '5')
  } catch {
    // Then the peak is that of the whole run: never too low.
  }
}

export const rssBytes = (pid: number | 'self'): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1_024
