// The process that makes a checkpoint.
import { JobProgram } from '../lib/process/job-program.ts'
import { programPath } from '../lib/process/program-path.ts'
import { CHECKPOINT_HEAP_MB, CHECKPOINT_TIMEOUT_MS } from './limits.ts'
import type { CheckpointResult, CheckpointTask } from './protocol.ts'

/** What starts it. */
export const checkpointJobs = (): JobProgram<CheckpointTask, CheckpointResult> =>
  new JobProgram({
    program: programPath('./checkpoint-process', import.meta.url),
    name: 'the process of the checkpoint',
    msMax: CHECKPOINT_TIMEOUT_MS,
    heapMb: CHECKPOINT_HEAP_MB,
  })
