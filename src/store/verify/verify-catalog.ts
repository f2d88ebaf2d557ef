// Compares the catalog that readers attach with the store's list of live files. Reads no file of the lake.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { LAKE_SCHEMA_VERSION } from '../../schema/tables.ts'
import { hasTable, queryRows, queryValue } from '../duckdb/query.ts'
import { type LakeTable, literal } from '../duckdb/sql.ts'
import { expectedReaderViews, fileViewName, OUTSIDE_LOG, readReaderViews } from '../lake/catalog.ts'
import { type CatalogEntry, readCatalogFiles } from '../lake/catalog-reader.ts'
import { relativePath } from '../lake/lake-files.ts'
import { groupByTable, type ListedFile } from '../lake/manifest.ts'
import type { ListedTable, VerifyContext } from './verify-files.ts'

/** The name under which the catalog is attached. */
export const CATALOG = 'lake'

/** The files of all tables according to the catalog. */
export async function listCatalogTables(connection: DuckDBConnection): Promise<ListedTable[]> {
  const files = await readCatalogFiles(connection, CATALOG)
  return groupByTable(files).map((each) => ({ ...each, replaced: null }))
}

const WRITTEN_ANEW = 'the next start corrects it, or mintlake lake catalog where no server runs'

/** The paths in the SQL of a view, as quoted literals. */
const parsePaths = (sql: string): Set<string> => new Set(sql.match(/'(?:[^']|'')*\.parquet'/g))

async function checkView(
  context: VerifyContext,
  table: LakeTable,
  files: readonly CatalogEntry[],
): Promise<void> {
  const { connection, findings } = context
  // In catalogs of older versions the view that readers use reads the files itself.
  const views = await queryRows(
    connection,
    `SELECT view_name AS name, sql FROM duckdb_views() WHERE database_name = '${CATALOG}' AND view_name IN ($table, $rows)`,
    { name: 'string', sql: 'string' },
    { table: table.name, rows: fileViewName(table) },
  )
  if (!views.some(({ name }) => name === table.name))
    return findings.add(table.name, null, 'has no view in the catalog')
  const read = parsePaths(views.map(({ sql }) => sql).join('\n'))
  for (const file of files) {
    if (!read.delete(literal(file.path)))
      findings.addFile(file, 'is on the catalog’s list and not read by its view')
  }
  for (const path of read)
    findings.add(table.name, path.slice(1, -1), 'is read by the catalog’s view and not on its list')
}

const COMPARED = ['rows', 'bytes', 'first', 'last', 'schemaVersion'] as const

/** The folder that all files of the catalog are in, where that is not this lake's own: all of it was copied or moved. */
function findMovedRoot(files: readonly CatalogEntry[], ownRoot: string): string | null {
  const roots = files.map((file) =>
    file.path.endsWith(`/${relativePath(file)}`) ? file.path.slice(0, -relativePath(file).length - 1) : null,
  )
  const [root = null] = roots
  return root !== ownRoot && roots.every((each) => each === root) ? root : null
}

function compareFile(
  { findings, links }: VerifyContext,
  live: ListedFile,
  listed: CatalogEntry,
  movedRoot: string | null,
): void {
  const wrong = COMPARED.find((name) => live[name] !== listed[name])
  if (wrong !== undefined)
    findings.addFile(live, `has ${wrong} ${listed[wrong]} in the catalog, ${live[wrong]} in the store`)
  if (movedRoot === null && listed.path !== links.pathOf(live))
    findings.addFile(live, `is listed at ${listed.path} by the catalog; the next start corrects it`)
}

/** Whether the lake's schema was that of today when the catalog was written. */
async function isOfToday(connection: DuckDBConnection): Promise<boolean> {
  if (!(await hasTable(connection, literal(CATALOG), 'lake_info'))) return false
  const sql = `SELECT coalesce(max(schema_version), 0)::DOUBLE FROM ${CATALOG}.main.lake_info`
  return (await queryValue(connection, sql, 'number')) === LAKE_SCHEMA_VERSION
}

/** Reports what an outside process left beside the catalog. Called before it is attached, which that may prevent. */
export function checkOutsideLog({ findings, lakeDir }: VerifyContext): void {
  if (existsSync(join(lakeDir, OUTSIDE_LOG)))
    findings.add(
      null,
      OUTSIDE_LOG,
      `was left by a process that opened the catalog without READ_ONLY, and readers see what it wrote; ${WRITTEN_ANEW}`,
    )
}

/** Reports views of readers that are not those of this version. */
async function checkReaderViews({ connection, findings }: VerifyContext): Promise<void> {
  if (!(await isOfToday(connection))) return
  const views = await readReaderViews(connection, CATALOG)
  for (const [name, sql] of await expectedReaderViews()) {
    const found = views.get(name)
    if (found !== undefined && found !== sql)
      findings.add(name, null, `has a view that Mintlake did not write; ${WRITTEN_ANEW}`)
  }
}

/** Compares the catalog's views with its list, and its list with the live files. */
export async function verifyCatalog(context: VerifyContext, live: readonly ListedTable[]): Promise<void> {
  const { connection, findings } = context
  await checkReaderViews(context)
  const all = await readCatalogFiles(connection, CATALOG)
  const movedRoot = findMovedRoot(all, context.links.root)
  if (movedRoot !== null)
    findings.notes.push(
      `the catalog names files in ${movedRoot}: the lake was copied or moved; mintlake lake catalog, or the next start, corrects it`,
    )
  for (const { table, files } of live) {
    const entries = all.filter((file) => file.table === table.name)
    await checkView(context, table, entries)
    const listed = new Map(entries.map((file) => [relativePath(file), file]))
    for (const file of files) {
      const found = listed.get(relativePath(file))
      if (found === undefined)
        findings.addUnlessKilled(context, table.name, relativePath(file), 'is live and not in the catalog')
      else compareFile(context, file, found, movedRoot)
      listed.delete(relativePath(file))
    }
    for (const path of listed.keys())
      findings.addUnlessKilled(
        context,
        table.name,
        path,
        'is in the catalog and no longer live: it was replaced',
      )
  }
}
