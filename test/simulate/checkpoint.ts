// The process that makes a checkpoint: the real work, as a process of the simulated machine.
import { makeCheckpoint } from '../../src/checkpoint/make-checkpoint.ts'
import type { ChildSide } from './machine/child-process.ts'

export function checkpointProgram(child: ChildSide): void {
  child.onMessage(async (task: Parameters<typeof makeCheckpoint>[0]) => {
    try {
      child.send({ ok: true, result: await makeCheckpoint(task) })
    } catch (error) {
      child.send({ ok: false, message: String(error) })
    }
  })
}
