// Types and helpers that the questions, candidates and the runner share.
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Bench } from 'tinybench'

/** Result of one candidate in one round. The names of metrics contain their units. */
export interface Measured {
  metrics: Record<string, number>
  /** Checksum of the computed result, so that the compiler cannot remove the work. */
  checksum: string
  /** Computed values that have to be equal in all candidates that return a sample; else they are not compared. */
  sample?: number[]
}

export interface RunOptions {
  /** Takes a few seconds in all, to show that the benchmark works. The figures mean nothing. */
  small: boolean
  /** Includes the largest sizes. */
  full: boolean
}

export type Candidate = (options: RunOptions) => Promise<Measured> | Measured

/** Compares a figure with a peer's or with a target. */
export interface Comparison {
  title: string
  metric: string
  /** The candidate; `ours` by default. */
  of?: string
  /** A peer: the targets are for the ratio ours / theirs. Without one they are for the figure itself. */
  against?: string
  /** The peer's metric, if it has another name. */
  againstMetric?: string
  unit: string
  /** Targets. Without them the figure is only reported. */
  gate?: number | undefined
  stretch?: number | undefined
  better: 'higher' | 'lower'
  /** A figure that is the difference of two: noise can make it negative. */
  isDifference?: true
  note?: string
}

export interface Question {
  name: string
  title: string
  candidates: Record<string, Candidate>
  /** Candidates that only a full run measures. */
  fullOnly?: readonly string[]
  /** Candidates that have to be installed first; the small run leaves them out, since it needs no network. */
  onDemand?: readonly string[]
  /** Candidates that differ from another one by a parameter only; the small run leaves them out. */
  variants?: readonly string[]
  comparisons: readonly Comparison[]
  rounds: number
  /** Runs first, in the runner: installs peers, compiles limits. Its error is reported for the candidates it concerns. */
  prepare?(options: RunOptions): Promise<void> | void
  /** Runs last in any case and removes what was prepared. */
  cleanUp?(options: RunOptions): void
}

/** The error of a candidate that cannot be measured here. Its row says so, and it is no failure. */
export const NEEDS_NATS = 'skipped: it needs nats-server (apt-get install nats-server)'

/** A comparison of a figure with targets, of which less is better. */
export const lessIsBetter = (
  title: string,
  metric: string,
  unit: string,
  targets: Pick<Comparison, 'gate' | 'stretch' | 'isDifference'> = {},
): Comparison => ({ title, metric, unit, better: 'lower', ...targets })

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

export const quantile = (sorted: ArrayLike<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]

export const sha = (bytes: string | NodeJS.ArrayBufferView): string =>
  createHash('sha256').update(bytes).digest('hex').slice(0, 12)

/** Times `work` for `ms` after a warm-up, with tinybench. @returns the median, microseconds */
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

/** Installs and loads a peer that is too heavy to be a dependency. Throws when that fails. */
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

/** Compiles a limit that is written in C. Throws without a compiler. @returns the path of the program */
export function compiled(source: URL, ...flags: string[]): string {
  mkdirSync(CACHE, { recursive: true })
  const target = join(CACHE, `${sha(readFileSync(source))}-${process.arch}`)
  if (!existsSync(target))
    execFileSync('cc', ['-O2', '-Wall', '-o', target, source.pathname, '-lm', ...flags], { stdio: 'inherit' })
  return target
}

/** How long a program that took too long has to end what it started. */
const END_MS_MAX = 2_000

/** Runs a program and parses the JSON on the last line of its output. Rejects where it fails, or takes longer than `timeoutMs`. */
export function jsonOf<Value>(command: string, args: readonly string[], timeoutMs = 300_000): Promise<Value> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    let timer = setTimeout(() => {
      child.kill()
      // One that never comes back from its own code hears of no signal.
      timer = setTimeout(() => child.kill('SIGKILL'), END_MS_MAX)
    }, timeoutMs)
    child.stdout.on('data', (chunk) => {
      text += chunk
    })
    child.on('error', reject)
    child.on('close', (code) => {
      clearTimeout(timer)
      if (code === 0) resolve(JSON.parse(text.trimEnd().split('\n').at(-1)!))
      else if (child.killed) reject(new Error(`${command} took longer than ${timeoutMs / 1_000} s`))
      else reject(new Error(`${command} ended with ${code}`))
    })
  })
}

/** The flags that `npm start` gives to Node, so that users' configuration is measured. */
export function serverArgs(): string[] {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  const { scripts } = JSON.parse(manifest) as { scripts: { start: string } }
  return ['--no-warnings', ...scripts.start.split(' ').slice(1, -1)]
}

/** Does work in a new folder, which is removed at its end. */
export async function inFolder<Value>(work: (folder: string) => Promise<Value>): Promise<Value> {
  const folder = mkdtempSync(join(tmpdir(), 'mintlake-bench-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const hasTaskset = existsSync('/usr/bin/taskset')

/** `any`: wherever the kernel runs it, as users' processes are. */
export type Core = 0 | 1 | 'any'

/** Pins a command to one core, where `taskset` exists. */
export const onCore = (core: Core, command: string, args: readonly string[]): [string, string[]] =>
  hasTaskset && core !== 'any' ? ['taskset', ['-c', `${core}`, command, ...args]] : [command, [...args]]

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

/** Peak memory of this process since `forgetPeak`, or since its start. */
export const peakRssBytes = (): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]) * 1_024

/** A log for the store that prints warnings and errors only, and records the peak memory of merging. */
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

/** Resets the peak memory, where the kernel allows it. */
export function forgetPeak(): void {
  try {
    writeFileSync('/proc/self/clear_refs', '5')
  } catch {
    // Without it the peak is that of the whole run, which is never too low.
  }
}

export const rssBytes = (pid: number | 'self'): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1_024
