// Keeps Mintlake 0.1 (format 1) from starting on a newer data folder: it would delete files of the lake that it does not know. A
// text file in the place of its database makes it fail.
import { closeSync, existsSync, openSync, readFileSync, readSync, renameSync, writeFileSync } from 'node:fs'
import { logPathV1, storePathV1 } from '../paths.ts'

const NOTICE =
  'This data folder has format 2: Mintlake 0.1 must not be started on it. This file keeps it from that; leave it here.\n'
/** Every DuckDB database has this text at this offset. */
const MAGIC = { offset: 8, text: 'DUCK' }

function isDatabase(path: string): boolean {
  if (!existsSync(path)) return false
  const file = openSync(path, 'r')
  try {
    const found = Buffer.alloc(MAGIC.text.length)
    readSync(file, found, 0, found.length, MAGIC.offset)
    return found.toString('latin1') === MAGIC.text
  } finally {
    closeSync(file)
  }
}

/** Whether the folder has a store of format 1 that was not imported yet. */
export const isV1 = (dataDir: string): boolean => isDatabase(storePathV1(dataDir))

/** Where a database of format 1 is kept after its import. */
const archivedPath = (path: string): string => path.replace(/\.duckdb(?=\.wal$|$)/, '-0.1.duckdb')

/** Renames the databases of format 1, and writes the text file in their place. Safe to repeat at every start. */
export function keepOlderVersionsOut(dataDir: string): void {
  const path = storePathV1(dataDir)
  if (isDatabase(path)) {
    for (const each of [path, `${path}.wal`, logPathV1(dataDir), `${logPathV1(dataDir)}.wal`])
      if (existsSync(each)) renameSync(each, archivedPath(each))
  }
  if (!existsSync(path) || readFileSync(path, 'utf8') !== NOTICE) writeFileSync(path, NOTICE)
}
