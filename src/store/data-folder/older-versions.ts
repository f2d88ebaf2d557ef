// In: a data folder of today's format. Out: a file in the place of the old format's database that keeps older versions from
// starting on it: they would take files of the lake that they do not know for leftovers, and delete them. Never deletes a database.
import { closeSync, existsSync, openSync, readFileSync, readSync, renameSync, writeFileSync } from 'node:fs'
import { logPathV1, storePathV1 } from '../paths.ts'

const SENTENCE =
  'This data folder has format 2: Mintlake 0.1 must not be started on it. This file keeps it from that; leave it here.\n'
/** A database of DuckDB says so there. */
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

/** A folder that a store of format 1 wrote, and that was not taken over yet. */
export const isV1 = (dataDir: string): boolean => isDatabase(storePathV1(dataDir))

/** Where the databases of format 1 are kept once they have been taken over. */
const keptPath = (path: string): string => path.replace(/\.duckdb(?=\.wal$|$)/, '-0.1.duckdb')

/** Puts the databases of format 1 aside, and the file in their place. May be called at any start. */
export function keepOlderVersionsOut(dataDir: string): void {
  const path = storePathV1(dataDir)
  if (isDatabase(path)) {
    for (const each of [path, `${path}.wal`, logPathV1(dataDir), `${logPathV1(dataDir)}.wal`])
      if (existsSync(each)) renameSync(each, keptPath(each))
  }
  if (!existsSync(path) || readFileSync(path, 'utf8') !== SENTENCE) writeFileSync(path, SENTENCE)
}
