// Asks the program that reads lakes, one question after another.
import type { ChildProcess } from 'node:child_process'
import { programPath } from '../../../../src/lib/process/program-path.ts'
import type { Answered, Asked } from './auditor-process.ts'
import { forkOutside } from './real-lake.ts'

const PROGRAM = programPath('./auditor-process', import.meta.url)

export class LakeAuditor {
  readonly #child: ChildProcess = forkOutside(PROGRAM)

  /** @throws Error where it cannot be done */
  async ask<Kind extends Asked['kind']>(
    asked: Asked & { kind: Kind },
  ): Promise<Extract<Answered, { kind: Kind }>> {
    const { promise, resolve } = Promise.withResolvers<Answered>()
    this.#child.once('message', (answered) => resolve(answered as Answered))
    this.#child.send(asked)
    const answered = await promise
    if (answered.kind === 'failed') throw new Error(answered.error)
    return answered as Extract<Answered, { kind: Kind }>
  }

  end(): void {
    this.#child.disconnect()
  }
}
