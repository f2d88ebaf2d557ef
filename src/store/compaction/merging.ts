// In: small files of one table and date. Out: one large file of the same rows, sorted, not on any list yet. Never removes a
// file, never leaves a half-written one under a name that counts.
import { dirname } from 'node:path'
import { assert } from '../../lib/assert.ts'
import { makeFolder, syncPath } from '../../lib/files.ts'
import { type LakeTable, mayBeReplaced } from '../duckdb/sql.ts'
import { fileBytes, type Part, publish, removeFile, temporaryPath, wholeOrGone } from '../lake/lake-files.ts'
import type { ListedPart } from '../lake/manifest.ts'
import type { CrashPoint } from '../process/protocol.ts'
import type { Merger } from './merger.ts'

export interface Merged extends Part {
  rows: number
  bytes: number
  sha256: string
  /** The most memory that merging has taken so far, in its own process. */
  peakBytes: number
}

export interface MergeOptions {
  pathOf(part: Part): string
  merger: Merger
  /** A folder of the merger's own. */
  spillDir: string
  failpoint(point: CrashPoint): void
}

/** Merges `parts` into one published file. */
export async function mergeParts(
  table: LakeTable,
  parts: readonly ListedPart[],
  { pathOf, merger, spillDir, failpoint }: MergeOptions,
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
  const target = temporaryPath(path)
  const files = parts.map((part) => {
    const { schemaVersion, sha256 } = part
    return { path: pathOf(part), schemaVersion, sha256 }
  })
  const expected = parts.reduce((sum, part) => sum + part.rows, 0)
  const { rows, sha256, peakBytes } = await wholeOrGone(target, () =>
    merger.copy({ table: table.name, files, rows: expected, target, spillDir }),
  )
  if (!mayBeReplaced(table) && rows !== expected) {
    await removeFile(target)
    throw new Error(`merging ${parts.length} files of ${table.name} made ${rows} rows of ${expected}`)
  }
  failpoint('merge:copied')
  await syncPath(target)
  await publish(path)
  failpoint('merge:published')
  return { ...merged, rows, bytes: await fileBytes(path), sha256, peakBytes }
}
