// Copies a data folder that nobody writes to: the state, the log, the live files of the lake with their links, and a catalog
// for where the copy is. Each file is durable when this resolves.
import { readdir, stat } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { makeFolder } from '../../lib/files.ts'
import { copyDurably, linkOrCopy, syncFolders } from '../data-folder/snapshot.ts'
import { withScratchDatabase } from '../duckdb/scratch-database.ts'
import { literal } from '../duckdb/sql.ts'
import { type CatalogContent, filesOf, writeCatalog } from '../lake/catalog.ts'
import { loadContent } from '../lake/catalog-reader.ts'
import { hashFile } from '../lake/lake-files.ts'
import { openLinks, readLakePaths } from '../lake/links.ts'
import { type ListedFile, type QuarantinedFile, sizeOf } from '../lake/manifest.ts'
import {
  checkpointFolder,
  deadLetterFolder,
  folderInfoPath,
  journalFolder,
  lakeFolder,
  logFolder,
  noteFiles,
  stateLogPath,
  statePath,
} from '../paths.ts'
import type { BackupFile } from './note.ts'

export interface CopyOptions {
  /** Links files that are never written again, where both folders are on one disk, instead of copying them. */
  links: boolean
  nowMs: number
  /** Called before each file. Throws to give up. */
  check(): void
}

export interface CopiedStore {
  files: BackupFile[]
  /** Files of the lake that were lost or damaged in the original, and that no repair has acknowledged. */
  losses: readonly QuarantinedFile[]
}

/** What the state database of a folder says of its lake. */
const readManifest = (dataDir: string): Promise<CatalogContent> =>
  withScratchDatabase(':memory:', { threads: '1' }, async (connection) => {
    await connection.run(`ATTACH ${literal(statePath(dataDir))} AS state (READ_ONLY)`)
    await connection.run('USE state')
    return loadContent(connection)
  })

/** The names in a folder, with their paths; none where it is missing. */
const pathsIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder).catch(() => [])).map((name) => join(folder, name))

/** The files of a data folder from which its market goes on, as absolute paths. They are never written again. */
const listMarketFiles = async (dataDir: string): Promise<string[]> => [
  ...(await pathsIn(checkpointFolder(dataDir))),
  ...(await pathsIn(journalFolder(dataDir))),
]

/** The other files of a data folder besides the lake, as absolute paths. */
async function listServerFiles(dataDir: string): Promise<string[]> {
  const known = [statePath, stateLogPath, folderInfoPath]
    .map((pathOf) => pathOf(dataDir))
    .concat(noteFiles(dataDir))
  return [
    ...(await pathsIn(dataDir)).filter((path) => known.includes(path)),
    ...(await pathsIn(logFolder(dataDir))),
    ...(await pathsIn(deadLetterFolder(dataDir))),
  ]
}

/** Copies the store of `from` into the folder `to`, which exists and has nothing in the way. */
export async function copyStore(from: string, to: string, options: CopyOptions): Promise<CopiedStore> {
  const content = await readManifest(from)
  const files: BackupFile[] = []
  await makeFolder(logFolder(to))
  const folders = new Set([to, logFolder(to)])
  const add = async (path: string, copying: typeof copyDurably): Promise<void> => {
    options.check()
    const copy = join(to, relative(from, path))
    const bytes = await copying(path, copy)
    folders.add(dirname(copy))
    files.push({ path: relative(to, copy), bytes, sha256: await hashFile(copy) })
  }
  // The state is written again once a server starts on the copy.
  for (const path of await listServerFiles(from)) await add(path, copyDurably)
  for (const path of await listMarketFiles(from)) await add(path, options.links ? linkOrCopy : copyDurably)
  files.push(...(await copyLake(from, to, filesOf(content), options)))
  await syncFolders(folders)
  const lakeDir = lakeFolder(to)
  const { pathOf } = await readLakePaths(lakeDir)
  await writeCatalog(content, options.nowMs, { lakeDir, pathOf })
  return { files, losses: content.quarantined.filter(({ acknowledgedAtMs }) => acknowledgedAtMs === null) }
}

async function copyLake(
  from: string,
  to: string,
  live: readonly ListedFile[],
  { check, links: mayLink }: CopyOptions,
): Promise<BackupFile[]> {
  await makeFolder(lakeFolder(to))
  const source = await readLakePaths(lakeFolder(from))
  // The disk of the copy may have no hard links, although that of the original has them.
  const target = await openLinks(lakeFolder(to))
  const files: BackupFile[] = []
  const folders = new Set<string>()
  for (const file of live) {
    check()
    const path = target.pathOf(file)
    const bytes = await (mayLink ? linkOrCopy : copyDurably)(source.pathOf(file), path)
    folders.add(dirname(path))
    if (target.hasLinks) {
      await target.add([file])
      folders.add(dirname(target.linkPathOf(file)))
    }
    files.push({ path: relative(to, path), bytes, sha256: file.sha256 ?? (await hashFile(path)) })
  }
  await syncFolders(folders)
  return files
}

/** How large a copy is where nothing can be linked. */
export async function copyBytes(dataDir: string): Promise<number> {
  let bytes = sizeOf(filesOf(await readManifest(dataDir))).bytes
  const others = [...(await listServerFiles(dataDir)), ...(await listMarketFiles(dataDir))]
  for (const path of others) bytes += (await stat(path)).size
  return bytes
}
