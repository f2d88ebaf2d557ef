// Bars that are in several files of a date. The market of a start emits bars again that were in a file that was missing then: once
// that file is put back, it has them too.
import type { DuckDBConnection } from '@duckdb/node-api'
import { TABLES } from '../../schema/tables.ts'
import { queryRows, queryValue } from '../duckdb/query.ts'
import type { FaultyFile } from './file-check.ts'
import { overlaps } from './lake-files.ts'
import type { ListedFile } from './manifest.ts'
import { type ReadableFile, selectAllRows } from './parquet-sql.ts'

const TABLE = TABLES.bars
const KEY = 'mint, tf, t'

/** SQL of the bars of a file that none of the others has, each once. */
export const selectUnrepeated = (source: ReadableFile, others: readonly ReadableFile[]): string =>
  `FROM (${selectAllRows(TABLE, [source])}) ANTI JOIN (${selectAllRows(TABLE, others)}) USING (${KEY})
   QUALIFY row_number() OVER (PARTITION BY ${KEY} ORDER BY known_at) = 1`

/** How many bars of a file none of the others has. */
export const countUnrepeated = (
  connection: DuckDBConnection,
  source: ReadableFile,
  others: readonly ReadableFile[],
): Promise<number> =>
  queryValue(connection, `SELECT count(*)::DOUBLE FROM (${selectUnrepeated(source, others)})`, 'number')

/** The files, among the live ones of one date, with bars that were known before from another one or from themselves. */
export async function findRepeating(
  connection: DuckDBConnection,
  files: readonly ListedFile[],
  pathOf: (file: ListedFile) => string,
): Promise<FaultyFile[]> {
  const named = files.map((file, index) => {
    const source = { path: pathOf(file), schemaVersion: file.schemaVersion }
    return `SELECT ${index} AS file, ${KEY}, known_at FROM (${selectAllRows(TABLE, [source])})`
  })
  const rows = `(${named.join(' UNION ALL ')})`
  // Hashes are grouped first, which takes less memory.
  const repeated = await queryRows(
    connection,
    `SELECT file, count(*)::DOUBLE AS bars FROM (
       SELECT file, row_number() OVER (PARTITION BY ${KEY} ORDER BY known_at, file) AS nth FROM ${rows}
       WHERE hash(${KEY}) IN (SELECT hash FROM (SELECT hash(${KEY}) AS hash FROM ${rows}) GROUP BY 1 HAVING count(*) > 1))
     WHERE nth > 1 GROUP BY 1 ORDER BY 1`,
    { file: 'number', bars: 'number' },
  )
  return (
    repeated
      .map(({ file, bars }) => ({ file: files[file], fault: `has ${bars} bars that the lake has already` }))
      // One that shares row numbers with another could not be put back.
      .filter(({ file }) => !files.some((other) => other !== file && overlaps(file, other)))
  )
}
