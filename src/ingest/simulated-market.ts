// Which simulated market a data folder has. A start goes on with it as if it had never stopped, or begins one of other tokens: what the
// lake has of a token, its bars and labels among it, is that of one market, unless an operator asks for the seed of one that cannot go on.
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { errorMessage, systemCode } from '../lib/error-text.ts'
import { replaceFile } from '../lib/files.ts'
import { safeParse } from '../lib/safe-parse.ts'
import { SIMULATED_TRADES_REPEATED_MAX, SIMULATOR_DEFAULTS } from './limits.ts'
import type { SimulationOptions } from './simulator/simulation.ts'
import type { FeedLog } from './types.ts'

const savedSchema = z.object({
  seed: z.number().int(),
  tokens: z.number(),
  tradesPerSecond: z.number(),
  startMs: z.number(),
  /** It skipped some time: made again from its seed it would not be the same. */
  hasSkipped: z.boolean(),
})
type Saved = z.infer<typeof savedSchema>

export interface SimulatedMarketOptions extends Omit<SimulationOptions, 'seed' | 'startMs'> {
  /** Null: that of the market before, or the next one where another market begins. */
  seed: number | null
  /** Its events are recorded: the record of a market that was made again would have them twice. */
  isRecorded: boolean
}

export interface SimulatedMarket extends SimulationOptions {
  /** To be called when time was skipped: the market ends with this run. */
  onSkipped(): Promise<void>
}

/**
 * The market that a start simulates. One that is continued is made again from its seed, which takes a few seconds at most.
 * @param path of the file that tells, in the data folder
 */
export async function openSimulatedMarket(
  path: string,
  options: SimulatedMarketOptions,
  nowMs: number,
  log: FeedLog,
): Promise<SimulatedMarket> {
  const before = await readSaved(path, nowMs, log)
  const isContinued = before !== null && canContinue(before, options, nowMs)
  const save = (saved: Saved): Promise<boolean> =>
    replaceFile(path, `${JSON.stringify(saved)}\n`).then(
      () => true,
      (error: unknown) => {
        log.warn(
          { path, err: error },
          'which market is simulated cannot be noted: the next start has another one',
        )
        return false
      },
    )
  let market = isContinued ? before : anotherMarket(before, options, nowMs)
  // The next start does not know of it, and would begin one of the same seed.
  if (!isContinued && !(await save(market))) market = anotherMarket(unknownMarket(nowMs), options, nowMs)
  if (before !== null && !isContinued)
    log.info(
      { seedBefore: before.seed, seed: market.seed },
      'another simulated market begins: it does not go on with the one before it',
    )
  const { seed, tokens, tradesPerSecond, startMs } = market
  const onSkipped = async () => {
    await save({ ...market, hasSkipped: true })
  }
  return { seed, tokens, tradesPerSecond, startMs, onSkipped }
}

function canContinue(
  before: Saved,
  { seed, tokens, tradesPerSecond, isRecorded }: SimulatedMarketOptions,
  nowMs: number,
): boolean {
  const isTheSame =
    (seed === null || seed === before.seed) &&
    tokens === before.tokens &&
    tradesPerSecond === before.tradesPerSecond
  const passedMs = nowMs - before.startMs
  const isNear = passedMs >= 0 && (passedMs / 1_000) * tradesPerSecond <= SIMULATED_TRADES_REPEATED_MAX
  return isTheSame && isNear && !before.hasSkipped && !isRecorded
}

function anotherMarket(before: Saved | null, options: SimulatedMarketOptions, startMs: number): Saved {
  const { seed, tokens, tradesPerSecond } = options
  const next = before === null ? SIMULATOR_DEFAULTS.seed : (before.seed + 1) % Number.MAX_SAFE_INTEGER
  return { seed: seed ?? next, tokens, tradesPerSecond, startMs, hasSkipped: false }
}

/** Behind it comes a market of a seed that none before can have had. */
const unknownMarket = (nowMs: number): Saved => ({
  seed: nowMs - 1,
  tokens: 0,
  tradesPerSecond: 0,
  startMs: nowMs,
  hasSkipped: true,
})

/** @returns null: there was none */
async function readSaved(path: string, nowMs: number, log: FeedLog): Promise<Saved | null> {
  try {
    const { data, error } = safeParse(savedSchema, JSON.parse(await readFile(path, 'utf8')))
    if (data !== undefined) return data
    throw error
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null
    log.warn(
      { path, reason: errorMessage(error) },
      'nobody knows which market was simulated: another one begins',
    )
    return unknownMarket(nowMs)
  }
}
