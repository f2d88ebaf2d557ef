// In: a data folder, wherever it was made. Out: a catalog in it that names its files as they lie there. Never touches a file
// of rows, never takes the place of a server that keeps the catalog itself.

import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { inScratchDatabase } from '../duckdb/scratch-database.ts'
import { StoreError } from '../errors.ts'
import { CATALOG_FILE, writeCatalog } from '../lake/catalog.ts'
import { type LocatedFiles, lakeFilesOf, storeHolder } from '../lake/located-files.ts'
import { lakeFolder } from '../paths.ts'

export interface WrittenCatalog {
  path: string
  files: number
  rows: number
  /** Listed and not there, or there and not to be read: paths below the lake's folder. */
  missing: LocatedFiles['missing']
}

/** Writes the catalog of a data folder anew. */
export async function rewriteCatalog(asked: string, nowMs: number): Promise<WrittenCatalog> {
  if (!existsSync(lakeFolder(asked)))
    throw new StoreError('not_found', `there is no lake in ${asked}: ${lakeFolder(asked)} is missing`)
  const dataDir = realpathSync(asked)
  const lakeDir = lakeFolder(dataDir)
  const files = await inScratchDatabase(':memory:', { threads: '1' }, async (connection) => {
    const holder = await storeHolder(connection, dataDir)
    if (holder !== null)
      throw new StoreError('unavailable', `the server runs${holder} and keeps the catalog itself`)
    return lakeFilesOf(connection, lakeDir)
  })
  await writeCatalog(files.content, nowMs, { lakeDir, pathOf: files.pathOf, failpoint: () => {} })
  const parts = files.content.tables.flatMap((table) => table.parts)
  return {
    path: join(lakeDir, CATALOG_FILE),
    files: parts.length,
    rows: parts.reduce((sum, part) => sum + part.rows, 0),
    missing: files.missing,
  }
}
