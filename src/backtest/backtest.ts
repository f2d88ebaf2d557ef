// One backtest: a server on a recorded market that waits, programs that compete on it, and what became of them.

import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type App, startApp } from '../app.ts'
import { readConfig } from '../config/config.ts'
import type { Config } from '../config/settings.ts'
import { StepPace } from '../ingest/replay/pace.ts'
import { Random } from '../ingest/simulator/random.ts'
import { assert } from '../lib/assert.ts'
import { createLog } from '../lib/log.ts'
import { unlessAborted, within } from '../lib/wait.ts'
import { Baselines } from './baselines.ts'
import { Driver, type DriverStats, type Pacing } from './driver.ts'
import { FIRST_REQUEST_MS_MAX, UNWATCHED_STEP_MS } from './limits.ts'
import { Moments, type TokenFilter } from './moments.ts'
import { nameProgram, Program, type ProgramEnd } from './programs.ts'
import { WallStamps } from './wall-stamps.ts'

export interface BacktestOptions extends Pacing {
  /** The data folder whose market is played. */
  lake: string
  /** As `span` of `--replay` takes them; empty: from the first run that was recorded, to its end. */
  from: string
  to: string
  /** A folder that does not exist or is empty. */
  outDir: string
  /** The words of each program. */
  programs: readonly (readonly string[])[]
  hasBaselines: boolean
  /** Market time for which it goes on without programs. */
  tailMarketMs: number
  /** Of what is random here. */
  seed: number
  env: Readonly<Record<string, string | undefined>>
  /** Tells a person what happens. */
  say(sentence: string): void
}

/** A program, a baseline, or an agent that a program has registered by itself. */
export interface Competitor {
  name: string
  agentId: string
  /** Null: it is no program. */
  end: ProgramEnd | null
  isBaseline: boolean
  /** The words that started a program; else none. */
  words: readonly string[]
  /** How many of its submissions were refused without being compared, by the code of the error. */
  refused: Readonly<Record<string, number>>
}

export interface Played {
  dataDir: string
  /** Market time that programs saw, Unix ms. */
  fromMs: number
  toMs: number
  /** Market time up to which the market went on without them. */
  playedToMs: number
  simulated: boolean
  /** Why the market may differ from the recorded one. */
  approximate: string | null
  /** Why it ends before the last event that was wanted. */
  endsEarly: string | null
  /** It was ended before the market was. */
  isInterrupted: boolean
  events: number
  stats: DriverStats
  competitors: readonly Competitor[]
}

/** Settings of the live server that a backtest takes from the environment: they are rules that agents meet. */
const RULES = ['SUBMIT_LIMITS', 'READ_LIMIT_ANONYMOUS', 'READ_LIMIT_KEYED', 'LABELS_DELAY_MS'].map(
  (name) => `MINTLAKE_${name}`,
)

function configOf({ from, to, env }: BacktestOptions, dataDir: string): Config {
  const flags: Record<string, string> = {
    host: '127.0.0.1',
    port: '0',
    'data-dir': dataDir,
    feed: 'replay',
    // The lake itself is put in later: the name of its folder may read like further values.
    replay: `lake=.${from === '' && to === '' ? '' : `,span=${from}..${to}`}`,
    // Whatever happens by itself would happen at another market time on another machine.
    'page-age-ms': '0',
    'lake-flush-ms': '0',
    'drain-notice-ms': '0',
    'register-limit': '0',
    'disk-reserve-mb': '0',
    'log-level': 'warn',
  }
  const words = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
  return readConfig(words, Object.fromEntries(RULES.map((name) => [name, env[name]])))
}

/** @throws Error where there is something in it already */
async function makeOutFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true })
  if ((await readdir(path)).length > 0)
    throw new Error(`${path} is not empty: a backtest needs a folder of its own, see --out`)
}

/** Where nothing was played there is nothing to look at, and the same folder shall do for the next try. */
const emptyFolder = async (path: string): Promise<void> => {
  for (const name of await readdir(path)) await rm(join(path, name), { recursive: true, force: true })
}

/** What the played market lacks of the recorded one, for people: what was made of it would be taken for whole. */
export const lacksOf = ({ approximate, endsEarly }: Pick<Played, 'approximate' | 'endsEarly'>): string[] => [
  ...(approximate === null ? [] : [`Approximate: ${approximate}`]),
  ...(endsEarly === null ? [] : [`Ends early: ${endsEarly}`]),
]

export interface LabelOptions extends Omit<BacktestOptions, 'programs' | 'hasBaselines'> {
  /** Market time between two moments. */
  everyMarketMs: number
  filter: TokenFilter
}

