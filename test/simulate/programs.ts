// The processes that make a checkpoint and that bring one to the bus: the real work and the real messages, as processes of the simulated
// machine.
import { makeCheckpoint } from '../../src/checkpoint/make-checkpoint.ts'
import { uploadCheckpoint } from '../../src/cluster/writer/upload-checkpoint.ts'
import { takeJobs, type Work } from '../../src/lib/process/parent.ts'
import type { ChildSide } from './machine/child-process.ts'

const program =
  <Task, Result, Chunk>(work: Work<Task, Result, Chunk>) =>
  (child: ChildSide): void =>
    child.onMessage(takeJobs(work, child.send, (error) => ({ message: String(error) })))

export const checkpointProgram = program(makeCheckpoint)
export const uploadProgram = program(uploadCheckpoint)
