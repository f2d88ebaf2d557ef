// Rewrites a lake's catalog with the paths that its files have now, for a folder that was copied or moved and has no server.
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { TABLES } from '../../schema/tables.ts'
import { attachState } from '../duckdb/duckdb.ts'
import { withScratchDatabase } from '../duckdb/scratch-database.ts'
import { notFound, unavailable } from '../errors.ts'
import { CATALOG_FILE, filesOf, writeCatalog } from '../lake/catalog.ts'
import { type DataFile, overlaps, relativePath } from '../lake/lake-files.ts'
import { type LakePaths, readLakePaths } from '../lake/links.ts'
import { type LocatedFiles, locateLakeFiles } from '../lake/locate-files.ts'
import { groupByTable, type ListedFile, type QuarantinedFile, sizeOf } from '../lake/manifest.ts'
import { toReadableFiles } from '../lake/parquet-sql.ts'
import { countUnrepeated } from '../lake/repeated-bars.ts'
import { findWholeCopy, type WholeCopy } from '../lake/whole-copy.ts'
import { lakeFolder, statePath } from '../paths.ts'

/**
 * Rewrites the catalog of a data folder. Rejects with `not_found` without a lake, `unavailable` while a server runs.
 * @returns among others as `missing` the files that are missing or damaged, and that no repair has settled
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
    return takeBack(connection, await locateLakeFiles(connection, lakeDir), await readLakePaths(lakeDir))
  })
  await writeCatalog(located.content, nowMs, { lakeDir, pathOf: located.pathOf })
  return {
    path: join(lakeDir, CATALOG_FILE),
    ...sizeOf(filesOf(located.content)),
    missing: located.content.quarantined.filter(({ acknowledgedAtMs }) => acknowledgedAtMs === null),
  }
}

/** Lists files again that were set aside and that are whole where they belong, unless others have rows of them. */
async function takeBack(
  connection: DuckDBConnection,
  located: LocatedFiles,
  links: LakePaths,
): Promise<LocatedFiles> {
  const files = filesOf(located.content)
  const paths = new Map<string, string>()
  const pathOf = (file: DataFile): string => paths.get(relativePath(file)) ?? located.pathOf(file)
  const quarantined: QuarantinedFile[] = []
  for (const lost of located.content.quarantined) {
    const copy = await findWholeCopy(lost, [links.pathOf(lost), links.linkPathOf(lost)])
    const ofDate = files.filter(({ table, date }) => table === lost.table && date === lost.date)
    if (copy === null || ofDate.some((other) => overlaps(lost, other)) || (await isRepeated(copy, ofDate))) {
      quarantined.push(lost)
      continue
    }
    files.push(copy.file)
    paths.set(relativePath(lost), copy.path)
  }
  return { ...located, content: { ...located.content, tables: groupByTable(files), quarantined }, pathOf }

  /** The market may have emitted bars again while their file was missing. */
  async function isRepeated({ file, path }: WholeCopy, others: readonly ListedFile[]): Promise<boolean> {
    if (file.table !== TABLES.bars.name) return false
    const source = { ...file, path }
    return (await countUnrepeated(connection, source, toReadableFiles(others, pathOf))) < file.rows
  }
}
