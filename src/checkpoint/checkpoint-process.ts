// A child process that makes one checkpoint. A process of its own, so that the server goes on meanwhile; of low priority. It ends with
// the server.
import { doTasks } from '../lib/process/child-job.ts'
import { CHECKPOINT_NICENESS } from './limits.ts'
import { makeCheckpoint } from './make-checkpoint.ts'

// What is half written when the server ends is removed by the next one.
doTasks(CHECKPOINT_NICENESS, makeCheckpoint)
