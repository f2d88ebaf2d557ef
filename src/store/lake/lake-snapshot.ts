// In: the lake and its state database, in use. Out: both as of one moment, in another folder. Never holds up more than what
// writes to them.
import { dirname, join, relative } from 'node:path'
import { copyDurably, linkOrCopy, syncFolders } from '../data-folder/snapshot.ts'
import type { Database } from '../duckdb/database.ts'
import { lakeFolder, statePath } from '../paths.ts'
import { loadPosition } from '../state/state-database.ts'
import type { Lake } from './lake.ts'
import { allLiveParts } from './manifest.ts'

export interface LakeSnapshot {
  /** The last commit that it has. */
  lsn: number
  files: number
  bytes: number
}

/** Copies the state, and every file that it lists as live, to the data folder `to`. Files that were set aside stay out. */
export async function copyLake(database: Database, lake: Lake, to: string): Promise<LakeSnapshot> {
  // In the queue of all that changes the list: a file on it is there until this is over.
  return database.maintenance.run(async (connection) => {
    await connection.run('CHECKPOINT')
    const { lsn } = await loadPosition(connection)
    let bytes = await copyDurably(statePath(database.dataDir), statePath(to))
    const parts = await allLiveParts(connection)
    const folders = new Set([lakeFolder(to), to])
    for (const part of parts) {
      const from = lake.pathOf(part)
      const copy = join(lakeFolder(to), relative(lake.lakeDir, from))
      bytes += await linkOrCopy(from, copy)
      for (let each = dirname(copy); each !== lakeFolder(to); each = dirname(each)) folders.add(each)
    }
    if (parts.length === 0) folders.delete(lakeFolder(to))
    await syncFolders(folders)
    return { lsn, files: parts.length, bytes }
  })
}
