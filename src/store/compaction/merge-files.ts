// Merges small files of one table and date into a larger one.
import { join } from 'node:path'
import { assert } from '../../lib/assert.ts'
import { keepsNewestOnly, type LakeTable } from '../duckdb/sql.ts'
import type { Lake } from '../lake/lake.ts'
import { type DataFile, fileSizeBytes, writeDurably } from '../lake/lake-files.ts'
import type { ListedFile } from '../lake/manifest.ts'
import { spillFolder } from '../paths.ts'
import type { CopyResult, Merger } from './merger.ts'

/**
 * Merges files of one table and date into one durable file. Listing it is for the caller; the old files stay. It counts as written
 * when the newest of them was: rows grow no younger by being merged.
 */
export async function mergeFiles(
  { dataDir, failpoint, pathOf }: Pick<Lake, 'dataDir' | 'failpoint' | 'pathOf'>,
  merger: Merger,
  table: LakeTable,
  files: readonly ListedFile[],
): Promise<DataFile & CopyResult & Pick<ListedFile, 'bytes' | 'writtenAtMs'>> {
  assert(files.length > 0, 'there is something to merge')
  const merged: DataFile = {
    table: table.name,
    date: files[0].date,
    first: Math.min(...files.map(({ first }) => first)),
    last: Math.max(...files.map(({ last }) => last)),
  }
  const path = pathOf(merged)
  const sources = files.map((file) => ({ ...file, path: pathOf(file) }))
  const spillDir = join(spillFolder(dataDir), 'merge')
  const expected = files.reduce((sum, file) => sum + file.rows, 0)
  const copied = await writeDurably(
    path,
    async (target) => {
      const made = await merger.copy({ table: table.name, files: sources, rows: expected, target, spillDir })
      if (keepsNewestOnly(table) || made.rows === expected) return made
      throw new Error(`merging ${files.length} files of ${table.name} made ${made.rows} rows of ${expected}`)
    },
    (step) => failpoint(`merge:${step}`),
  )
  const writtenAtMs = Math.max(...files.map((file) => file.writtenAtMs))
  return { ...merged, ...copied, bytes: await fileSizeBytes(path), writtenAtMs }
}
