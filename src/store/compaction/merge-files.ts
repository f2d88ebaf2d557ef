// Merges small files of one table and date into a larger one.
import { dirname, join } from 'node:path'
import { assert } from '../../lib/assert.ts'
import { makeFolder, syncPath } from '../../lib/files.ts'
import { keepsNewestOnly, type LakeTable } from '../duckdb/sql.ts'
import type { Lake } from '../lake/lake.ts'
import {
  type DataFile,
  fileSizeBytes,
  publish,
  removeFile,
  temporaryPath,
  writeOrRemove,
} from '../lake/lake-files.ts'
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
  await makeFolder(dirname(path))
  const target = temporaryPath(path)
  const sources = files.map((file) => {
    const { schemaVersion, sha256 } = file
    return { path: pathOf(file), schemaVersion, sha256 }
  })
  const spillDir = join(spillFolder(dataDir), 'merge')
  const expected = files.reduce((sum, file) => sum + file.rows, 0)
  const { rows, sha256, peakBytes } = await writeOrRemove(target, () =>
    merger.copy({ table: table.name, files: sources, rows: expected, target, spillDir }),
  )
  if (!keepsNewestOnly(table) && rows !== expected) {
    await removeFile(target)
    throw new Error(`merging ${files.length} files of ${table.name} made ${rows} rows of ${expected}`)
  }
  failpoint('merge:copied')
  await syncPath(target)
  await publish(path)
  failpoint('merge:published')
  const writtenAtMs = Math.max(...files.map((file) => file.writtenAtMs))
  return { ...merged, rows, bytes: await fileSizeBytes(path), sha256, writtenAtMs, peakBytes }
}
