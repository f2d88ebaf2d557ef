// Files in the lake's folders that are not on the manifest, as a crash or a lost manifest leaves them. A file is deleted only
// where its rows are elsewhere; otherwise it is listed again, or kept in the folder of quarantined files.
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import type { LakeTable } from '../duckdb/sql.ts'
import type { LogLine } from '../types.ts'
import {
  contains,
  type DataFile,
  listTableFolder,
  moveFile,
  overlaps,
  relativePath,
  removeFile,
} from './lake-files.ts'
import { type Links, SET_ASIDE_FOLDER } from './links.ts'
import { listLiveFiles, type NewFile } from './manifest.ts'
import { countRows, measureFound } from './whole-copy.ts'

/**
 * Where the list of files is from. `catalog`: the manifest was lost, and is again what the catalog has. `folders`: the catalog was
 * lost too, and undamaged files that lie in the lake's folders are listed again.
 */
export type ListSource = 'manifest' | 'catalog' | 'folders'

export interface OrphanOptions {
  connection: DuckDBConnection
  table: LakeTable
  links: Links
  log(line: LogLine): void
  listFrom: ListSource
  /** Rows beyond this number belong to an interrupted flush; the log or the market still has them, or lost them. */
  flushedSeq: number
}

/** Which rows of an orphan other files have, or the log still has. Listing one with `some` would duplicate rows. */
type RowsElsewhere = 'all' | 'some' | 'none'

/** @param recovered orphans that will be listed again */
async function findRowsElsewhere(
  orphan: DataFile,
  recovered: readonly NewFile[],
  { connection, table, links, listFrom, flushedSeq }: OrphanOptions,
): Promise<RowsElsewhere> {
  if (listFrom === 'manifest' && orphan.first > flushedSeq) return 'all'
  const rows = (await countRows(links.pathOf(orphan))) ?? 0
  const others = [...(await listLiveFiles(connection, table.name)), ...recovered].filter((other) =>
    overlaps(orphan, other),
  )
  if (others.length === 0) return 'none'
  // Either this file was merged into another, or files that were merged into it are listed.
  const isInside = others.some((other) => contains(other, orphan))
  const rowsInside = others
    .filter((other) => contains(orphan, other))
    .reduce((sum, other) => sum + other.rows, 0)
  return isInside || rowsInside >= rows ? 'all' : 'some'
}

async function deleteOrphan(orphan: DataFile, { links, log }: OrphanOptions): Promise<void> {
  const message = 'removing a lake file that no list names'
  log({ level: 'warn', message, fields: { path: relativePath(orphan) } })
  await removeFile(links.pathOf(orphan))
}

const MOVED = 'moved out of the readers’ sight'
const NO_OTHER = `a lake file that no list names has rows that no other file has; ${MOVED}`

/** What an orphan is that is neither deleted nor listed. */
function describeOrphan(orphan: DataFile, elsewhere: RowsElsewhere, options: OrphanOptions): string {
  if (elsewhere === 'all') return `a lake file that was merged, by all that is known, is on no list; ${MOVED}`
  const isOfFlush = options.listFrom === 'catalog' && orphan.first > options.flushedSeq
  return isOfFlush
    ? `a lake file of a flush that had not ended is written anew from the log; ${MOVED}`
    : NO_OTHER
}

async function quarantineOrphan(
  orphan: DataFile,
  elsewhere: RowsElsewhere,
  options: OrphanOptions,
): Promise<void> {
  const { links, log } = options
  const path = relativePath(orphan)
  const to = join(SET_ASIDE_FOLDER, path)
  const level = elsewhere === 'all' ? 'warn' : 'error'
  log({ level, message: describeOrphan(orphan, elsewhere, options), fields: { path, to } })
  await moveFile(links.pathOf(orphan), links.setAsidePathOf(orphan))
}

/** Deletes, quarantines or recovers the orphans of one table. @returns those to list */
export async function recoverOrphans(
  orphans: readonly DataFile[],
  options: OrphanOptions,
): Promise<NewFile[]> {
  const recovered: NewFile[] = []
  const isWanted = options.listFrom === 'folders' ? await findWanted(options) : () => false
  // Widest range first: a merged file comes before those that it was merged from.
  for (const orphan of [...orphans].sort((a, b) => b.last - b.first - (a.last - a.first))) {
    const elsewhere = await findRowsElsewhere(orphan, recovered, options)
    const isToList = isWanted(orphan) && elsewhere === 'none'
    const file = isToList ? await measureFound(orphan, options.links.pathOf(orphan)) : null
    // The file that has its rows may turn out to be damaged: where the manifest was lost, nothing is deleted.
    if (elsewhere === 'all' && options.listFrom === 'manifest') await deleteOrphan(orphan, options)
    else if (file === null) await quarantineOrphan(orphan, elsewhere, options)
    else {
      recovered.push(file)
      const fields = { path: relativePath(file), rows: file.rows }
      options.log({ level: 'warn', message: 'a lake file that no list named is listed again', fields })
    }
  }
  return recovered
}

/**
 * Whether a file was live, as far as the folders tell: live ones have a link in the folder of their date, those that were merged or
 * have expired have none. Where no file has a link, as in some copies of a lake, any may have been.
 */
async function findWanted({ links, table }: OrphanOptions): Promise<(orphan: DataFile) => boolean> {
  if (!links.hasLinks) return () => true
  const linked = new Set((await listTableFolder(links.lakeDir, table.name)).files.map(relativePath))
  return (orphan) => linked.size === 0 || linked.has(relativePath(orphan))
}
