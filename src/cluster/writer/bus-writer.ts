// The writer's side of the cluster: publishes its recorded market on the bus, with its checkpoints.
import type { StoredCheckpoint } from '../../checkpoint/checkpoint-folder.ts'
import type { Config } from '../../config/settings.ts'
import { findRunOf } from '../../journal/reader.ts'
import type { WrittenBatch } from '../../journal/types.ts'
import type { Log } from '../../lib/log.ts'
import type { Metrics } from '../../lib/metrics/metrics.ts'
import type { ClusterHealth, MarketPublisher, RunToPublish } from '../../server/market-publisher.ts'
import { unavailable } from '../../store/errors.ts'
import { journalFolder } from '../../store/paths.ts'
import type { EvaluatedSubmission } from '../../submissions/types.ts'
import { CONFIRM_MS_MAX, REACHABLE_MS_MAX } from '../limits.ts'
import { WriterService } from '../proxy/writer-service.ts'
import { CheckpointUploader } from './checkpoint-uploader.ts'
import { Publisher } from './publisher.ts'
import { addWriterMetrics } from './writer-metrics.ts'

export interface BusWriterOptions {
  config: Config
  /** Identity of the data folder. */
  folderId: string
  log: Log
  /** Another writer is active: this process must end at once, with this sentence, and acknowledge nothing any more. */
  onFenced(sentence: string): void
  /** For tests. */
  waitingBytesMax?: number | undefined
}

export class BusWriter implements MarketPublisher {
  readonly #options: BusWriterOptions
  readonly #publisher: Publisher
  readonly #uploader: CheckpointUploader
  readonly service: WriterService
  #run: RunToPublish | null = null
  #isStopped = false
  #isWriteDue = false
  #begunMs = performance.now()

