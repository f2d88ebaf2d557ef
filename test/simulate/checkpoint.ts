// The process that makes a checkpoint: the real work and the real messages, as a process of the simulated machine.
import { makeCheckpoint } from '../../src/checkpoint/make-checkpoint.ts'
import { takeJobs } from '../../src/lib/process/parent.ts'
import type { ChildSide } from './machine/child-process.ts'

export function checkpointProgram(child: ChildSide): void {
  child.onMessage(takeJobs(makeCheckpoint, child.send, (error) => ({ message: String(error) })))
}
