// A child process that makes sorted copies. Apart from the lake process, so that its memory is freed when it ends; of low
// priority, so that commits and reads come first. It ends with the lake process, whose next start removes half-written files.

import { assert } from '../../lib/assert.ts'
import { peakMemoryBytes } from '../../lib/memory.ts'
import { doJobs } from '../../lib/process/parent.ts'
import { findLakeTable } from '../duckdb/sql.ts'
import { hashFile } from '../lake/lake-files.ts'
import { MERGE_NICENESS } from '../limits.ts'
import type { CopyResult, MergeRequest } from './merger.ts'
import { copySorted } from './sorted-copy.ts'

async function merge({ table: name, ...work }: MergeRequest): Promise<CopyResult> {
  const table = findLakeTable(name)
  assert(table !== undefined, 'the table of a merge is one of the lake')
  // Damaged rows must not get into a new file, whose hash would make them look right.
  for (const { path, sha256 } of work.files) {
    const isDamaged = typeof sha256 === 'string' && (await hashFile(path)) !== sha256
    if (isDamaged) throw new Error(`${path} has other content than was written`)
  }
  const rows = await copySorted({ table, ...work })
  return { rows, sha256: await hashFile(work.target), peakBytes: peakMemoryBytes() }
}

doJobs(MERGE_NICENESS, merge)
