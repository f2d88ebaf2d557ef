// A process that runs one query. Its database is in memory, reads no file but the lake's, and spills into a folder of its own.

import { writeFileSync } from 'node:fs'
import { MEGABYTE } from '../../lib/bytes.ts'
import { errorMessage } from '../../lib/error-text.ts'
import { makeFolderNow } from '../../lib/files.ts'
import { doJobs } from '../../lib/process/parent.ts'
import { requireSpace } from '../data-folder/disk-space.ts'
import { StoreError } from '../errors.ts'
import { failure, type LakeFailure, type LakeTask, toLakeFailure } from '../lake-task.ts'
import {
  QUERY_MEMORY_LIMIT,
  QUERY_NICENESS,
  QUERY_PROCESS_MB_MAX,
  QUERY_RESULT_BYTES_MAX,
  QUERY_SPILL_BYTES_MAX,
  QUERY_THREADS,
} from '../limits.ts'
import { withLakeReader } from '../query/lake-reader.ts'
import type { QueryAnswer } from '../types.ts'
import { encodeResult } from './encode-result.ts'
import type { QueryTask } from './queries.ts'

async function answer(task: QueryTask & LakeTask): Promise<QueryAnswer> {
  const { dataDir, folder, sql, format, rowsMax, diskReserveMb } = task
  requireSpace(dataDir, diskReserveMb, QUERY_SPILL_BYTES_MAX)
  makeFolderNow(folder)
  const options = {
    dataDir,
    memoryLimit: QUERY_MEMORY_LIMIT,
    threads: QUERY_THREADS,
    spillParent: folder,
    spillMax: `${QUERY_SPILL_BYTES_MAX}B`,
    rowsAtOnce: 1,
  }
  const startedAtMs = performance.now()
  return withLakeReader(options, async (reader) => {
    const bounds = { rowsMax, bytesMax: QUERY_RESULT_BYTES_MAX }
    const encoded = await encodeResult(await reader.query(sql), format, bounds)
    const missingFiles = reader.lost.length
    return { ...encoded, ms: Math.round(performance.now() - startedAtMs), missingFiles }
  })
}

/** What DuckDB and JavaScript say where memory, the folder for spilled data or the longest possible text is used up. */
const USED_UP =
  /^Out of Memory Error|bad_alloc|Allocation failure|max_temp_directory_size|Cannot create a string longer|Invalid (string|array) length/

const TOO_COSTLY = failure(
  'query_too_costly',
  `the query needs more memory than the ${QUERY_PROCESS_MB_MAX} MB, or more room on the disk than the ` +
    `${QUERY_SPILL_BYTES_MAX / MEGABYTE} MB, that it may have: read fewer rows or columns, or shorter texts`,
)

function toFailure(error: unknown): LakeFailure {
  const text = errorMessage(error)
  if (USED_UP.test(text)) return TOO_COSTLY
  if (error instanceof StoreError && error.code === 'invalid') return failure('query_failed', text)
  return toLakeFailure(error instanceof StoreError && error.code === 'not_found' ? text : error)
}

// Where the machine runs out of memory, Linux is to end this process rather than the server.
try {
  writeFileSync('/proc/self/oom_score_adj', '1000')
} catch {
  // Not Linux.
}
doJobs(QUERY_NICENESS, answer, toFailure)
