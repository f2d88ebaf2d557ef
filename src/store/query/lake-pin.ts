// Pins the lake's present files under a name, with a catalog and the SHA-256 of each: a data set that a paper can refer to,
// whatever the server merges, expires or adds later. Files are hard-linked where the disk can; no server is needed.
import { existsSync, realpathSync } from 'node:fs'
import { readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { errorMessage } from '../../lib/error-text.ts'
import { makeFolder, syncPath } from '../../lib/files.ts'
import { DAY_MS } from '../../lib/time.ts'
import {
  type FolderLock,
  isLockedElsewhere,
  LOCK_NAME,
  lockFolder,
  ownText,
} from '../data-folder/folder-lock.ts'
import { linkOrCopy, syncFolders } from '../data-folder/snapshot.ts'
import { withScratchDatabase } from '../duckdb/scratch-database.ts'
import { literal } from '../duckdb/sql.ts'
import { invalid, StoreError, unavailable } from '../errors.ts'
import { CATALOG_FILE, filesOf, writeCatalog } from '../lake/catalog.ts'
import { type DataFile, hashFile, relativePath } from '../lake/lake-files.ts'
import { type LocatedFiles, locateCatalogFiles } from '../lake/locate-files.ts'
import { sizeOf } from '../lake/manifest.ts'
import { LAKE_REOPENINGS_MAX } from '../limits.ts'
import { lakeFolder, pinnedFolder } from '../paths.ts'
import { findCatalogPath, isMissingFileError } from './lake-reader.ts'

/** A name that is valid for a folder on every system. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const SUMS_FILE = 'SHA256SUMS'

async function locateListedFiles(dataDir: string): Promise<LocatedFiles> {
  return withScratchDatabase(':memory:', { threads: '1' }, async (connection) => {
    await connection.run(`ATTACH ${literal(findCatalogPath(dataDir))} AS lake (READ_ONLY)`)
    return locateCatalogFiles(connection, 'lake', realpathSync(lakeFolder(dataDir)))
  })
}

/** Links every file into `to`, and writes their hashes. @returns bytes */
async function linkAll(located: LocatedFiles, to: string): Promise<number> {
  const folders = new Set([to])
  const sums: string[] = []
  let bytes = 0
  for (const file of filesOf(located.content)) {
    const path = join(to, relativePath(file))
    folders.add(dirname(path))
    bytes += await linkOrCopy(located.pathOf(file), path)
    sums.push(`${file.sha256 ?? (await hashFile(path))}  ${relativePath(file)}`)
  }
  const sumsPath = join(to, SUMS_FILE)
  await writeFile(sumsPath, sums.length === 0 ? '' : `${sums.sort().join('\n')}\n`)
  await syncPath(sumsPath)
  await syncFolders(folders)
  return bytes
}

/** One is pinned at a time, as far as processes can be seen from here: those of other containers cannot. */
function takeTurn(folder: string): FolderLock {
  try {
    return lockFolder(folder)
  } catch (error) {
    throw unavailable(`another snapshot is being made: ${errorMessage(error)}`)
  }
}

/** Half made under a name that nobody can give, and no other process uses. */
const unfinishedPath = (path: string): string => join(dirname(path), `.${basename(path)}.${ownText()}.tmp`)

/** Half made at `path`: the catalog is written last. */
function isUnfinished(path: string): boolean {
  const has = (name: string): boolean => existsSync(join(lakeFolder(path), name))
  return has(SUMS_FILE) && !has(CATALOG_FILE)
}

/** Removes what was left half made, under a name of its own or at `path`, and not touched since `beforeMs`. */
async function removeUnfinished(path: string, beforeMs: number): Promise<void> {
  const folder = dirname(path)
  const names = (await readdir(folder)).filter((name) => /^\..+\.tmp$/.test(name))
  const unfinished = names.map((name) => join(folder, name))
  if (isUnfinished(path)) unfinished.push(path)
  for (const each of unfinished) {
    // Whoever makes it may have finished it meanwhile.
    const found = await stat(each).catch(() => null)
    if (found !== null && found.mtimeMs <= beforeMs) await rm(each, { recursive: true, force: true })
  }
}

/**
 * Pins the present files of a data folder's lake under `name`. A server may be running: where it deletes files of the catalog
 * before they are linked, its next catalog is pinned. Rejects with `invalid` where the name is not valid or is in use, with
 * `unavailable` while another process pins.
 * @returns as `path` a folder that readers can use like a data folder; as `rowsLost` how many rows the lake lost with files, which its
 * view `lake_set_aside` tells
 */
export async function pinLake(folder: string, name: string, nowMs: number) {
  if (!NAME.test(name) || name.toLowerCase().startsWith(LOCK_NAME))
    throw invalid(`${name} is not a valid name: use letters, digits, dot, dash and underscore`)
  findCatalogPath(folder)
  const dataDir = realpathSync(folder)
  const path = pinnedFolder(dataDir, name)
  await makeFolder(dirname(path))
  // A process of another container may be making one: it leaves that alone for a day.
  const isShared = isLockedElsewhere(dirname(path))
  const turn = takeTurn(dirname(path))
  try {
    await removeUnfinished(path, isShared ? nowMs - DAY_MS : Number.POSITIVE_INFINITY)
    if (isUnfinished(path))
      throw unavailable(`${path} is being made by another process, or was left half made: remove it then`)
    if (existsSync(path)) throw invalid(`${path} exists already: a pinned lake never changes`)
    for (let attempt = 0; ; attempt++) {
      try {
        return await pin(dataDir, path, nowMs)
      } catch (error) {
        await rm(unfinishedPath(path), { recursive: true, force: true })
        if (!isMissingFileError(error) || attempt >= LAKE_REOPENINGS_MAX) throw toPinError(error, path)
      }
    }
  } finally {
    turn.release(true)
  }
}

/** Pins what the catalog lists at `path`, where there is nothing yet. */
async function pin(dataDir: string, path: string, nowMs: number) {
  const unfinished = unfinishedPath(path)
  await makeFolder(lakeFolder(unfinished))
  const located = await locateListedFiles(dataDir)
  if (located.missing.length > 0)
    throw missingFile(`${relativePath(located.missing[0])} is missing or damaged`)
  const bytes = await linkAll(located, lakeFolder(unfinished))
  await rename(unfinished, path)
  try {
    await syncPath(dirname(path))
    // Only now: the files that its views name have to be there.
    await writeCatalog(located.content, nowMs, {
      lakeDir: lakeFolder(path),
      pathOf: (file: DataFile) => join(lakeFolder(path), relativePath(file)),
    })
  } catch (error) {
    await rm(path, { recursive: true, force: true })
    throw error
  }
  const { files, rows } = sizeOf(filesOf(located.content))
  const rowsLost = located.content.quarantined.reduce((sum, file) => sum + file.rowsLost, 0)
  return { path, files, rows, bytes, rowsLost }
}

const missingFile = (message: string): Error => Object.assign(new Error(message), { code: 'ENOENT' })

const toPinError = (error: unknown, path: string): StoreError =>
  error instanceof StoreError
    ? error
    : unavailable(`the lake could not be pinned at ${path}: ${errorMessage(error)}`)
