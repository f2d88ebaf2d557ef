// In: the files that a list says the lake has. Out: which of them are whole, and what is wrong with the others and with
// the names they bear. Reads every byte of them. Never writes one.

import { stat } from 'node:fs/promises'
import { relative } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { errorFirstLine } from '../../lib/error-text.ts'
import { query } from '../duckdb/query.ts'
import type { LakeTable } from '../duckdb/sql.ts'
import { hashFault, isVerifierError, scanOf, schemaFault, sizeFault } from '../lake/file-check.ts'
import { dateOf } from '../lake/file-writer.ts'
import { contentHash, lookAtTable, type Part, partPath } from '../lake/lake-files.ts'
import type { LinksView } from '../lake/links.ts'
import type { ListedPart } from '../lake/manifest.ts'
import type { Findings } from './findings.ts'

/** One look at the lake. */
export interface VerifyContext {
  /** A database of its own, with the catalog and perhaps the store attached; see verify.ts. */
  connection: DuckDBConnection
  lakeDir: string
  links: LinksView
  findings: Findings
  /** Nobody writes while we look: what lies about was left. */
  isStill: boolean
  /** When the catalog was written, by the disk's clock. Where a server runs, younger files are on their way into it. */
  catalogWrittenMs: number
  /** Tells what is looked at next; throws once the work shall end. */
  enter(stage: string): void
}

/** A table and the files that a list says it has. */
export interface ListedTable {
  table: LakeTable
  parts: readonly ListedPart[]
  /** Paths of files that were replaced and stay for readers who have begun; null where that is not known. */
  replaced: ReadonlySet<string> | null
}

const statOf = (path: string) => stat(path).catch(() => null)

/** Reads a file to its end. @throws when it cannot be read */
async function contentFault(
  connection: DuckDBConnection,
  table: LakeTable,
  part: ListedPart,
  path: string,
): Promise<string | null> {
  const fault = await schemaFault(connection, table, part.schemaVersion, path)
  if (fault !== null) return fault
  // The hash is of every column: each page is read and unpacked.
  const [{ rows, foreign }] = await query<{ rows: number; foreign: number }>(
    connection,
    `SELECT count(*)::DOUBLE AS rows, count(*) FILTER (${dateOf(table)} IS DISTINCT FROM DATE '${part.date}')::DOUBLE AS foreign,
       bit_xor(hash(file)) AS content FROM ${scanOf(path)} AS file`,
  )
  if (rows !== part.rows) return `has ${rows} rows, not the ${part.rows} listed`
  return foreign === 0 ? null : `has ${foreign} rows of another day than its folder says`
}

async function fileFault(
  connection: DuckDBConnection,
  table: LakeTable,
  part: ListedPart,
  path: string,
): Promise<string | null> {
  try {
    return (
      (await sizeFault(part, path)) ??
      (await contentFault(connection, table, part, path)) ??
      (await hashFault(part, path))
    )
  } catch (error) {
    if (isVerifierError(error)) throw error
    return `cannot be read: ${errorFirstLine(error)}`
  }
}

/** What is wrong with the name under which those who list folders see a file. */
async function nameFault(links: LinksView, part: Part): Promise<string | null> {
  const [held, shown] = [await statOf(links.pathOf(part)), await statOf(links.linkedAt(part))]
  if (shown === null) return 'is not shown in its table’s folder: readers who list it miss its rows'
  if (held === null || (held.ino === shown.ino && held.dev === shown.dev)) return null
  const isSame =
    held.size === shown.size &&
    (await contentHash(links.pathOf(part))) === (await contentHash(links.linkedAt(part)))
  // A copy of the folder makes two files of the two names.
  return isSame ? null : 'is shown in its table’s folder with other content'
}

/** Two files of one day whose row numbers overlap have rows in common. */
function checkOverlaps({ table, parts }: ListedTable, findings: Findings): void {
  for (const ofDate of Map.groupBy(parts, ({ date }) => date).values()) {
    let before: ListedPart | null = null
    for (const part of [...ofDate].sort((a, b) => a.first - b.first)) {
      if (before !== null && part.first <= before.last)
        findings.add(table.name, partPath(part), `has row numbers that ${partPath(before)} has too`)
      if (before === null || part.last > before.last) before = part
    }
  }
}

/** A file that is gone again, or younger than the catalog. */
async function isOnItsWay({ links, catalogWrittenMs }: VerifyContext, part: Part): Promise<boolean> {
  const found = await statOf(links.linkedAt(part))
  return found === null || found.mtimeMs >= catalogWrittenMs
}

/** What lies in the folders that is on no list. */
async function checkStrangers(
  context: VerifyContext,
  { table, parts, replaced }: ListedTable,
): Promise<void> {
  const { lakeDir, links, findings, isStill } = context
  const shown = await lookAtTable(lakeDir, table.name)
  const listed = new Set(parts.map(partPath))
  // Without hard links replaced files stay in sight until they are removed.
  const isKnown = (path: string): boolean =>
    listed.has(path) || (!links.hasLinks && (replaced === null || replaced.has(path)))
  for (const part of shown.parts) {
    const path = partPath(part)
    if (isKnown(path) || (!isStill && (await isOnItsWay(context, part)))) continue
    findings.add(table.name, path, 'is shown in its table’s folder and is not on the list of live files')
  }
  for (const path of shown.foreign)
    findings.add(
      table.name,
      relative(lakeDir, path),
      'is not the store’s, and readers who list folders read it',
    )
  const held = links.hasLinks ? await lookAtTable(links.root, table.name) : shown
  const half = new Set([...shown.temporaries, ...held.temporaries])
  if (isStill && half.size > 0)
    findings.notes.push(`${table.name}: half-written files, which the next start removes: ${half.size}`)
}

/** Checks the files of one table. @returns those that are whole. */
export async function verifyFiles(context: VerifyContext, listed: ListedTable): Promise<ListedPart[]> {
  const { connection, links, findings } = context
  const { table, parts } = listed
  const whole: ListedPart[] = []
  for (const [index, part] of parts.entries()) {
    context.enter(`files of ${table.name}, ${index + 1} of ${parts.length}`)
    const fault = await fileFault(connection, table, part, links.pathOf(part))
    if (fault === null) whole.push(part)
    else findings.add(table.name, partPath(part), fault)
    const misnamed = links.hasLinks ? await nameFault(links, part) : null
    if (misnamed !== null) findings.add(table.name, partPath(part), misnamed)
  }
  checkOverlaps(listed, findings)
  await checkStrangers(context, listed)
  return whole
}
