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

function readMinutes(args: string[]): number {
  const at = args.indexOf('--minutes')
  if (at < 0) return 20
  const [, minutes] = args.splice(at, 2)
  if (Number(minutes) > TAIL_MINUTES) return Number(minutes)
  console.error(`--minutes is a number above ${TAIL_MINUTES}`)
  process.exit(2)
}

const args = process.argv.slice(2)
const minutes = readMinutes(args)
const end = args.includes('--') ? args.indexOf('--') : args.length
const [flags, program] = [args.slice(0, end), args.slice(end)]
if (flags.includes('--help')) {
  console.log(`npm run backtest -- [--minutes N] [flags of mintlake backtest] [-- PROGRAM]
--lake and --to are those of the market that it records first, of N simulated minutes [20].\n`)
  process.exit(
    spawnSync(process.execPath, [join(ROOT, 'scripts/mintlake.mjs'), 'backtest', '--help'], {
      stdio: 'inherit',
    }).status,
  )
}
const stopping = new AbortController()
for (const signal of ENDING_SIGNALS) process.on(signal, () => stopping.abort(signal))
const folder = mkdtempSync(join(tmpdir(), 'mintlake-backtest-'))
try {
  const lake = join(folder, 'lake')
  const beganMs = performance.now()
  // A day ago: no clock of a program can be mistaken for the market’s.
  const startMs = Math.floor((Date.now() - DAY_MS) / MINUTE_MS) * MINUTE_MS
  const wanted = { ...MARKET, dataDir: lake, startMs, lengthMs: minutes * MINUTE_MS }
  const events = await recordSimulation(wanted, createLog('warn'), stopping.signal)
  const tookMs = Math.round(performance.now() - beganMs)
  console.error(`recorded ${minutes} simulated minutes, ${events} events, in ${tookMs / 1_000} s`)
  const to = new Date(startMs + (minutes - TAIL_MINUTES) * MINUTE_MS).toISOString()
  const isGiven = (name: string): boolean => flags.some((word) => word.split('=', 1)[0] === name)
  const defaults = { '--lake': lake, '--to': to, '--tail-ms': `${TAIL_MINUTES * MINUTE_MS}` }
  const own = [...Object.entries(defaults).filter(([name]) => !isGiven(name)), flags].flat()
  if (!isGiven('--out')) own.push('--out', mkdtempSync(join(tmpdir(), 'mintlake-report-')))
  const words = program.length > 1 ? program : ['--', ...writeAgent(folder)]
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
