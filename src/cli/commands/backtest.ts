// `backtest`: programs on a market that was recorded, and the report on what they said of it.
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { LabelOptions } from '../../backtest/backtest.ts'
import * as limits from '../../backtest/limits.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { TABS } from '../../schema/vocabulary.ts'
import { type Command, EXIT, Failure, requiredValue, UsageError, type Values, wordValue } from '../command.ts'
import { counted, numberOption, span, wholeNumber } from '../common.ts'
import { Stop } from '../stop.ts'
import { type Terminal, write } from '../terminal.ts'

function speedOf(values: Values): number | 'max' {
  const text = requiredValue(values, 'speed')
  if (text === 'max') return text
  const speed = Number(text)
  if (speed > 0 && Number.isFinite(speed)) return speed
  throw new UsageError(`--speed: "${text}" is neither a number above 0 nor max`)
}

// What the replay itself finds wrong it says of its own flags, which are not those of this command.
function lakeOf(values: Values): string {
  const lake = resolve(requiredValue(values, 'lake'))
  if (existsSync(lake)) return lake
  throw new Failure(`--lake: there is no folder ${lake}`)
}

/** As `span` of `--replay` takes its ends: it takes no Unix ms of times as far as 1970 and 9999, which dates may name. */
function spanOf(values: Values): { from: string; to: string } {
  const { fromMs, toMs } = span(values)
  const text = (ms: number | null): string => (ms === null ? '' : new Date(ms).toISOString())
  return { from: text(fromMs), to: text(toMs) }
}

/** A folder of this run's own, in the current one. */
const outDirOf = (values: Values, { clock }: Terminal): string =>
  resolve(
    requiredValue(values, 'out') || `backtest-${new Date(clock.now()).toISOString().replace(/[:.]/g, '-')}`,
  )

async function run(
  values: Values,
  terminal: Terminal,
  programs: readonly (readonly string[])[],
): Promise<number | undefined> {
  const isLabelsOnly = values['labels-only'] === 'true'
  checkPrograms(programs, isLabelsOnly)
  const stop = new Stop(terminal)
  const options = {
    ...spanOf(values),
    speed: speedOf(values),
    programs,
    lake: lakeOf(values),
    outDir: outDirOf(values, terminal),
    hasBaselines: values['no-baselines'] !== 'true',
    marketStepMs: wholeNumber(values, 'market-step-ms', 1),
    silenceMs: wholeNumber(values, 'step-ms', 0),
    waitMsMax: wholeNumber(values, 'step-wait-ms', 1),
    tailMarketMs: wholeNumber(values, 'tail-ms', 0),
    seed: wholeNumber(values, 'seed', 0),
    env: terminal.env,
    signal: stop.signal,
    say: (sentence: string) => void terminal.stderr.write(`mintlake: ${sentence}\n`),
  }
  if (isLabelsOnly) return runLabels({ ...options, ...labelOptions(values) }, terminal, stop)
  // Loaded here: no other command starts a server.
  const { backtest } = await import('../../backtest/report/report.ts')
  const { text, haveFailed } = await stop.during(() => backtest(options).catch(explain))
  // What was played before it was interrupted is a report too, which says so.
  await write(terminal.stdout, text)
  stop.check()
  return haveFailed ? EXIT.failed : EXIT.done
}

function checkPrograms(programs: readonly (readonly string[])[], isLabelsOnly: boolean): void {
  if (isLabelsOnly && programs.length > 0)
    throw new UsageError('--labels-only runs no program: leave out what follows behind --')
  if (!isLabelsOnly && (programs.length === 0 || programs.some((words) => words.length === 0)))
    throw new UsageError('the command line of a program has to follow behind --, as in -- node agent.mjs')
  if (programs.length > limits.PROGRAMS_MAX)
    throw new UsageError(`at most ${limits.PROGRAMS_MAX} programs may compete`)
}

