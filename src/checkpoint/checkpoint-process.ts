// A child process that makes one checkpoint. A process of its own, so that the server goes on meanwhile; of low priority. It ends with
// the server.
import { doJobs } from '../lib/process/parent.ts'
import { CHECKPOINT_NICENESS } from './limits.ts'
import { makeCheckpoint } from './make-checkpoint.ts'

// What is half written when the server ends is removed by the next one.
doJobs(CHECKPOINT_NICENESS, makeCheckpoint)
