// A child process that makes sorted copies. Apart from the lake process, so that its memory is freed when it ends; of low
// priority, so that commits and reads come first. It ends with the lake process, whose next start removes half-written files.
import { assert } from '../../lib/assert.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { peakMemoryBytes } from '../../lib/memory.ts'
import { sendToParent, workForParent } from '../../lib/process/parent.ts'
import { findLakeTable } from '../duckdb/sql.ts'
import { hashFile } from '../lake/lake-files.ts'
import { MERGE_NICENESS } from '../limits.ts'
import type { MergeRequest, MergeResponse } from './merger.ts'
import { copySorted } from './sorted-copy.ts'

async function handleRequest({ table: name, ...work }: MergeRequest): Promise<MergeResponse> {
  try {
    const table = findLakeTable(name)
    assert(table !== undefined, 'the table of a merge is one of the lake')
    // Damaged rows must not get into a new file, whose hash would make them look right.
    for (const { path, sha256 } of work.files) {
      const isDamaged = typeof sha256 === 'string' && (await hashFile(path)) !== sha256
      if (isDamaged) return { ok: false, message: `${path} has other content than was written` }
    }
    const rows = await copySorted({ table, ...work })
    const sha256 = await hashFile(work.target)
    return { ok: true, rows, sha256, peakBytes: peakMemoryBytes() }
  } catch (error) {
    return { ok: false, message: errorMessage(error) }
  }
}

workForParent(MERGE_NICENESS)
process.on('message', async (request: MergeRequest) => {
  sendToParent(await handleRequest(request))
})
