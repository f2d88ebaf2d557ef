// In: files in the lake's folders that its list does not name. Out: those to put on it; the others are out of the way:
// removed where their rows are elsewhere, else kept beside the lake. Never deletes a row that is nowhere else.
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { inScratchDatabase } from '../duckdb/scratch-database.ts'
import type { LakeTable } from '../duckdb/sql.ts'
import { FILE_CHECK_MEMORY_LIMIT } from '../limits.ts'
import type { LogLine } from '../process/protocol.ts'
import { findFaults, rowsByFooter, schemaVersionIn } from './file-check.ts'
import { measured } from './file-writer.ts'
import { contains, moveFile, overlaps, type Part, partPath, removeFile } from './lake-files.ts'
import type { Links } from './links.ts'
import { type ListedPart, liveParts, type NewPart } from './manifest.ts'
import { SET_ASIDE_FOLDER } from './set-aside.ts'

export interface UnlistedOptions {
  connection: DuckDBConnection
  table: LakeTable
  lakeDir: string
  links: Links
  log(line: LogLine): void
  /** The list was lost as a whole: whole files are put on it again. */
  isListLost: boolean
  /** Rows beyond it, by commit or number, were of a flush that was cut off: they come again from where they came. */
  flushedSeq: number
}

const FILE_CHECK = { threads: '1', memory_limit: FILE_CHECK_MEMORY_LIMIT }

/** Rows of a file; null when it is no whole Parquet file. */
const rowsIn = (path: string): Promise<number | null> =>
  inScratchDatabase(':memory:', FILE_CHECK, (connection) => rowsByFooter(connection, path)).catch(() => null)

/**
 * Where the rows of a file are besides: `wholly` in live files (it was merged, or is what they were merged into), or where
 * they came from; `partly`: to list it would show some twice.
 */
async function elsewhere(
  part: Part,
  kept: readonly NewPart[],
  { connection, table, links, isListLost, flushedSeq }: UnlistedOptions,
): Promise<'wholly' | 'partly' | 'no'> {
  if (!isListLost && part.first > flushedSeq) return 'wholly'
  const rows = (await rowsIn(links.pathOf(part))) ?? 0
  const live = [...(await liveParts(connection, table.name)), ...kept]
  const others = live.filter((other) => overlaps(part, other))
  const inside = others.filter((other) => contains(part, other))
  const covered = inside.reduce((sum, other) => sum + other.rows, 0)
  if (others.some((other) => contains(other, part)) || (others.length > 0 && covered >= rows)) return 'wholly'
  return others.length > 0 ? 'partly' : 'no'
}

/** The file with its figures, where it is whole. */
async function whole(part: Part, links: Links): Promise<NewPart | null> {
  const path = links.pathOf(part)
  const rows = await rowsIn(path)
  if (rows === null) return null
  const found = await measured(part, rows, path)
  const listed: ListedPart = { ...found, sha256: null, schemaVersion: 1, writtenAtMs: 0 }
  if ((await findFaults([listed], links.pathOf, 'content')).length > 0) return null
  const schemaVersion =
    (await inScratchDatabase(':memory:', FILE_CHECK, (connection) => schemaVersionIn(connection, path))) ?? 1
  // Files written before a version was released may lack what came to it until then: they are read as those of an older one.
  const asSaid = await findFaults([{ ...listed, schemaVersion }], links.pathOf, 'end')
  return { ...found, schemaVersion: asSaid.length === 0 ? schemaVersion : 1 }
}

async function remove(part: Part, { links, log }: UnlistedOptions): Promise<void> {
  const message = 'removing a lake file that no list names'
  log({ level: 'warn', message, fields: { path: partPath(part) } })
  await removeFile(links.pathOf(part))
}

async function keepBeside(part: Part, { lakeDir, links, log }: UnlistedOptions): Promise<void> {
  const path = partPath(part)
  const to = join(SET_ASIDE_FOLDER, path)
  const message = 'a lake file that no list names has rows that are nowhere else; kept beside the lake'
  log({ level: 'error', message, fields: { path, to } })
  await moveFile(links.pathOf(part), join(lakeDir, to))
}

/** Settles files of one table. @returns those to put on the list. */
export async function recoverUnlisted(parts: readonly Part[], options: UnlistedOptions): Promise<NewPart[]> {
  const kept: NewPart[] = []
  // The widest first: what it was merged from is in it.
  for (const part of [...parts].sort((a, b) => b.last - b.first - (a.last - a.first))) {
    const where = await elsewhere(part, kept, options)
    const found = options.isListLost && where === 'no' ? await whole(part, options.links) : null
    if (where === 'wholly') await remove(part, options)
    else if (found === null) await keepBeside(part, options)
    else {
      kept.push(found)
      const fields = { path: partPath(part), rows: found.rows }
      options.log({ level: 'warn', message: 'a lake file that no list named is on it again', fields })
    }
  }
  return kept
}
