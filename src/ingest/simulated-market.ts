// Which simulated market a data folder has. A start goes on with it as if it had never stopped, or begins one of other tokens: what the
// lake has of a token, its bars and labels among it, is never that of two markets.
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
  /** How many markets the folder had before, whatever their seeds; older files do not tell. */
  generation: z.number().int().default(0),
  tokens: z.number(),
  tradesPerSecond: z.number(),
  startMs: z.number(),
  /** It skipped some time: made again from its seed it would not be the same. */
  hasSkipped: z.boolean(),
})
type Saved = z.infer<typeof savedSchema>

export interface SimulatedMarketOptions extends Omit<SimulationOptions, 'seed' | 'generation' | 'startMs'> {
  /** Null: that of the market before. */
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
  // The next start does not know of it, and would begin one of the same generation.
  if (!isContinued && !(await save(market))) market = anotherMarket(unknownMarket(nowMs), options, nowMs)
  if (before !== null && !isContinued)
    log.info(
      { seed: market.seed, generation: market.generation },
      'another simulated market begins, of other tokens: it does not go on with the one before it',
    )
  const { hasSkipped: _, ...simulated } = market
  const onSkipped = async () => {
    await save({ ...market, hasSkipped: true })
  }
  return { ...simulated, onSkipped }
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
  const { tokens, tradesPerSecond } = options
  const seed = options.seed ?? before?.seed ?? SIMULATOR_DEFAULTS.seed
  const generation = before === null ? 0 : before.generation + 1
  return { seed, generation, tokens, tradesPerSecond, startMs, hasSkipped: false }
}

/** Behind it comes a market of a generation that none before can have had. */
const unknownMarket = (nowMs: number): Saved => ({
  seed: SIMULATOR_DEFAULTS.seed,
  generation: nowMs - 1,
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
