// In: small files of one table and date. Out: one large file of the same rows, sorted, not on any list yet. Works in a
// database in memory of its own, on one thread and with little memory, so that no submission waits for it. Never
// removes a file, never leaves a half-written one under a name that counts.
import { dirname, join } from 'node:path'
import { assert } from '../lib/assert.ts'
import { query } from './database.ts'
import {
  fileBytes,
  makeFolder,
  type Part,
  publish,
  removeFile,
  syncFile,
  temporaryPath,
  wholeOrGone,
} from './lake-files.ts'
import { LAKE_ROW_GROUP_ROWS, MERGE_MEMORY_LIMIT, MERGE_THREADS } from './limits.ts'
import type { ListedPart } from './manifest.ts'
import type { CrashPoint } from './messages.ts'
import { inOwnDatabase } from './own-database.ts'
import { readableFiles, selectEveryRow, selectFromFiles } from './parquet-sql.ts'
import { type LakeTable, lakeOrder, literal } from './sql.ts'

export interface Merged extends Part {
  rows: number
  bytes: number
}

export interface MergeOptions {
  pathOf(part: Part): string
  spillDir: string
  reach(point: CrashPoint): void
}

/** Rows that a newer one follows need not be written again, unless readers want them. */
const drops = ({ latestBy, keepsHistory }: LakeTable): boolean =>
  latestBy !== undefined && keepsHistory !== true

/** Merges `parts` into one published file. */
export async function mergeParts(
  table: LakeTable,
  parts: readonly ListedPart[],
  { pathOf, spillDir, reach }: MergeOptions,
): Promise<Merged> {
  assert(parts.length > 0, 'there is something to merge')
  const merged: Part = {
    table: table.name,
    date: parts[0].date,
    first: Math.min(...parts.map(({ first }) => first)),
    last: Math.max(...parts.map(({ last }) => last)),
  }
  const path = pathOf(merged)
  await makeFolder(dirname(path))
  const rows = await wholeOrGone(temporaryPath(path), () =>
    copySorted(table, parts, pathOf, temporaryPath(path), spillDir),
  )
  const expected = parts.reduce((sum, part) => sum + part.rows, 0)
  if (!drops(table) && rows !== expected) {
    await removeFile(temporaryPath(path))
    throw new Error(`merging ${parts.length} files of ${table.name} made ${rows} rows of ${expected}`)
  }
  reach('merge:copied')
  await syncFile(temporaryPath(path))
  await publish(path)
  reach('merge:published')
  return { ...merged, rows, bytes: await fileBytes(path) }
}

async function copySorted(
  table: LakeTable,
  parts: readonly ListedPart[],
  pathOf: (part: Part) => string,
  target: string,
  spillDir: string,
): Promise<number> {
  const files = readableFiles(parts, pathOf)
  const settings = {
    threads: String(MERGE_THREADS),
    memory_limit: MERGE_MEMORY_LIMIT,
    temp_directory: join(spillDir, 'merge'),
    preserve_insertion_order: 'false',
  }
  return inOwnDatabase(':memory:', settings, async (connection) => {
    const copied = await query<{ Count: bigint }>(
      connection,
      `COPY (${drops(table) ? selectFromFiles(table, files) : selectEveryRow(table, files)} ORDER BY ${lakeOrder(table)}) TO ${literal(target)}
       (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE ${LAKE_ROW_GROUP_ROWS})`,
    )
    return Number(copied[0].Count)
  })
}
