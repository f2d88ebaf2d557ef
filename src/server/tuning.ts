import type { OverloadWaits } from '../http/overload.ts'
import type { FollowOptions } from '../http/stream/broadcaster.ts'
import type { LakeJobBounds } from '../store/lake-program.ts'
import type { QueryBounds } from '../store/sql/queries.ts'

/** Bounds that no operator has to choose, so that they are no settings: tests, benches and backtests say here which they need others of. */
export interface Tuning {
  /** Of followers. */
  follow?: Partial<FollowOptions>
  /** From which wait for the thread on requests are refused. */
  overload?: OverloadWaits
  exports?: LakeJobBounds
  queries?: QueryBounds
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
  /** The least size of a pool of bars, of which there is one for each timeframe. */
  poolBarsMin?: number
}