/** Plays the market to nobody, and writes features of its tokens at many moments with what the price did afterwards. @returns the rows */
export async function writeLabels(options: LabelOptions): Promise<{ rows: number; path: string }> {
  const { outDir, everyMarketMs, filter, say, signal } = options
  const { app, driver, span, untilMs, dataDir } = await openBacktest({
    ...options,
    programs: [],
    hasBaselines: false,
  })
  const moments = new Moments(app, filter, outDir)
  const path = join(outDir, 'labels.parquet')
  try {
    try {
      await untilReady(app, signal)
      await driver.stepTo(span.fromMs)
      for (let dueMs = span.fromMs; dueMs <= untilMs && !signal.aborted; dueMs += everyMarketMs) {
        await goOn(driver, dueMs, signal)
        await moments.take(dueMs)
      }
      say(`${moments.rows} rows of features; the market goes on for outcomes`)
      await goOn(driver, Math.min(untilMs + options.tailMarketMs, span.toMs), signal)
      // A part of the wanted rows could be taken for all.
      signal.throwIfAborted()
      await driver.flush()
    } finally {
      await app.stop()
    }
    const rows = await moments.label(dataDir, path, driver.marketMs)
    await rm(dataDir, { recursive: true, force: true })
    // The command ends as stopped then, and whoever stopped it is told that nothing is left.
    signal.throwIfAborted()
    if (app.replayed !== null) for (const sentence of lacksOf(app.replayed)) say(sentence)
    return { rows, path }
  } catch (error) {
    await emptyFolder(outDir)
    throw error
  }
}

/** Resolves when the market is where it begins; rejects where the signal is aborted before. */
async function untilReady(app: App, signal: AbortSignal): Promise<void> {
  await unlessAborted(app.ready, signal)
  signal.throwIfAborted()
}

/** Takes a market on that nobody watches. */
async function goOn(driver: Driver, toMs: number, signal: AbortSignal): Promise<void> {
  while (driver.marketMs < toMs && !signal.aborted)
    await driver.stepTo(Math.min(driver.marketMs + UNWATCHED_STEP_MS, toMs))
}

/** Plays the market to the programs. The folder has what the server stored then, and what the programs wrote. */
export async function play(options: BacktestOptions): Promise<Played> {
  const opened = await openBacktest(options)
  const run = new Run(options, opened)
  try {
    await untilReady(opened.app, options.signal)
    return await run.play()
  } finally {
    await run.stopPrograms()
    await opened.app.stop()
    if (!run.hasBegun) await emptyFolder(options.outDir)
  }
}

export interface Opened {
  app: App
  driver: Driver
  /** Of what is played, market time, Unix ms. */
  span: { fromMs: number; toMs: number }
  /** Up to which it is seen. */
  untilMs: number
  dataDir: string
  refusals: Refusals
}

/** How many submissions were refused without being compared, of an agent and by the code of the error. */
class Refusals {
  readonly #counts = new Map<string, Map<string, number>>()

  add(agentId: string, code: string): void {
    if (code === 'snapshot_rejected') return
    const counts = this.#counts.get(agentId) ?? new Map<string, number>()
    this.#counts.set(agentId, counts.set(code, (counts.get(code) ?? 0) + 1))
  }

