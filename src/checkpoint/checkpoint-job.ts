// The process that makes a checkpoint.
import { ChildJob } from '../lib/process/child-job.ts'
import { programPath } from '../lib/process/program-path.ts'
import { CHECKPOINT_HEAP_MB, CHECKPOINT_TIMEOUT_MS } from './limits.ts'
import type { CheckpointResult, CheckpointTask } from './protocol.ts'

const PROGRAM = programPath('./checkpoint-process', import.meta.url)

export type CheckpointJob = ChildJob<CheckpointTask, CheckpointResult>

/** Starts it. */
export const startCheckpointJob = (task: CheckpointTask): CheckpointJob =>
  new ChildJob({
    ...{ program: PROGRAM, task, name: 'the process of the checkpoint' },
    ...{ timeoutMs: CHECKPOINT_TIMEOUT_MS, heapMb: CHECKPOINT_HEAP_MB },
  })
