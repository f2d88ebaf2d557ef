// In: a catalog and the folder that it lies in, which may have been copied or moved since it was written. Out: the files
// that it lists where they lie now, those that are not there told apart; and a catalog that names them so. Never reads a
// file outside of the folder, whatever the catalog says.
import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { errorFirstLine } from '../../lib/error-text.ts'
import { holderOf } from '../data-folder/folder-lock.ts'
import { lockHolder, openWhenFree } from '../duckdb/duckdb.ts'
import { LAKE_TABLES, literal } from '../duckdb/sql.ts'
import { statePath } from '../paths.ts'
import { CATALOG_FILE, type CatalogContent } from './catalog.ts'
import { type CataloguedPart, cataloguedLosses, cataloguedParts } from './catalog-list.ts'
import { isVerifierError, rowsByFooter, schemaVersionIn } from './file-check.ts'
import { lookAtTable, type Part, partPath } from './lake-files.ts'
import { type LinksView, viewLinks } from './links.ts'
import { byTable, type ListedPart, type SetAsidePart } from './manifest.ts'

/** A catalog's files as they lie in a folder. */
export interface LocatedFiles {
  content: CatalogContent
  pathOf(part: Part): string
  /** Listed, and not there or of another size. */
  missing: readonly ListedPart[]
  /** The catalog names every file where it lies. */
  isRight: boolean
}

async function placeOf(links: LinksView, part: ListedPart): Promise<string | null> {
  for (const path of [links.pathOf(part), links.linkedAt(part)]) {
    const found = await stat(path).catch((error: unknown) => {
      if (isVerifierError(error)) throw error
      return null
    })
    if (found?.isFile() && found.size === part.bytes) return path
  }
  return null
}

const asMissing = (part: ListedPart): SetAsidePart => ({
  ...part,
  reason: 'is listed and not there',
  setAsideAtMs: part.writtenAtMs,
  rowsLost: part.rows,
  settledAtMs: null,
})

/** What a catalog says of losses, in the words of the list. */
async function knownLosses(connection: DuckDBConnection, catalog: string): Promise<SetAsidePart[]> {
  const losses = await cataloguedLosses(connection, catalog)
  return losses.map((loss) => {
    const [, first, last] = /part-(\d+)-(\d+)/.exec(loss.path) ?? ['', '0', '0']
    const figures = { rows: loss.rowsLost, bytes: 0, sha256: null, schemaVersion: 1, writtenAtMs: 0 }
    return { ...loss, ...figures, first: Number(first), last: Number(last) }
  })
}

/** The files of the catalog attached as `catalog`, as they lie below `lakeDir`. */
export async function locateFiles(
  connection: DuckDBConnection,
  catalog: string,
  lakeDir: string,
): Promise<LocatedFiles> {
  const links = await viewLinks(lakeDir)
  const places = new Map<string, string>()
  const there: CataloguedPart[] = []
  const missing: CataloguedPart[] = []
  let isRight = true
  for (const part of await cataloguedParts(connection, catalog)) {
    const place = await placeOf(links, part)
    if (place !== part.path) isRight = false
    if (place === null) missing.push(part)
    else {
      there.push(part)
      places.set(partPath(part), place)
    }
  }
  const losses = [...(await knownLosses(connection, catalog)), ...missing.map(asMissing)]
  return {
    content: { tables: byTable(there), setAside: losses },
    pathOf: (part) => places.get(partPath(part))!,
    missing,
    isRight,
  }
}

/** Figures of a file that no catalog lists; null where it cannot be read. */
async function figuresOf(connection: DuckDBConnection, part: Part, path: string): Promise<ListedPart | null> {
  try {
    const { size: bytes, mtimeMs } = await stat(path)
    const rows = await rowsByFooter(connection, path)
    const schemaVersion = (await schemaVersionIn(connection, path)) ?? 1
    return { ...part, rows, bytes, sha256: null, schemaVersion, writtenAtMs: Math.floor(mtimeMs) }
  } catch (error) {
    // What keeps us from looking says nothing of the file: its rows must not be left out for that.
    if (isVerifierError(error)) throw error
    return null
  }
}

/** The files that lie below `lakeDir`, without a catalog to ask. */
async function lyingFiles(connection: DuckDBConnection, lakeDir: string): Promise<LocatedFiles> {
  const links = await viewLinks(lakeDir)
  const pathOf = (part: Part): string =>
    existsSync(links.pathOf(part)) ? links.pathOf(part) : links.linkedAt(part)
  const there: ListedPart[] = []
  const missing: ListedPart[] = []
  for (const { name } of LAKE_TABLES) {
    for (const part of (await lookAtTable(lakeDir, name)).parts) {
      const found = await figuresOf(connection, part, pathOf(part))
      const unknown = { rows: 0, bytes: 0, sha256: null, schemaVersion: 1, writtenAtMs: 0 }
      if (found === null) missing.push({ ...part, ...unknown })
      else there.push(found)
    }
  }
  const content = { tables: byTable(there), setAside: missing.map(asMissing) }
  return { content, pathOf, missing, isRight: false }
}

/** The files of the lake below `lakeDir`: by its catalog, or where that is gone or spoilt by its folders. */
export async function lakeFilesOf(connection: DuckDBConnection, lakeDir: string): Promise<LocatedFiles> {
  const path = join(lakeDir, CATALOG_FILE)
  if (!existsSync(path)) return lyingFiles(connection, lakeDir)
  try {
    await connection.run(`ATTACH ${literal(path)} AS listed (READ_ONLY)`)
  } catch {
    return lyingFiles(connection, lakeDir)
  }
  try {
    return await locateFiles(connection, 'listed', lakeDir)
  } finally {
    await connection.run('DETACH listed')
  }
}

/** Who has the store of a data folder, as a sentence's end; null: nobody. */
export async function storeHolder(connection: DuckDBConnection, dataDir: string): Promise<string | null> {
  const path = statePath(dataDir)
  if (!existsSync(path)) return null
  try {
    await openWhenFree(
      () => connection.run(`ATTACH ${literal(path)} AS held (READ_ONLY)`),
      () => holderOf(dataDir) === null,
    )
    await connection.run('DETACH held')
    return null
  } catch (error) {
    const by = lockHolder(errorFirstLine(error))
    const pid = holderOf(dataDir)
    // The lake process has the database; people know the server.
    return by === null || pid === null ? by : ` (process ${pid})`
  }
}
