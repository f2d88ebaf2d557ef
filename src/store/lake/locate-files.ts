// Finds the files of a lake whose folder may have been copied or moved since its catalog was written.
import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { TABLES } from '../../schema/tables.ts'
import { isFullError, isReadOnlyError } from '../duckdb/database.ts'
import { countParquetRows } from '../duckdb/query.ts'
import { LAKE_TABLES } from '../duckdb/sql.ts'
import { NO_EVENT_METADATA } from '../events/event-metadata.ts'
import {
  CATALOG_FILE,
  type CatalogContent,
  READER_VIEWS,
  readReaderViews,
  withCatalogCopy,
} from './catalog.ts'
import { type CatalogEntry, readContent } from './catalog-reader.ts'
import { isResourceError, readSchemaVersion } from './file-check.ts'
import { type DataFile, listTableFolder, relativePath } from './lake-files.ts'
import { type LakePaths, readLakePaths } from './links.ts'
import { groupByTable, type ListedFile, type QuarantinedFile, quarantinedFile } from './manifest.ts'

/** The files of a lake, with the paths at which they are now. */
export interface LocatedFiles {
  content: CatalogContent
  pathOf(file: DataFile): string
  /** Listed, but missing or of another size. */
  missing: readonly ListedFile[]
  /** The catalog lists every file with its present path, and has all views of today. */
  catalogMatches: boolean
}

/** The path at which a listed file is, with its size; null where there is none. */
async function findPath(links: LakePaths, file: ListedFile): Promise<string | null> {
  for (const path of [links.pathOf(file), links.linkPathOf(file)]) {
    const found = await stat(path).catch((error: unknown) => {
      if (isResourceError(error)) throw error
      return null
    })
    if (found?.isFile() && found.size === file.bytes) return path
  }
  return null
}

const notThere = (file: ListedFile): QuarantinedFile =>
  quarantinedFile(file, 'is listed and not there', file.writtenAtMs)

/** Finds the files that an attached catalog lists below `lakeDir`. Paths outside of that folder are ignored. */
export async function locateCatalogFiles(
  connection: DuckDBConnection,
  catalog: string,
  lakeDir: string,
): Promise<LocatedFiles> {
  const links = await readLakePaths(lakeDir)
  const paths = new Map<string, string>()
  const found: CatalogEntry[] = []
  const missing: CatalogEntry[] = []
  const listed = await readContent(connection, catalog)
  // One that an older version has written may lack views of today.
  const views = await readReaderViews(connection, catalog)
  let catalogMatches = READER_VIEWS.every((name) => views.has(name))
  for (const file of listed.tables.flatMap((table) => table.files)) {
    const path = await findPath(links, file)
    if (path !== file.path) catalogMatches = false
    if (path === null) missing.push(file)
    else {
      found.push(file)
      paths.set(relativePath(file), path)
    }
  }
  const quarantined = [...listed.quarantined, ...missing.map(notThere)]
  return {
    content: { ...listed, tables: groupByTable(found), quarantined },
    pathOf: (file) => paths.get(relativePath(file)) ?? links.pathOf(file),
    missing,
    catalogMatches,
  }
}

/** Reads what the manifest would say of a file; null where it cannot be read. */
async function inspectFile(
  connection: DuckDBConnection,
  file: DataFile,
  path: string,
): Promise<ListedFile | null> {
  try {
    const { size: bytes, mtimeMs } = await stat(path)
    const rows = await countParquetRows(connection, path)
    const schemaVersion = (await readSchemaVersion(connection, path)) ?? 1
    return { ...file, rows, bytes, sha256: null, schemaVersion, writtenAtMs: Math.floor(mtimeMs) }
  } catch (error) {
    // A failure of the check is no reason to leave out the file's rows.
    if (isResourceError(error)) throw error
    return null
  }
}

/** As far as files tell: where both tables of recorded events have begun. */
export function eventsFromFiles(files: readonly ListedFile[]): number {
  const firsts = [TABLES.trades, TABLES.events].map(({ name }) =>
    Math.min(...files.filter(({ table }) => table === name).map(({ first }) => first)),
  )
  return Math.max(1, ...firsts.filter(Number.isFinite))
}

/** Finds the files below `lakeDir` by listing folders. Gaps that were found late are not known from there. */
async function locateByFolders(connection: DuckDBConnection, lakeDir: string): Promise<LocatedFiles> {
  const links = await readLakePaths(lakeDir)
  const pathOf = (file: DataFile): string =>
    existsSync(links.pathOf(file)) ? links.pathOf(file) : links.linkPathOf(file)
  const readable: ListedFile[] = []
  const missing: ListedFile[] = []
  for (const { name } of LAKE_TABLES) {
    for (const file of (await listTableFolder(lakeDir, name)).files) {
      const found = await inspectFile(connection, file, pathOf(file))
      const unknown = { rows: 0, bytes: 0, sha256: null, schemaVersion: 1, writtenAtMs: 0 }
      if (found === null) missing.push({ ...file, ...unknown })
      else readable.push(found)
    }
  }
  const content = {
    tables: groupByTable(readable),
    quarantined: missing.map(notThere),
    recorded: { ...NO_EVENT_METADATA, eventsFrom: eventsFromFiles(readable) },
    flushedLsn: 0,
  }
  return { content, pathOf, missing, catalogMatches: false }
}

/**
 * Finds the files of the lake below `lakeDir` by its catalog, or by its folders where the catalog is missing or unreadable. No server
 * may run.
 */
export async function locateLakeFiles(connection: DuckDBConnection, lakeDir: string): Promise<LocatedFiles> {
  const found = await stat(join(lakeDir, CATALOG_FILE)).catch(() => null)
  if (!found?.isFile()) return locateByFolders(connection, lakeDir)
  let isRead = false
  try {
    return await withCatalogCopy(lakeDir, (copy) => {
      isRead = true
      return locateCatalogFiles(copy, 'listed', lakeDir)
    })
  } catch (error) {
    if (isRead || isResourceError(error) || isFullError(error) || isReadOnlyError(error)) throw error
    return locateByFolders(connection, lakeDir)
  }
}
