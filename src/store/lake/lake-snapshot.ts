// Copies the lake and its state database, as of one moment, to another data folder.

import { dirname, join, relative } from 'node:path'
import { linkOrCopy, syncFolders } from '../data-folder/snapshot.ts'
import { lakeFolder, statePath } from '../paths.ts'
import { loadPosition } from '../state/state-database.ts'
import type { Snapshot } from '../types.ts'
import type { Lake } from './lake.ts'
import { listAllLiveFiles } from './manifest.ts'

/** Copies the state database and all live files to the data folder `to`. Missing and quarantined files are left out. */
export async function copyLake(lake: Lake, to: string, nowMs: number): Promise<Snapshot> {
  const { database } = lake
  // One that is missing, which the next round of housekeeping would notice, must not keep the others from being copied.
  await lake.checkFiles(await lake.listLiveFiles(), 'size', nowMs)
  // On the maintenance connection: no listed file is deleted until this ends.
  return database.maintenance.run(async (connection) => {
    await connection.run('CHECKPOINT')
    const { lsn } = await loadPosition(connection)
    let bytes = await database.copyFile(statePath(to))
    const files = await listAllLiveFiles(connection)
    const folders = new Set([to])
    for (const file of files) {
      const from = lake.pathOf(file)
      const copy = join(lakeFolder(to), relative(lake.lakeDir, from))
      bytes += await linkOrCopy(from, copy)
      folders.add(dirname(copy))
    }
    await syncFolders(folders)
    return { lsn, files: files.length, bytes }
  })
}