  constructor(options: BusWriterOptions) {
    this.#options = options
    const { config, folderId, log, onFenced } = options
    const folder = journalFolder(config.dataDir)
    this.#publisher = new Publisher({
      journalFolder: folder,
      folderId,
      settings: config.bus,
      log,
      onFenced,
      waitingBytesMax: options.waitingBytesMax,
      findRunOf: (eventNo) => findRunOf(folder, folderId, eventNo),
      // The stream begins behind the newest checkpoint of this market, else with its first event.
      beginAnew: () => this.#newestCheckpoint()?.eventNo ?? (this.#run?.originEventNo ?? 1) - 1,
      onConnected: (lostFromEventNo) => this.#onConnected(lostFromEventNo),
      // It is uploaded once it is made; the scheduler says where it cannot be.
      onHole: () => void this.#run?.makeCheckpoint(),
    })
    this.#uploader = new CheckpointUploader({ settings: config.bus, folderId, log })
    this.service = new WriterService({
      config,
      log,
      positionToReach: () => this.#positionToReach(),
      makeCheckpoint: () => this.#makeCheckpoint(),
    })
  }

  onBatch(batch: WrittenBatch): void {
    this.#publisher.add(batch)
  }

  begin(run: RunToPublish): void {
    this.#run = run
    this.#begunMs = performance.now()
    this.#publisher.begin(run)
  }

  noteTime(): void {
    this.#publisher.noteTime()
  }

  tell(submission: EvaluatedSubmission, seq: number): void {
    const { analysisId, agentId, mint, outcome, deviationPct, xpEarned, createdAt } = submission
    this.#publisher.tell({ analysisId, agentId, mint, outcome, deviationPct, xpEarned, createdAt, seq })
  }

  onCheckpoint(checkpoint: StoredCheckpoint): void {
    this.#uploader.upload(checkpoint)
  }

  /**
   * Makes a checkpoint now, for readers that lack events which the bus does not have any more. Resolves when it is on the bus, or could
   * not be brought there. Never rejects.
   */
  async #makeCheckpoint(): Promise<void> {
    await this.#run?.makeCheckpoint()
    await this.#uploader.idle()
  }

  /**
   * Number of the last event, which a reader that waits for it then has soon: all that is answered in one turn of the event loop is
   * written and published together.
   */
  #positionToReach(): number {
    if (!this.#isWriteDue)
      setImmediate(() => {
        this.#isWriteDue = false
        this.#run?.writeNow()
      })
    this.#isWriteDue = true
    return this.#run?.now().eventNo ?? 0
  }

  health(): ClusterHealth {
    const { trouble, hasFailed: _, ...status } = this.#publisher.status()
    const checkpoints = this.#uploader.status()
    const behindEvents = status.writtenEventNo - status.publishedEventNo
    const refusal = this.#whyNoCommits()
    const seconds = Math.round((status.troubleMs ?? 0) / 1_000)
    const reasons = [...this.service.reasons]
    if (trouble !== null)
      reasons.unshift(`readers get no events since ${seconds} s, and miss ${behindEvents}: ${trouble}`)
    if (refusal !== null)
      reasons.push(
        `submissions and changes of accounts are refused, where that lasts for ${CONFIRM_MS_MAX / 1_000} s: ${refusal}`,
      )
    if (checkpoints.trouble !== null)
      reasons.push(`readers that begin have no recent checkpoint on the bus: ${checkpoints.trouble}`)
    return {
      reasons,
      notServing: null,
      notReachable: this.#notReachable(),
      report: { role: 'writer', reasons, behindEvents, ...status, checkpoints },
    }
  }

  /** Readers pass on what writes: without the bus there are none that could. */
  #notReachable(): string | null {
    const isAway = this.#publisher.status().hasFailed
    if (this.service.isServing || isAway || performance.now() - this.#begunMs > REACHABLE_MS_MAX) return null
    return 'The writer does not take requests of readers yet.'
  }

  async mayCommit(): Promise<void> {
    // Both within one span: a node that has passed the request on waits little longer.
    const untilMs = performance.now() + CONFIRM_MS_MAX
    await this.#publisher.looked(CONFIRM_MS_MAX)
    if (this.#isReplaceable && !this.#publisher.isRefused)
      await this.#publisher.lease.holds(untilMs - performance.now())
    const reason = this.#whyNoCommits()
    if (reason !== null) throw unavailable(`Nothing is stored here: ${reason}.`)
  }

  /** Why nothing may be committed at this moment, as a sentence; null: it may. */
  #whyNoCommits(): string | null {
    if (this.#publisher.isRefused) return 'the stream on the bus belongs to another writer'
    if (!this.#isReplaceable || this.#publisher.lease.isHeld) return null
    return 'the bus does not confirm this writer, and another one may have taken over'
  }

  /** Another writer waits to take its place. One that no standby waits for goes on without the bus. */
  get #isReplaceable(): boolean {
    return this.#options.config.role === 'standby'
  }

  async mayAcknowledge(): Promise<void> {
    if (!this.#isReplaceable) {
      if (!this.#publisher.status().hasFailed) await this.#publisher.lease.holds(CONFIRM_MS_MAX)
      return
    }
    // It is stored, so it must not be told to be refused: the same submission would be stored a second time.
    while (!(await this.#publisher.lease.holds(CONFIRM_MS_MAX)))
      if (this.#isStopped) throw unavailable('The server stops.', { mayBeStored: true })
  }

  addMetrics(metrics: Metrics): void {
    addWriterMetrics(
      metrics,
      () => this.#publisher.status(),
      () => this.#uploader.status(),
    )
    this.service.addMetrics(metrics)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all([this.service.stop(), this.#uploader.stop(), this.#publisher.stop()])
  }

  /** null: there is none of the market that this run goes on with. */
  #newestCheckpoint(): StoredCheckpoint | null {
    const checkpoint = this.#run?.newestCheckpoint() ?? null
    return checkpoint !== null && checkpoint.eventNo >= (this.#run?.originEventNo ?? 1) ? checkpoint : null
  }

  /** Readers that begin find a checkpoint, also where the bus has lost what it had. */
  #onConnected(lostFromEventNo: number | null): void {
    this.service.establish()
    this.#uploader.open(this.#run?.runId ?? '', lostFromEventNo)
    const newest = this.#newestCheckpoint()
    if (newest !== null) this.#uploader.upload(newest)
    else void this.#run?.makeCheckpoint()
  }
}
