// What is said of a state database that cannot be used, and how such a failure is told from others.
import { existsSync } from 'node:fs'
import { errorFirstLine, errorMessage } from '../../lib/error-text.ts'
import { howToRepair, invalid, StoreError } from '../errors.ts'
import { statePath } from '../paths.ts'
import { describeLockHolder, folderInUse } from './duckdb.ts'
import { queryRows } from './query.ts'
import { withScratchDatabase } from './scratch-database.ts'
import { identifier, literal } from './sql.ts'

/** What DuckDB says of a file that is flipped, cut, emptied, not its own, or a folder. */
const DAMAGE =
  /corrupt|checksum|not a valid DuckDB database|read enough bytes|Is a directory|replaying WAL|Serialization Error|INTERNAL Error/i

/** Files of the lake are checked, and set aside, by themselves. */
export const isDamage = (error: unknown): boolean =>
  DAMAGE.test(errorMessage(error)) && !/\.parquet|catalog\.duckdb/.test(errorMessage(error))

/** @param fault what is wrong, worded to follow the file's name */
export const damagedState = (dataDir: string, fault: string): StoreError =>
  invalid(
    `${statePath(dataDir)} ${fault}. ${howToRepair(dataDir)} makes it anew from the lake and the log, and says what is lost`,
  )

/** Whether a start failed with such an error, in this process or the lake process. */
export const isDamagedState = (dataDir: string, error: unknown): boolean =>
  error instanceof StoreError && error.code === 'invalid' && error.message.startsWith(statePath(dataDir))

const describe = (error: unknown): string => `is damaged (${errorFirstLine(error)})`

/** The error with which a start fails because of this one. */
export function explainDamage(dataDir: string, error: unknown): unknown {
  if (error instanceof StoreError && error.code !== 'unavailable') return error
  return isDamage(error) ? damagedState(dataDir, describe(error)) : error
}

/**
 * Reads every table of the state database, which changes nothing. Throws `unavailable` where a process has it open.
 * @returns what is wrong with it, worded to follow the file's name; null: nothing, or there is none
 */
export async function readWholeState(dataDir: string): Promise<string | null> {
  const path = statePath(dataDir)
  if (!existsSync(path)) return null
  try {
    await withScratchDatabase(':memory:', { threads: '1' }, async (connection) => {
      await connection.run(`ATTACH ${literal(path)} AS state (READ_ONLY)`)
      const sql = `SELECT table_name AS name FROM duckdb_tables() WHERE database_name = 'state'`
      // Checksums are of whole blocks; the hash makes DuckDB read each of them.
      for (const { name } of await queryRows(connection, sql, { name: 'string' }))
        await connection.run(`SELECT bit_xor(hash(each)) FROM state.${identifier(name)} AS each`)
    })
    return null
  } catch (error) {
    const by = describeLockHolder(errorFirstLine(error))
    if (by !== null) throw folderInUse(dataDir, by)
    if (!isDamage(error)) throw error
    return describe(error)
  }
}
