import type { Clock } from '../lib/clock.ts'
import type { DiskSpace } from './data-folder/disk-space.ts'
import type { Losses } from './data-folder/losses.ts'
import type { FaultLog } from './fault-log.ts'
import type { CommitLog } from './log/log.ts'
import type { LakeClient } from './process/client.ts'
import type { UnflushedRows } from './rows/recent-rows.ts'
import type { StoreLog } from './types.ts'

/** What an open store is made of, and works on. */
export interface StoreParts {
  dataDir: string
  clock: Clock
  /** Wall time, whole Unix ms. */
  nowMs(): number
  log: StoreLog
  client: LakeClient
  commits: CommitLog
  space: DiskSpace
  unflushed: UnflushedRows
  faults: FaultLog
  losses: Losses
}
