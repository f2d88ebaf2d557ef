// In: files in the lake's folders that its list does not name. Out: those to put on it; the others are out of the way:
// removed where their rows are in other files or in the store, else kept beside the lake. Never deletes a row that is
// nowhere else.
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { query } from './database.ts'
import { findFaults, rowsByFooter } from './file-check.ts'
import { contains, moveFile, overlaps, type Part, partPath, removeFile } from './lake-files.ts'
import { FILE_CHECK_MEMORY_LIMIT } from './limits.ts'
import { type ListedPart, liveParts, type NewPart, nextSeq } from './manifest.ts'
import type { LogLine } from './messages.ts'
import { inOwnDatabase } from './own-database.ts'
import { measured, rowsByDate } from './part-writer.ts'
import { SET_ASIDE_FOLDER } from './set-aside.ts'
import type { Shelf } from './shelf.ts'
import { type LakeTable, literal } from './sql.ts'

const FILE_CHECK = { threads: '1', memory_limit: FILE_CHECK_MEMORY_LIMIT }

export interface Orphans {
  /** Rows of a file; null when it is not there or is no whole Parquet file. */
  rowsOf(part: Part): Promise<number | null>
  /** @param isListLost the list was lost as a whole: whole files are put on it again. @returns files to list. */
  settle(
    connection: DuckDBConnection,
    table: LakeTable,
    parts: readonly Part[],
    isListLost: boolean,
  ): Promise<NewPart[]>
}

export interface OrphansOptions {
  lakeDir: string
  shelf: Shelf
  log(line: LogLine): void
}

const schemaVersionOf = (path: string): Promise<number> =>
  inOwnDatabase(':memory:', FILE_CHECK, async (connection) => {
    const sql = `SELECT max(schema_version)::INTEGER AS version FROM read_parquet(${literal(path)}, hive_partitioning=false)`
    return (await query<{ version: number }>(connection, sql))[0].version
  })

export function openOrphans({ lakeDir, shelf, log }: OrphansOptions): Orphans {
  async function rowsOf(part: Part): Promise<number | null> {
    return inOwnDatabase(':memory:', FILE_CHECK, (connection) =>
      rowsByFooter(connection, shelf.pathOf(part)),
    ).catch(() => null)
  }

  /**
   * Where rows of an orphan are besides: `wholly` in live files (it was merged, or is what they were merged into) or in
   * the store; `partly`: to list it would show some twice.
   */
  async function elsewhere(
    connection: DuckDBConnection,
    table: LakeTable,
    part: Part,
    kept: readonly NewPart[],
  ): Promise<'wholly' | 'partly' | 'no'> {
    const rows = (await rowsOf(part)) ?? 0
    const live = [...(await liveParts(connection, table.name)), ...kept]
    const others = live.filter((other) => overlaps(part, other))
    const inside = others.filter((other) => contains(part, other))
    const covered = inside.reduce((sum, other) => sum + other.rows, 0)
    if (others.some((other) => contains(other, part)) || (others.length > 0 && covered >= rows))
      return 'wholly'
    if (others.length > 0) return 'partly'
    const stored = (await rowsByDate(connection, table, part)).find(({ date }) => date === part.date)
    return stored !== undefined && stored.rows >= rows ? 'wholly' : 'no'
  }

  /** The file with its figures, where it is whole. */
  async function whole(part: Part): Promise<NewPart | null> {
    const rows = await rowsOf(part)
    if (rows === null) return null
    const path = shelf.pathOf(part)
    const found = await measured(part, rows, path)
    const listed: ListedPart = { ...found, sha256: null, schemaVersion: 1, writtenAtMs: 0 }
    if ((await findFaults([listed], shelf.pathOf, 'content')).length > 0) return null
    return { ...found, schemaVersion: await schemaVersionOf(path) }
  }

  async function remove(part: Part): Promise<void> {
    log({
      level: 'warn',
      message: 'removing a lake file that no list names',
      fields: { path: partPath(part) },
    })
    await removeFile(shelf.pathOf(part))
  }

  async function keepBeside(part: Part): Promise<void> {
    const path = partPath(part)
    const to = join(SET_ASIDE_FOLDER, path)
    const message = 'a lake file that no list names has rows that are nowhere else; kept beside the lake'
    log({ level: 'error', message, fields: { path, to } })
    await moveFile(shelf.pathOf(part), join(lakeDir, to))
  }

  async function settle(
    connection: DuckDBConnection,
    table: LakeTable,
    parts: readonly Part[],
    isListLost: boolean,
  ): Promise<NewPart[]> {
    const kept: NewPart[] = []
    const next = await nextSeq(connection, table.name)
    // The widest first: what it was merged from is in it.
    for (const part of [...parts].sort((a, b) => b.last - b.first - (a.last - a.first))) {
      const where = await elsewhere(connection, table, part, kept)
      // Market data waits in memory alone: what a crash left of its flush is all there is of it.
      const isWanted = isListLost || (table.origin === 'market' && part.first >= next)
      const found = isWanted && where === 'no' ? await whole(part) : null
      if (where === 'wholly') await remove(part)
      else if (found === null) await keepBeside(part)
      else {
        kept.push(found)
        const fields = { path: partPath(part), rows: found.rows }
        log({ level: 'warn', message: 'a lake file that no list named is on it again', fields })
      }
    }
    return kept
  }

  return { rowsOf, settle }
}
