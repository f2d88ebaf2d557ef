// The copy of a store in its own data folder that `mintlake backup` takes from: one at a time, and none is left that nobody waits for.
import { rm, rmdir } from 'node:fs/promises'
import pLimit from 'p-limit'
import { unavailable } from '../errors.ts'
import { stagedCopyFolder, stagingFolder } from '../paths.ts'
import type { Snapshot, StagedBackup } from '../types.ts'

export class Staging {
  readonly #copyTo: (folder: string) => Promise<Snapshot>
  readonly #turns = pLimit(1)

  constructor(copyTo: (folder: string) => Promise<Snapshot>) {
    this.#copyTo = copyTo
  }

  /** Makes one in place of the last one there. @param gone aborted once nobody waits for it */
  make(dataDir: string, gone?: AbortSignal): Promise<StagedBackup> {
    return this.#turns(() => this.#make(dataDir, gone))
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
