import type { CheckpointCrashPoint } from '../checkpoint/protocol.ts'
import type { FollowOptions } from '../http/stream/broadcaster.ts'
import type { JobServiceOptions } from '../store/lake-jobs.ts'
import type { QueryServiceOptions } from '../store/sql/query-service.ts'

/** Bounds that no operator has to choose, so that they are no settings: tests, benches and backtests say here which they need others of. */
export interface Tuning {
  /** Of followers. */
  follow?: Partial<FollowOptions>
  exports?: Pick<JobServiceOptions, 'msMax' | 'drainMs'>
  queries?: Pick<QueryServiceOptions, 'waitMsMax' | 'msMax' | 'drainMs' | 'slowMs'>
  bodyMsMax?: number
  downloadMsMax?: number
  /** Rows of market lists for each read that a limit allows. */
  rowsPerRead?: number
  /** Of a writer: how much waits for the bus in memory. */
  busWaitingBytesMax?: number
  /** How much waits for the disk before market events are lost. */
  journalWaitingBytesMax?: number
  /** How many changes followers may be behind, a power of two. */
  changeLogEntriesMax?: number
  /** Where the first process that makes a checkpoint is killed. */
  checkpointCrash?: CheckpointCrashPoint
}
