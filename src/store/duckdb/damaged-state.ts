// What is said of a state database that cannot be used, and how such a failure is told from others.
import { errorFirstLine, errorMessage } from '../../lib/error-text.ts'
import { StoreError } from '../errors.ts'
import { statePath } from '../paths.ts'

/** What DuckDB says of a file that is flipped, cut, emptied, not its own, or a folder. */
const DAMAGE =
  /corrupt|checksum|not a valid DuckDB database|read enough bytes|Is a directory|replaying WAL|Serialization Error|INTERNAL Error/i

/** Files of the lake are checked, and set aside, by themselves. */
export const isDamage = (error: unknown): boolean =>
  DAMAGE.test(errorMessage(error)) && !errorMessage(error).includes('.parquet')

/** @param fault what is wrong, worded to follow the file's name */
export const damagedState = (dataDir: string, fault: string): StoreError =>
  new StoreError(
    'invalid',
    `${statePath(dataDir)} ${fault}. Stop the server, and \`mintlake repair --data-dir ${dataDir}\` makes it anew from the lake and the log, and says what is lost; or restore a whole backup`,
  )

/** The error with which a start fails because of this one. */
export function explainDamage(dataDir: string, error: unknown): unknown {
  if (error instanceof StoreError || !isDamage(error)) return error
  return damagedState(dataDir, `is damaged (${errorFirstLine(error)})`)
}
