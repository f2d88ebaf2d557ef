// Rewrites a lake's catalog with the paths that its files have now, for a folder that was copied or moved and has no server.
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { attachState } from '../duckdb/duckdb.ts'
import { withScratchDatabase } from '../duckdb/scratch-database.ts'
import { notFound, unavailable } from '../errors.ts'
import { CATALOG_FILE, writeCatalog } from '../lake/catalog.ts'
import { locateLakeFiles } from '../lake/locate-files.ts'
import { lakeFolder, statePath } from '../paths.ts'

/**
 * Rewrites the catalog of a data folder. Rejects with `not_found` without a lake, `unavailable` while a server runs.
 * @returns among others as `missing` the files that are listed but missing, or that cannot be read
 */
export async function rewriteCatalog(folder: string, nowMs: number) {
  if (!existsSync(lakeFolder(folder)))
    throw notFound(`there is no lake in ${folder}: ${lakeFolder(folder)} is missing`)
  const dataDir = realpathSync(folder)
  const lakeDir = lakeFolder(dataDir)
  const located = await withScratchDatabase(':memory:', { threads: '1' }, async (connection) => {
    // One that cannot be opened is nobody's.
    const holder = existsSync(statePath(dataDir))
      ? await attachState(connection, dataDir, 'held').catch(() => null)
      : null
    if (holder !== null) throw unavailable(`the server runs${holder} and keeps the catalog itself`)
    return locateLakeFiles(connection, lakeDir)
  })
  await writeCatalog(located.content, nowMs, { lakeDir, pathOf: located.pathOf })
  const files = located.content.tables.flatMap((table) => table.files)
  return {
    path: join(lakeDir, CATALOG_FILE),
    files: files.length,
    rows: files.reduce((sum, file) => sum + file.rows, 0),
    missing: located.missing,
  }
}
