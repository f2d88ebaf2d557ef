// The process that makes a checkpoint.
import type { Job } from '../lib/process/job.ts'
import { JobProgram } from '../lib/process/job-program.ts'
import { programPath } from '../lib/process/program-path.ts'
import { CHECKPOINT_HEAP_MB, CHECKPOINT_TIMEOUT_MS } from './limits.ts'
import type { CheckpointResult, CheckpointTask } from './protocol.ts'

export type CheckpointJob = Job<CheckpointTask, CheckpointResult>

export const CHECKPOINT_JOBS = new JobProgram<CheckpointTask, CheckpointResult>({
  program: programPath('./checkpoint-process', import.meta.url),
  name: 'the process of the checkpoint',
  msMax: CHECKPOINT_TIMEOUT_MS,
  heapMb: CHECKPOINT_HEAP_MB,
})
