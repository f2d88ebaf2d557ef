// What a server recorded, for another one to replay: the plan of the replay, and the market and the events that it takes.
import { existsSync, realpathSync } from 'node:fs'
import { CheckpointFile } from '../checkpoint/checkpoint-file.ts'
import { listCheckpoints, type StoredCheckpoint } from '../checkpoint/checkpoint-folder.ts'
import type { Config } from '../config/settings.ts'
import type { LakeReplayOptions } from '../ingest/replay/lake-replay.ts'
import type { Pace } from '../ingest/replay/pace.ts'
import { barTerminal, ProgressReport } from '../ingest/replay/progress-report.ts'
import type { Log } from '../lib/log.ts'
import { CheckpointError } from '../lib/sections/checkpoint-error.ts'
import { Market, type MarketOptions } from '../market/market.ts'
import { readFolderInfo } from '../store/data-folder/folder-info.ts'
import { invalid, notFound } from '../store/errors.ts'
import { checkpointFolder } from '../store/paths.ts'
import type { KeptCheckpoint, ReplayPlan } from '../store/query/replay-plan.ts'

type ReplayConfig = Pick<Config, 'dataDir' | 'replay' | 'logLevel'>
type ReadableCheckpoint = StoredCheckpoint & KeptCheckpoint

/** The data folder of `--replay lake=…`. Its server may be running: nothing is written there. */
export class ReplayedLake {
  /** What is played. Another one takes its place where a checkpoint turns out to be damaged, before the market is there. */
  plan: ReplayPlan
  #checkpoints: readonly ReadableCheckpoint[]
  readonly #config: ReplayConfig
  readonly #log: Log

  private constructor(
    config: ReplayConfig,
    checkpoints: readonly ReadableCheckpoint[],
    plan: ReplayPlan,
    log: Log,
  ) {
    this.#config = config
    this.#checkpoints = checkpoints
    this.plan = plan
    this.#log = log
  }

  /** @throws StoreError `not_found` where it has no recorded events of the wanted time */
  static async open(config: ReplayConfig, log: Log): Promise<ReplayedLake> {
    checkFolders(config)
    const stored = await listCheckpoints(checkpointFolder(config.replay.lake))
    // A lake may have been copied alone.
    const folderId = readFolderInfo(config.replay.lake)?.logId ?? null
    const checkpoints = stored.flatMap((checkpoint) => readSettings(checkpoint, folderId, log))
    return new ReplayedLake(config, checkpoints, await makePlan(config, checkpoints), log)
  }

  /** The market that the events follow, with the bounds and settings of then. A checkpoint that is damaged is passed over. */
  async createMarket(options: MarketOptions): Promise<Market> {
    for (;;) {
      const { checkpointEventNo, settings } = this.plan
      const marketOptions = { ...options, ...settings }
      const checkpoint = this.#checkpoints.find(({ eventNo }) => eventNo === checkpointEventNo)
      if (checkpoint === undefined) return new Market(marketOptions)
      try {
        return restore(checkpoint, marketOptions)
      } catch (error) {
        if (!(error instanceof CheckpointError)) throw error
        this.#log.error({ path: checkpoint.path, reason: error.message }, 'a checkpoint cannot be used')
        this.#checkpoints = this.#checkpoints.filter((each) => each !== checkpoint)
        this.plan = await makePlan(this.#config, this.#checkpoints)
      }
    }
  }

  /** What the feed plays. @param market into which @param steps whoever says when events are due, of a market that waits */
  async replayOptions(market: LakeReplayOptions['market'], steps?: Pace): Promise<LakeReplayOptions> {
    const { lake: dataDir, speed } = this.#config.replay
    const { readRecordedEvents } = await import('../store/query/recorded-events.ts')
    const { range, ...plan } = this.plan
    for (const sentence of [plan.approximate, plan.endsEarly])
      if (sentence !== null) this.#log.warn({}, sentence)
    return {
      ...plan,
      market,
      speed,
      label: dataDir,
      events: readRecordedEvents(dataDir, range, plan.lost),
      report: new ProgressReport('events', this.#log, barTerminal(this.#config.logLevel)),
      steps,
      countsAnalyses: steps !== undefined,
    }
  }
}

/** @throws StoreError where there is no folder to replay, or it is the one that is written to, under whatever name */
function checkFolders({ dataDir, replay: { lake } }: ReplayConfig): void {
  if (!existsSync(lake)) throw notFound(`--replay lake: there is no folder ${lake}`)
  if (existsSync(dataDir) && realpathSync(dataDir) === realpathSync(lake))
    throw invalid('--replay lake must be another folder than --data-dir: a replay writes its own bars')
}

function restore({ path }: StoredCheckpoint, options: MarketOptions): Market {
  const file = new CheckpointFile(path)
  try {
    return Market.restore(options, file.read)
  } finally {
    file.close()
  }
}

function readSettings(checkpoint: StoredCheckpoint, folderId: string | null, log: Log): ReadableCheckpoint[] {
  const { path } = checkpoint
  try {
    const file = new CheckpointFile(path)
    file.close()
    if (folderId !== null && file.head.folderId !== folderId)
      throw new CheckpointError('It belongs to another data folder.')
    return [{ ...checkpoint, settings: file.head.settings }]
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error
    log.error({ path, reason: error.message }, 'a checkpoint cannot be used')
    return []
  }
}

/** Imported here because it loads DuckDB, which only a replay needs in this process. */
async function makePlan(
  { replay: { lake, span } }: ReplayConfig,
  checkpoints: readonly KeptCheckpoint[],
): Promise<ReplayPlan> {
  const { openReplayPlan } = await import('../store/query/replay-plan.ts')
  return openReplayPlan(lake, { ...span, checkpoints })
}
