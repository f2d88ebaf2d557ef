// What a server tells of its recorded market to those that bring it to other processes. A server that is alone has no publisher.
import type { StoredCheckpoint } from '../checkpoint/checkpoint-folder.ts'
import type { RelayGate } from '../http/node.ts'
import type { Cursors, ListWatcher } from '../http/response/cursors.ts'
import type { Route } from '../http/route.ts'
import type { WrittenBatch } from '../journal/types.ts'
import type { Metrics } from '../lib/metrics/metrics.ts'
import type { Account, EvaluatedSubmission } from '../submissions/types.ts'

/** A run that has begun. */
export interface RunToPublish {
  runId: string
  /** Whether its market is made up. */
  simulated: boolean
  /** Number of its `run` event, and of the one with which its market began as an empty one. */
  runEventNo: number
  originEventNo: number
  /** How many recorded events its market lacks, since a damaged journal had lost them when it began. */
  lostEvents: number
  /** Number of the last event, and market time, at this moment. */
  now(): { eventNo: number; timeMs: number }
  /** Writes what was recorded so far now, and not only when its batch is due: somebody waits for it elsewhere. */
  writeNow(): void
  /** null: there is none yet of a market that lacks as many. */
  newestCheckpoint(): StoredCheckpoint | null
  /** Makes one now. Resolves when it is there or has failed. */
  makeCheckpoint(): Promise<void>
}

/** What other processes ask of this one: requests of their clients, and whose keys they have. */
export interface ServedParts {
  accounts: { agentIds(): Iterable<string>; account(agentId: string): Account | null }
  /** At which this process takes requests. */
  port: number
  /** Resolves when requests would not be refused any more. May reject. */
  ready: Promise<unknown>
}

/** What this process does for readers: takes what their clients write, and tells them of keys and of the lists that it keeps. */
export interface ReaderService {
  /** An agent, its keys or its name have changed, durably. */
  changeAccount(agentId: string): void
  /** To be told of the lists that this process keeps. */
  readonly lists: ListWatcher
  /** Tells which requests other processes have passed on. */
  readonly gate: RelayGate
  /** The routes as they are where other processes answer too. */
  routes(routes: readonly Route[], cursors: Cursors): Route[]
  /** Tells other processes where it takes requests, and begins to take theirs. */
  serve(parts: ServedParts): void
  /** Takes no more of theirs; those that run go on. Never rejects. */
  stopServing(): Promise<void>
}

export interface MarketPublisher {
  /** A batch of events was written: a kill of this process does not lose it. */
  onBatch(batch: WrittenBatch): void
  begin(run: RunToPublish): void
  /** Market time has gone back with the last event. */
  noteTime(): void
  /** @param seq the market's position at which followers are told of it */
  tell(submission: EvaluatedSubmission, seq: number): void
  /** A checkpoint was made. */
  onCheckpoint(checkpoint: StoredCheckpoint): void
  readonly service: ReaderService
  /** Resolves unless another writer may have taken this one's place. Rejects with `unavailable`. */
  mayCommit(): Promise<void>
  /** Resolves once what is durable may be acknowledged: not before it is certain that no other writer has taken this one's place. */
  mayAcknowledge(): Promise<void>
  health(): ClusterHealth
  addMetrics(metrics: Metrics): void
  /** To be called when the journal and the store are closed. Never rejects. */
  stop(): Promise<void>
}

/** What this process is within a cluster. */
export interface ClusterHealth {
  /** A sentence for each thing that is wrong. */
  reasons: readonly string[]
  /** Why the market must not be read here at present, as a sentence; null: it may. */
  notServing: string | null
  /** Why no client should be sent here, although what it asks would be answered, as a sentence; null: it may be. */
  notReachable: string | null
  /** For /health. */
  report: Record<string, unknown>
}