const labelOptions = (values: Values) => ({
  everyMarketMs: wholeNumber(values, 'every-ms', 1),
  filter: {
    tab: wordValue(values, 'tab', TABS),
    tokensMax: wholeNumber(values, 'tokens-max', 0),
    volume24hMin: wholeNumber(values, 'min-volume-24h', 0),
    liquidityMin: wholeNumber(values, 'min-liquidity', 0),
    holdersMin: wholeNumber(values, 'min-holders', 0),
  },
})

async function runLabels(options: LabelOptions, terminal: Terminal, stop: Stop): Promise<undefined> {
  const { writeLabels } = await import('../../backtest/backtest.ts')
  const { rows, path } = await stop.during(() => writeLabels(options).catch(explain))
  stop.check()
  await write(terminal.stdout, `${path}: ${counted(rows, 'row')}\n`)
}

const explain = (error: unknown): never => {
  throw error instanceof Error && error.constructor === Error ? new Failure(errorMessage(error)) : error
}

export const backtestCommand: Command = {
  name: 'backtest',
  summary: 'Run programs on a recorded market, in its time, and report on what they said of it',
  options: {
    lake: {
      value: 'FOLDER',
      isRequired: true,
      description:
        'Data folder whose recorded market is played; it is only read, and its server may be running',
    },
    from: { value: 'TIME', description: 'Market time at which it begins; without it the first recorded run' },
    to: { value: 'TIME', description: 'Market time up to which programs see it; without it to its end' },
    speed: {
      value: 'N',
      otherwise: 'max',
      description: 'How many times as fast as it was recorded at most, or max: as fast as the programs are',
    },
    out: { value: 'FOLDER', description: 'Folder for the report, of its own [backtest-TIME]' },
    'market-step-ms': numberOption('MS', limits.MARKET_STEP_MS_DEFAULT, 'Market time of one step'),
    'step-ms': numberOption(
      'MS',
      limits.SILENCE_MS_DEFAULT,
      'How long the programs have to be silent before the market goes on',
    ),
    'step-wait-ms': numberOption(
      'MS',
      limits.STEP_WAIT_MS_MAX_DEFAULT,
      'How long the market waits for that at most',
    ),
    'tail-ms': numberOption(
      'MS',
      limits.TAIL_MARKET_MS_DEFAULT,
      'Market time for which it goes on after the programs, so that the last analyses get outcomes',
    ),
    seed: numberOption('N', 1, 'Of what is random: identities, baselines, intervals'),
    'labels-only': {
      description:
        'Run no program: write features of tokens at many moments with what the price did afterwards, as labels.parquet',
    },
    'every-ms': numberOption(
      'MS',
      limits.MOMENTS_EVERY_MARKET_MS,
      'With --labels-only: market time between two moments',
    ),
    tab: { value: 'TAB', otherwise: 'all', allowed: TABS, description: 'With --labels-only: which tokens' },
    'tokens-max': numberOption('N', 0, 'With --labels-only: the hottest so many; 0: all'),
    'min-volume-24h': numberOption('USD', 0, 'With --labels-only: traded in 24 hours at least'),
    'min-liquidity': numberOption('USD', 0, 'With --labels-only: liquidity at least'),
    'min-holders': numberOption('N', 0, 'With --labels-only: holders at least'),
    'no-baselines': { description: 'Let no baselines compete' },
  },
  programs: {
    name: 'PROGRAM',
    description:
      'Its command line; it gets MINTLAKE_URL and MINTLAKE_KEY. Several, each behind a --, compete',
  },
  notes: [
    'mintlake backtest --lake data -- node agent.mjs',
    'mintlake backtest --lake data --labels-only --every-ms 60000 --tokens-max 500',
    'mintlake backtest --lake data --from 2026-11-18 --to 2026-11-19 --out tuesday -- node mine.mjs -- python3 other.py',
  ],
  run,
}
