// npm run backtest [-- --minutes 20] [flags of mintlake backtest] [-- PROGRAM]
// A backtest from a clean clone: records a simulated market in a lake that is removed afterwards, and lets the agent of README.md, or
// another program, compete on it with the baselines.
import './check-runtime.mjs'
import './end-with-npm.mjs'
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { recordSimulation } from '../src/backtest/record-simulation.ts'
import { createLog } from '../src/lib/log.ts'
import { ENDING_SIGNALS } from '../src/lib/process/ending-signals.ts'
import { readmeAgent } from './agent/readme-agent.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MINUTE_MS = 60_000
const DAY_MS = 1_440 * MINUTE_MS
/** Of the recorded minutes the last ones show what became of the calls, and programs do not see them. */
const TAIL_MINUTES = 7
/** A small market: what is recorded shall take seconds. */
const MARKET = { seed: 1, tokens: 600, tradesPerSecond: 50 }

/** The agent as README.md has it, where it finds this clone as `mintlake`. */
function writeAgent(folder: string): string[] {
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(ROOT, join(folder, 'node_modules', 'mintlake'))
  const path = join(folder, 'agent.mjs')
  writeFileSync(path, readmeAgent())
  return [process.execPath, '--conditions=mintlake-source', path]
}

function refuse(why: string): never {
  console.error(why)
  process.exit(2)
}

/** Takes them out of the flags; null: they are not among them. */
function takeMinutes(flags: string[]): number | null {
  const at = flags.findIndex((word) => /^--minutes(=|$)/.test(word))
  if (at < 0) return null
  const [, text] = flags
    .splice(at, flags[at] === '--minutes' ? 2 : 1)
    .join('=')
    .split('=')
  const minutes = Number(text)
  return minutes > TAIL_MINUTES ? minutes : refuse(`--minutes is a number above ${TAIL_MINUTES}`)
}

const args = process.argv.slice(2)
const end = args.includes('--') ? args.indexOf('--') : args.length
const [flags, program] = [args.slice(0, end), args.slice(end)]
const isGiven = (name: string): boolean => flags.some((word) => word.split('=', 1)[0] === name)
const wantedMinutes = takeMinutes(flags)
if (flags.includes('--help')) {
  console.log(`npm run backtest -- [--minutes N] [flags of mintlake backtest] [-- PROGRAM]
Without --lake it plays a market that it records first, of N simulated minutes [20].\n`)
  process.exit(
    spawnSync(process.execPath, [join(ROOT, 'scripts/mintlake.mjs'), 'backtest', '--help'], {
      stdio: 'inherit',
    }).status,
  )
}
if (wantedMinutes !== null && isGiven('--lake'))
  refuse('--minutes is of the market that is recorded where no --lake is given')

/** @returns the flags that play it */
async function record(lake: string, minutes: number): Promise<string[]> {
  const beganMs = performance.now()
  // A day ago: no clock of a program can be mistaken for the market’s.
  const startMs = Math.floor((Date.now() - DAY_MS) / MINUTE_MS) * MINUTE_MS
  const wanted = { ...MARKET, dataDir: lake, startMs, lengthMs: minutes * MINUTE_MS }
  const events = await recordSimulation(wanted, createLog('warn'), stopping.signal)
  const tookMs = Math.round(performance.now() - beganMs)
  console.error(`recorded ${minutes} simulated minutes, ${events} events, in ${tookMs / 1_000} s`)
  const to = new Date(startMs + (minutes - TAIL_MINUTES) * MINUTE_MS).toISOString()
  const played = { '--lake': lake, '--to': to, '--tail-ms': `${TAIL_MINUTES * MINUTE_MS}` }
  return Object.entries(played)
    .filter(([name]) => !isGiven(name))
    .flat()
}

const stopping = new AbortController()
for (const signal of ENDING_SIGNALS) process.on(signal, () => stopping.abort(signal))
const folder = mkdtempSync(join(tmpdir(), 'mintlake-backtest-'))
try {
  const played = isGiven('--lake') ? [] : await record(join(folder, 'lake'), wantedMinutes ?? 20)
  const own = [...played, ...flags]
  if (!isGiven('--out')) own.push('--out', mkdtempSync(join(tmpdir(), 'mintlake-report-')))
  const hasOwnProgram = program.length > 1 || isGiven('--labels-only')
  const words = hasOwnProgram ? program : ['--', ...writeAgent(folder)]
  const child = spawn(process.execPath, [join(ROOT, 'scripts/mintlake.mjs'), 'backtest', ...own, ...words], {
    stdio: 'inherit',
  })
  const pass = () => child.kill(stopping.signal.reason)
  if (stopping.signal.aborted) pass()
  stopping.signal.addEventListener('abort', pass)
  process.exitCode = await new Promise((resolve) => child.once('exit', (code) => resolve(code ?? 1)))
} catch (error) {
  if (!stopping.signal.aborted) throw error
  console.error('interrupted')
  process.exitCode = 130
} finally {
  rmSync(folder, { recursive: true, force: true })
}
