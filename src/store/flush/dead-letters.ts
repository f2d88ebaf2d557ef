// Moves rows that DuckDB cannot read out of a staged file into the dead-letters folder, so that they do not keep the other rows from
// the lake. Such a row is a bug of this program, because rows are validated before they are committed.
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { makeFolderNow, syncPathNow } from '../../lib/files.ts'
import { isSystemError } from '../duckdb/database.ts'
import { deadLetterFolder } from '../paths.ts'
import type { StagedRows } from './row-splitter.ts'
import { selectStaged } from './staged-sql.ts'

/** Whether DuckDB can read every cell of these lines. Rejects where DuckDB or the disk fails for another reason. */
async function isReadable(
  connection: DuckDBConnection,
  staged: StagedRows,
  lines: readonly string[],
): Promise<boolean> {
  const path = `${staged.path}.probe`
  writeFileSync(path, `${lines.join('\n')}\n`)
  try {
    await connection.run(`CREATE OR REPLACE TEMP TABLE probe AS ${selectStaged(staged.table, { path })}`)
    return true
  } catch (error) {
    if (isSystemError(error)) throw error
    return false
  } finally {
    await connection.run('DROP TABLE IF EXISTS temp.probe')
  }
}

/** Bisects the lines for those that DuckDB cannot read. */
async function findUnreadableLines(
  connection: DuckDBConnection,
  staged: StagedRows,
  lines: string[],
): Promise<string[]> {
  if (await isReadable(connection, staged, lines)) return []
  if (lines.length === 1) return lines
  const middle = lines.length >> 1
  return [
    ...(await findUnreadableLines(connection, staged, lines.slice(0, middle))),
    ...(await findUnreadableLines(connection, staged, lines.slice(middle))),
  ]
}

/** Durably appends lines that the dead-letters file does not hold yet: a retried flush finds the same lines again. */
export function appendDeadLetters(
  dataDir: string,
  { table, date }: Pick<StagedRows, 'table' | 'date'>,
  lines: readonly string[],
): void {
  const folder = deadLetterFolder(dataDir)
  makeFolderNow(folder)
  const path = join(folder, `${table.name}.${date}.ndjson`)
  const existing = new Set(existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [])
  const added = lines.filter((line) => !existing.has(line))
  if (added.length > 0) appendFileSync(path, `${added.join('\n')}\n`)
  for (const synced of [path, folder, dataDir]) syncPathNow(synced)
}

/** Moves the unreadable rows of a staged file to the dead letters. @returns the file without them, and how many there were */
export async function moveDeadRows(
  connection: DuckDBConnection,
  dataDir: string,
  staged: StagedRows,
): Promise<{ staged: StagedRows; deadRows: number }> {
  const lines = readFileSync(staged.path, 'utf8').trimEnd().split('\n')
  const deadLines = await findUnreadableLines(connection, staged, lines)
  if (deadLines.length === 0) return { staged, deadRows: 0 }
  appendDeadLetters(dataDir, staged, deadLines)
  const dead = new Set(deadLines)
  const kept = lines.filter((line) => !dead.has(line))
  writeFileSync(staged.path, kept.length === 0 ? '' : `${kept.join('\n')}\n`)
  return { staged: { ...staged, rows: kept.length }, deadRows: deadLines.length }
}

/** The files of dead letters, each with its table and rows. */
export function countDeadLetters(dataDir: string): { name: string; table: string; rows: number }[] {
  const folder = deadLetterFolder(dataDir)
  if (!existsSync(folder)) return []
  return readdirSync(folder).map((name) => {
    const lines = readFileSync(join(folder, name), 'utf8').split('\n')
    return { name, table: name.split('.', 1)[0], rows: lines.filter((line) => line !== '').length }
  })
}
