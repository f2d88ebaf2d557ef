// In: sorted copies to make, as messages. Out: a reply to each. A process of its own, of low priority: what a merge takes of
// memory is given back, commits and reads come first, and if one of the two must go it is this one. Never outlives the
// server: half-written files are removed by whoever asked, or at the next start.
import { setPriority } from 'node:os'
import { assert } from '../../lib/assert.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { lakeTableOf } from '../duckdb/sql.ts'
import { contentHash } from '../lake/lake-files.ts'
import { MERGE_NICENESS } from '../limits.ts'
import type { MergeRequest, MergeResponse } from './merger.ts'
import { copySorted } from './sorted-copy.ts'

const KIBIBYTE = 1_024

async function answer({ table: name, ...work }: MergeRequest): Promise<MergeResponse> {
  try {
    const table = lakeTableOf(name)
    assert(table !== undefined, 'the table of a merge is one of the lake')
    // What was damaged must not become part of a new file, whose hash would then vouch for it.
    for (const { path, sha256 } of work.files) {
      const isDamaged = typeof sha256 === 'string' && (await contentHash(path)) !== sha256
      if (isDamaged) return { ok: false, message: `${path} has other content than was written` }
    }
    const rows = await copySorted({ table, ...work })
    const sha256 = await contentHash(work.target)
    return { ok: true, rows, sha256, peakBytes: process.resourceUsage().maxRSS * KIBIBYTE }
  } catch (error) {
    return { ok: false, message: errorMessage(error) }
  }
}

// Threads that begin after this inherit it.
setPriority(MERGE_NICENESS)
// The server is gone: nobody wants the file. DuckDB is at work in a thread, so nothing gentler is sure to end this.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
process.on('message', async (ask: MergeRequest) => {
  const reply = await answer(ask)
  if (process.connected) process.send?.(reply)
})
