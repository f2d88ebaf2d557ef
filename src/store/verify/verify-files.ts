// Checks every byte of the files that the store or the catalog lists, their hard links, and files that are on no list.

import { stat } from 'node:fs/promises'
import { relative } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import type { Losses } from '../data-folder/losses.ts'
import { queryOne } from '../duckdb/query.ts'
import type { LakeTable } from '../duckdb/sql.ts'
import {
  errorAsFault,
  findHashFault,
  findSchemaFault,
  findSizeFault,
  readParquetSql,
} from '../lake/file-check.ts'
import { dateSql } from '../lake/file-writer.ts'
import { type DataFile, hashFile, listTableFolder, relativePath } from '../lake/lake-files.ts'
import type { LakePaths } from '../lake/links.ts'
import type { ListedFile } from '../lake/manifest.ts'
import type { Findings } from './findings.ts'

/** What the parts of one verification share. */
export interface VerifyContext {
  /** Of a scratch database, with the catalog attached, and the store where possible; see verify.ts. */
  connection: DuckDBConnection
  lakeDir: string
  links: LakePaths
  findings: Findings
  /** The store is attached, so no server runs: files on no list are leftovers, not files being written. */
  hasStore: boolean
  /** The server was killed: what its last flush or merge left undone, the next start completes. */
  wasKilled: boolean
  /** Says which losses an operator has acknowledged. */
  losses: Pick<Losses, 'isAcknowledged'>
  /** Modification time of the catalog. While a server runs, younger files may not be in it yet. */
  catalogWrittenMs: number
  /** Reports what is checked next. Throws when the verification was aborted. */
  startStage(stage: string): void
}

/** A table and its files according to the store or the catalog. */
export interface ListedTable {
  table: LakeTable
  files: readonly ListedFile[]
  /** Paths of listed files, including replaced ones that are kept for readers; null where that is not known. */
  replaced: ReadonlySet<string> | null
}

const statOrNull = (path: string) => stat(path).catch(() => null)

/** Reads a whole file. Returns what is wrong, or null. @throws when it cannot be read */
async function findContentFault(
  connection: DuckDBConnection,
  table: LakeTable,
  file: ListedFile,
  path: string,
): Promise<string | null> {
  const fault = await findSchemaFault(connection, table, file.schemaVersion, path)
  if (fault !== null) return fault
  // The hash covers every column, so that DuckDB reads and decodes every page.
  const { rows, foreign } = await queryOne(
    connection,
    `SELECT count(*)::DOUBLE AS rows, count(*) FILTER (${dateSql(table)} IS DISTINCT FROM DATE '${file.date}')::DOUBLE AS foreign,
       bit_xor(hash(file)) AS content FROM ${readParquetSql(path)} AS file`,
    { rows: 'number', foreign: 'number' },
  )
  if (rows !== file.rows) return `has ${rows} rows, not the ${file.rows} listed`
  return foreign === 0 ? null : `has ${foreign} rows of another day than its folder says`
}

const findFault = (
  connection: DuckDBConnection,
  table: LakeTable,
  file: ListedFile,
  path: string,
): Promise<string | null> =>
  errorAsFault(
    async () =>
      (await findSizeFault(file, path)) ??
      (await findContentFault(connection, table, file, path)) ??
      (await findHashFault(file, path)),
  )

const NO_LINK = 'is missing from its table’s folder: readers who list it miss its rows'

/** Checks the hard link of a file. Returns what is wrong, or null. */
async function findLinkFault(links: LakePaths, file: DataFile): Promise<string | null> {
  const [stored, linked] = [await statOrNull(links.pathOf(file)), await statOrNull(links.linkPathOf(file))]
  if (linked === null) return NO_LINK
  if (stored === null || (stored.ino === linked.ino && stored.dev === linked.dev)) return null
  const isSame =
    stored.size === linked.size &&
    (await hashFile(links.pathOf(file))) === (await hashFile(links.linkPathOf(file)))
  // In a copied folder they are two files.
  return isSame ? null : 'has other content in its table’s folder'
}

/** Reports files of one date whose row numbers overlap: they may have rows in common. */
function checkOverlaps({ files }: ListedTable, findings: Findings): void {
  for (const ofDate of Map.groupBy(files, ({ date }) => date).values()) {
    let before: ListedFile | null = null
    for (const file of [...ofDate].sort((a, b) => a.first - b.first)) {
      if (before !== null && file.first <= before.last)
        findings.addFile(file, `has row numbers that ${relativePath(before)} has too`)
      if (before === null || file.last > before.last) before = file
    }
  }
}

/** Whether a server may still be writing or replacing a file: it is younger than the catalog, or gone by now. */
async function isInProgress({ links, catalogWrittenMs }: VerifyContext, file: DataFile): Promise<boolean> {
  const found = await statOrNull(links.linkPathOf(file))
  return found === null || found.mtimeMs >= catalogWrittenMs
}

/** Reports files in the folders that are on no list. */
async function checkUnlisted(context: VerifyContext, { table, files, replaced }: ListedTable): Promise<void> {
  const { lakeDir, links, findings, hasStore } = context
  const linked = await listTableFolder(lakeDir, table.name)
  const listed = new Set(files.map(relativePath))
  // Without hard links replaced files stay visible until they are deleted.
  const isKnown = (path: string): boolean =>
    listed.has(path) || (!links.hasLinks && (replaced === null || replaced.has(path)))
  for (const file of linked.files) {
    const path = relativePath(file)
    if (isKnown(path) || (!hasStore && (await isInProgress(context, file)))) continue
    const fault = 'is in its table’s folder and not on the list of live files'
    findings.addUnlessKilled(context, table.name, path, fault)
  }
  for (const path of linked.foreign)
    findings.add(
      table.name,
      relative(lakeDir, path),
      'was not written by the store, and readers who list folders read it',
    )
  const stored = links.hasLinks ? await listTableFolder(links.root, table.name) : linked
  const temporaries = new Set([...linked.temporaries, ...stored.temporaries])
  if (hasStore && temporaries.size > 0)
    findings.notes.push(
      `${table.name}: half-written files, which the next start removes: ${temporaries.size}`,
    )
}

/** Checks all files of one table. @returns the undamaged ones */
export async function verifyFiles(context: VerifyContext, listed: ListedTable): Promise<ListedFile[]> {
  const { connection, links, findings } = context
  const { table, files } = listed
  const whole: ListedFile[] = []
  for (const [index, file] of files.entries()) {
    context.startStage(`files of ${table.name}, ${index + 1} of ${files.length}`)
    const fault = await findFault(connection, table, file, links.pathOf(file))
    if (fault === null) whole.push(file)
    else findings.addFile(file, fault)
    const linkFault = links.hasLinks ? await findLinkFault(links, file) : null
    if (linkFault === NO_LINK) findings.addUnlessKilled(context, table.name, relativePath(file), linkFault)
    else if (linkFault !== null) findings.addFile(file, linkFault)
  }
  checkOverlaps(listed, findings)
  await checkUnlisted(context, listed)
  return whole
}
