// The copy of a store in its own data folder that `mintlake backup` takes from: one at a time, and none is left that nobody waits for.
import { rm, rmdir } from 'node:fs/promises'
import { unavailable } from '../errors.ts'
import { stagedCopyFolder, stagingFolder } from '../paths.ts'
import type { Snapshot, StagedBackup } from '../types.ts'

export class Staging {
  readonly #copyTo: (folder: string) => Promise<Snapshot>
  #last: Promise<unknown> = Promise.resolve()

  constructor(copyTo: (folder: string) => Promise<Snapshot>) {
    this.#copyTo = copyTo
  }

  /** Makes one in place of the last one there. @param gone aborted once nobody waits for it */
  make(dataDir: string, gone?: AbortSignal): Promise<StagedBackup> {
    const made = this.#last.then(() => this.#make(dataDir, gone))
    this.#last = made.catch(() => undefined)
    return made
  }

  async #make(dataDir: string, gone: AbortSignal | undefined): Promise<StagedBackup> {
    const path = stagedCopyFolder(dataDir)
    await rm(path, { recursive: true, force: true })
    if (gone?.aborted) throw unavailable('nobody waits for this copy any more')
    const copy = await this.#copyTo(path)
    if (gone?.aborted) {
      await rm(path, { recursive: true, force: true })
      // Another command may have its lock there.
      await rmdir(stagingFolder(dataDir)).catch(() => undefined)
    }
    return { path, ...copy }
  }
}
