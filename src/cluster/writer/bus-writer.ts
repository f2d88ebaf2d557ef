// The writer's side of the cluster: publishes its recorded market on the bus, with its checkpoints.
import type { StoredCheckpoint } from '../../checkpoint/checkpoint-folder.ts'
import type { Config } from '../../config/settings.ts'
import { findRunOf } from '../../journal/reader.ts'
import type { WrittenBatch } from '../../journal/types.ts'
import type { Log } from '../../lib/log.ts'
import type { ClusterHealth } from '../../server/health.ts'
import type { MarketPublisher, RunToPublish } from '../../server/market-publisher.ts'
import { journalFolder } from '../../store/paths.ts'
import type { EvaluatedSubmission } from '../../submissions/types.ts'
import { Publisher, type PublisherStatus } from './publisher.ts'

export interface BusWriterOptions {
  config: Config
  /** Identity of the data folder. */
  folderId: string
  log: Log
  /** Another writer is active: this process must end at once, with this sentence, and acknowledge nothing any more. */
  onFenced(sentence: string): void
  /** For tests. */
  waitingBytesMax?: number
}

export class BusWriter implements MarketPublisher {
  readonly #options: BusWriterOptions
  readonly #publisher: Publisher
  #run: RunToPublish | null = null

  constructor(options: BusWriterOptions) {
    this.#options = options
    const { config, folderId, log, onFenced } = options
    const folder = journalFolder(config.dataDir)
    this.#publisher = new Publisher({
      ...{ journalFolder: folder, folderId, settings: config, log, onFenced },
      ...(options.waitingBytesMax !== undefined && { waitingBytesMax: options.waitingBytesMax }),
      findRunOf: (eventNo) => findRunOf(folder, folderId, eventNo),
      beginAnew: () => this.#beginAnew(),
      onConnected: () => undefined,
      onHole: () => undefined,
    })
  }

  onBatch(batch: WrittenBatch): void {
    this.#publisher.add(batch)
  }

  begin(run: RunToPublish): void {
    this.#run = run
    const { runId, runEventNo } = run
    const { folderId } = this.#options
    this.#publisher.begin({ run: { folderId, runId, runEventNo }, now: run.now })
  }

  tell(submission: EvaluatedSubmission, seq: number): void {
    const { analysisId, agentId, mint, outcome, deviationPct, xpEarned, createdAt } = submission
    this.#publisher.tell({ analysisId, agentId, mint, outcome, deviationPct, xpEarned, createdAt, seq })
  }

  onCheckpoint(_checkpoint: StoredCheckpoint): void {}

  health(): ClusterHealth {
    const { trouble, ...status } = this.#publisher.status()
    const behindEvents = status.writtenEventNo - status.publishedEventNo
    const reasons = reasonsOf(trouble, status, behindEvents)
    return { reasons, notServing: null, report: { role: 'writer', reasons, behindEvents, ...status } }
  }

  stop(): Promise<void> {
    return this.#publisher.stop()
  }

  /** The stream begins behind the newest checkpoint of this market, else with its first event. */
  #beginAnew(): number {
    const originEventNo = this.#run?.originEventNo ?? 1
    const checkpoint = this.#run?.newestCheckpoint() ?? null
    return checkpoint !== null && checkpoint.eventNo >= originEventNo ? checkpoint.eventNo : originEventNo - 1
  }
}

function reasonsOf(
  trouble: string | null,
  { troubleMs }: Pick<PublisherStatus, 'troubleMs'>,
  behindEvents: number,
): string[] {
  if (trouble === null) return []
  const seconds = Math.round((troubleMs ?? 0) / 1_000)
  return [`readers get no events since ${seconds} s, and miss ${behindEvents}: ${trouble}`]
}