  of(agentId: string): Competitor['refused'] {
    return Object.fromEntries([...(this.#counts.get(agentId) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1)))
  }
}

/** A server on the replayed market, which waits at its beginning. */
export async function openBacktest(options: BacktestOptions): Promise<Opened> {
  const { lake, outDir } = options
  await makeOutFolder(outDir)
  const dataDir = join(outDir, 'data')
  const config = configOf(options, dataDir)
  // What lies behind the end of what programs see is played too, as far as it is wanted for outcomes.
  const { fromMs, toMs } = config.replay.span
  const played = { fromMs, toMs: toMs && toMs + options.tailMarketMs }
  const steps = new StepPace()
  const stamps = new WallStamps()
  const refusals = new Refusals()
  const random = new Random(options.seed)
  const log = createLog('warn', 'stderr')
  const app = await startApp(
    { ...config, replay: { ...config.replay, lake, span: played } },
    {
      steps,
      stamps,
      log,
      random: () => random.next(),
      onRefused: (agentId, code) => refusals.add(agentId, code),
      tuning: { follow: { flushMs: 0 } },
    },
  ).catch(async (error) => {
    await emptyFolder(outDir)
    throw error
  })
  assert(app.replayed !== null, 'a lake is replayed')
  const span = app.replayed
  if (span.fromMs > (fromMs ?? span.fromMs))
    options.say(`the lake has nothing before ${new Date(span.fromMs).toISOString()}: the market begins then`)
  const driver = new Driver({ app, steps, stamps }, options, span.fromMs)
  return { app, driver, span, untilMs: Math.min(toMs ?? span.toMs, span.toMs), dataDir, refusals }
}

class Run {
  /** The programs have seen a market. */
  hasBegun = false
  readonly #options: BacktestOptions
  readonly #opened: Opened
  readonly #app: App
  readonly #driver: Driver
  #baselineIds: readonly string[] = []
  readonly #programs: { program: Program; agentId: string; key: string; words: readonly string[] }[] = []

  constructor(options: BacktestOptions, opened: Opened) {
    this.#options = options
    this.#opened = opened
    this.#app = opened.app
    this.#driver = opened.driver
    this.#driver.programs = () =>
      this.#programs.filter(({ program }) => program.end === null).map(({ key }) => key)
  }

  async play(): Promise<Played> {
    const { say, tailMarketMs, signal, hasBaselines, seed, outDir } = this.#options
    const { span, untilMs } = this.#opened
    const { fromMs } = span
    await mkdir(join(outDir, 'programs'))
    await this.#driver.stepTo(fromMs)
    this.#assumeCoverage()
    const baselines = hasBaselines ? await Baselines.join(this.#app, seed) : null
    this.#baselineIds = baselines?.agentIds ?? []
    await this.#startPrograms()
    signal.throwIfAborted()
    this.hasBegun = true
    say(`the market begins at ${new Date(fromMs).toISOString()}, for ${this.#programs.length} programs`)
    await this.#driver.runTo(
      untilMs,
      () => this.#haveAllEnded(),
      async (marketMs) => baselines?.act(marketMs),
    )
    await this.#driver.untilTurnsEnd()
    const seenToMs = this.#driver.marketMs
    await this.stopPrograms()
    const tailToMs = Math.min(seenToMs + tailMarketMs, span.toMs)
    if (!signal.aborted)
      say(`the programs have ended; the market goes on to ${new Date(tailToMs).toISOString()} for outcomes`)
    await goOn(this.#driver, tailToMs, signal)
    // The labels of one flush are rows of the next.
    for (let flush = 0; flush < 2; flush++) await this.#driver.flush()
    return this.#result(seenToMs)
  }

  /** What was analysed before this time counts for bonuses as it did then. */
  #assumeCoverage(): void {
    const { market, submissions } = this.#app
    const counts = [...market.analysisCounts()].map(({ key, value }) => ({ mint: key, count: value }))
    submissions.assumeCoverage(counts)
  }

  /** One after the other, each until it has asked something, so that it sees the market from its beginning. */
  async #startPrograms(): Promise<void> {
    const { programs, outDir, env, say, signal } = this.#options
    const { agents, http, url } = this.#app
    for (const words of programs) {
      if (signal.aborted) return
      const name = nameProgram(
        words,
        this.#programs.map(({ program }) => program.name),
      )
      const { agentId, key } = await agents.register({ name }, true)
      const outputPath = join(outDir, 'programs', `${this.#programs.length + 1}.log`)
      const before = http.requestCount()
      const program = await Program.start({ words, name, url, key, env, outputPath })
      this.#programs.push({ program, agentId, key, words })
      const untilMs = performance.now() + FIRST_REQUEST_MS_MAX
      const isAwaited = () => http.requestCount() === before && program.end === null && !signal.aborted
      while (isAwaited() && performance.now() < untilMs) await within(5, program.exited)
      if (http.requestCount() === before && !signal.aborted)
        say(`${name} ${program.end === null ? 'has asked nothing yet' : 'has ended without a request'}`)
      await this.#driver.untilSilent()
    }
  }

  #haveAllEnded(): boolean {
    return this.#programs.length > 0 && this.#programs.every(({ program }) => program.end !== null)
  }

  async stopPrograms(): Promise<void> {
    await Promise.all(this.#programs.map(({ program }) => program.stop()))
  }

  #result(seenToMs: number): Played {
    const { market, agents, replayed } = this.#app
    const { refusals } = this.#opened
    const own = this.#programs.map(({ program, agentId, words }) => ({
      name: program.name,
      agentId,
      end: program.end,
      isBaseline: false,
      words,
      refused: refusals.of(agentId),
    }))
    const others = agents
      .list()
      .filter(({ agentId }) => own.every((each) => each.agentId !== agentId))
      .map(({ agentId, name }) => ({
        name,
        agentId,
        end: null,
        isBaseline: this.#baselineIds.includes(agentId),
        words: [],
        refused: refusals.of(agentId),
      }))
    return {
      dataDir: this.#opened.dataDir,
      fromMs: this.#opened.span.fromMs,
      toMs: seenToMs,
      playedToMs: this.#driver.marketMs,
      simulated: replayed?.simulated ?? false,
      approximate: replayed?.approximate ?? null,
      endsEarly: replayed?.endsEarly ?? null,
      isInterrupted: this.#options.signal.aborted,
      events: market.stats().events,
      stats: this.#driver.stats,
      competitors: [...own, ...others],
    }
  }
}
