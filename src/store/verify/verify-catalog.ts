// In: the catalog that readers attach, and the files that the store says are live. Out: where the two differ. Never
// looks at a file.
import type { DuckDBConnection } from '@duckdb/node-api'
import { query } from '../duckdb/query.ts'
import { type LakeTable, literal } from '../duckdb/sql.ts'
import { type CataloguedPart, cataloguedParts } from '../lake/catalog-list.ts'
import { type Part, partPath } from '../lake/lake-files.ts'
import { byTable, type ListedPart } from '../lake/manifest.ts'
import type { ListedTable, VerifyContext } from './verify-files.ts'

/** The name under which the catalog is attached. */
export const CATALOG = 'lake'

/** The files of every table as the catalog lists them. */
export async function cataloguedTables(connection: DuckDBConnection): Promise<ListedTable[]> {
  const parts = await cataloguedParts(connection, CATALOG)
  return byTable(parts).map((each) => ({ ...each, replaced: null }))
}

/** Paths that a view reads, as they stand in its text. */
const pathsIn = (sql: string): Set<string> => new Set(sql.match(/'(?:[^']|'')*\.parquet'/g))

async function checkView(
  context: VerifyContext,
  table: LakeTable,
  parts: readonly CataloguedPart[],
): Promise<void> {
  const { connection, findings } = context
  const [view] = await query<{ sql: string }>(
    connection,
    `SELECT sql FROM duckdb_views() WHERE database_name = '${CATALOG}' AND view_name = $table`,
    { table: table.name },
  )
  if (view === undefined) return findings.add(table.name, null, 'has no view in the catalog')
  const read = pathsIn(view.sql)
  for (const part of parts) {
    if (!read.delete(literal(part.path)))
      findings.add(table.name, partPath(part), 'is in the catalog’s list and not read by its view')
  }
  for (const path of read)
    findings.add(table.name, path.slice(1, -1), 'is read by the catalog’s view and not on its list')
}

const FIGURES = ['rows', 'bytes', 'first', 'last', 'schemaVersion'] as const

function checkPart(context: VerifyContext, live: ListedPart, listed: CataloguedPart): void {
  const { findings, links } = context
  const wrong = FIGURES.find((name) => live[name] !== listed[name])
  if (wrong !== undefined)
    findings.add(
      live.table,
      partPath(live),
      `has ${wrong} ${listed[wrong]} in the catalog, ${live[wrong]} in the store`,
    )
  if (listed.path !== links.pathOf(live))
    findings.add(
      live.table,
      partPath(live),
      `is looked for at ${listed.path} by the catalog; the next start puts it right`,
    )
}

/** Checks the catalog's views against its list, and its list against `live`. */
export async function verifyCatalog(context: VerifyContext, live: readonly ListedTable[]): Promise<void> {
  const { connection, findings } = context
  const nameOf = (part: Part): string => partPath(part)
  const all = await cataloguedParts(connection, CATALOG)
  for (const { table, parts } of live) {
    const catalogued = all.filter((part) => part.table === table.name)
    await checkView(context, table, catalogued)
    const listed = new Map(catalogued.map((part) => [nameOf(part), part]))
    for (const part of parts) {
      const found = listed.get(nameOf(part))
      if (found === undefined) findings.add(table.name, nameOf(part), 'is live and not in the catalog')
      else checkPart(context, part, found)
      listed.delete(nameOf(part))
    }
    for (const path of listed.keys())
      findings.add(table.name, path, 'is in the catalog and no longer live: it was replaced')
  }
}
