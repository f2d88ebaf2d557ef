// In: a lake that may be in use, and a name. Out: its files of one moment under that name, with a catalog of their own and
// the SHA-256 of each: what a paper can refer to, whatever is merged, expires or is added later. Never copies a file where
// the disk knows links, and never asks the server.
import { existsSync, realpathSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errorMessage } from '../../lib/error-text.ts'
import { makeFolder, syncPath } from '../../lib/files.ts'
import { linkOrCopy, syncFolders } from '../data-folder/snapshot.ts'
import { inScratchDatabase } from '../duckdb/scratch-database.ts'
import { literal } from '../duckdb/sql.ts'
import { StoreError } from '../errors.ts'
import { writeCatalog } from '../lake/catalog.ts'
import { contentHash, type Part, partPath } from '../lake/lake-files.ts'
import { type LocatedFiles, locateFiles } from '../lake/located-files.ts'
import { LAKE_REOPENINGS_MAX } from '../limits.ts'
import { lakeFolder, pinnedFolder } from '../paths.ts'
import { catalogPath, isOutdated } from './lake-reader.ts'

export interface PinnedLake {
  /** A data folder, as far as reading goes. */
  path: string
  files: number
  rows: number
  bytes: number
}

/** One word, that is a folder's name everywhere. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
export const SUMS_FILE = 'SHA256SUMS'

/** The files of the catalog, as they lie. Rejects with `unavailable` where one of them is missing. */
async function filesOf(dataDir: string): Promise<LocatedFiles> {
  return inScratchDatabase(':memory:', { threads: '1' }, async (connection) => {
    await connection.run(`ATTACH ${literal(catalogPath(dataDir))} AS lake (READ_ONLY)`)
    return locateFiles(connection, 'lake', realpathSync(lakeFolder(dataDir)))
  })
}

const partsOf = ({ content }: LocatedFiles) => content.tables.flatMap(({ parts }) => parts)

/** Links every file into `to`, and says what each of them holds. @returns bytes */
async function linkAll(files: LocatedFiles, to: string): Promise<number> {
  const folders = new Set([to])
  const sums: string[] = []
  let bytes = 0
  for (const part of partsOf(files)) {
    const place = join(to, partPath(part))
    await makeFolder(dirname(place))
    folders.add(dirname(place))
    bytes += await linkOrCopy(files.pathOf(part), place)
    sums.push(`${part.sha256 ?? (await contentHash(place))}  ${partPath(part)}`)
  }
  const sumsPath = join(to, SUMS_FILE)
  await writeFile(sumsPath, sums.length === 0 ? '' : `${sums.sort().join('\n')}\n`)
  await syncPath(sumsPath)
  await syncFolders(folders)
  return bytes
}

/**
 * Pins the lake of `asked` under `name`, below the data folder. A server may write to it meanwhile: what its catalog lists is
 * linked, and where files of it have gone before they were, its next catalog. Rejects with `invalid` where the name is none
 * or is taken.
 */
export async function pinLake(asked: string, name: string, nowMs: number): Promise<PinnedLake> {
  if (!NAME.test(name))
    throw new StoreError('invalid', `${name} is no name: letters, digits, dot, dash and underscore`)
  catalogPath(asked)
  const dataDir = realpathSync(asked)
  const path = pinnedFolder(dataDir, name)
  if (existsSync(path))
    throw new StoreError('invalid', `${path} is there already: a pinned lake never changes`)
  const unfinished = `${path}.tmp`
  for (let attempt = 0; ; attempt++) {
    try {
      await rm(unfinished, { recursive: true, force: true })
      await makeFolder(lakeFolder(unfinished))
      const files = await filesOf(dataDir)
      if (files.missing.length > 0)
        throw new StoreError('unavailable', `${partPath(files.missing[0])}: No such file or damaged`)
      const bytes = await linkAll(files, lakeFolder(unfinished))
      await rename(unfinished, path)
      await syncPath(dirname(path))
      await writeCatalog(files.content, nowMs, {
        lakeDir: lakeFolder(path),
        pathOf: (part: Part) => join(lakeFolder(path), partPath(part)),
        failpoint: () => {},
      })
      const parts = partsOf(files)
      return { path, files: parts.length, rows: parts.reduce((sum, { rows }) => sum + rows, 0), bytes }
    } catch (error) {
      await rm(unfinished, { recursive: true, force: true })
      if (!isOutdated(error) || attempt >= LAKE_REOPENINGS_MAX) throw pinFailure(error, path)
    }
  }
}

const pinFailure = (error: unknown, path: string): StoreError =>
  error instanceof StoreError
    ? error
    : new StoreError('unavailable', `the lake could not be pinned at ${path}: ${errorMessage(error)}`)
