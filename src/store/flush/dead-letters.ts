// In: a file of rows that DuckDB would not take. Out: the file without the rows that are to blame, which lie in a folder of
// their own from then on, durable and whole. Such a row is a fault of this program: rows are checked before they are
// committed. Never drops a row, and never lets one keep the others from the lake.
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { syncPathNow } from '../../lib/files.ts'
import { isSystemError } from '../duckdb/database.ts'
import { deadLetterFolder } from '../paths.ts'
import type { StagedRows } from './row-splitter.ts'
import { selectStaged } from './staged-sql.ts'

/** Whether DuckDB reads these lines, each cell of them. Rejects where it is the disk or DuckDB that fails. */
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

/** The lines that DuckDB will not read, found by halving. */
async function deadLines(
  connection: DuckDBConnection,
  staged: StagedRows,
  lines: string[],
): Promise<string[]> {
  if (await isReadable(connection, staged, lines)) return []
  if (lines.length === 1) return lines
  const middle = lines.length >> 1
  return [
    ...(await deadLines(connection, staged, lines.slice(0, middle))),
    ...(await deadLines(connection, staged, lines.slice(middle))),
  ]
}

/** A flush that fails all the same is tried again, and finds them again: what is there already is not added twice. */
function keep(dataDir: string, { table, date }: StagedRows, lines: readonly string[]): void {
  const folder = deadLetterFolder(dataDir)
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `${table.name}.${date}.ndjson`)
  const there = new Set(existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [])
  const added = lines.filter((line) => !there.has(line))
  if (added.length > 0) appendFileSync(path, `${added.join('\n')}\n`)
  for (const each of [path, folder, dataDir]) syncPathNow(each)
}

/** Takes out of a staged file what DuckDB will not read. @returns the file as it is then, and how many rows left it. */
export async function withoutDeadRows(
  connection: DuckDBConnection,
  dataDir: string,
  staged: StagedRows,
): Promise<{ staged: StagedRows; dead: number }> {
  const lines = readFileSync(staged.path, 'utf8').trimEnd().split('\n')
  const dead = await deadLines(connection, staged, lines)
  if (dead.length === 0) return { staged, dead: 0 }
  keep(dataDir, staged, dead)
  const left = new Set(dead)
  const kept = lines.filter((line) => !left.has(line))
  writeFileSync(staged.path, kept.length === 0 ? '' : `${kept.join('\n')}\n`)
  return { staged: { ...staged, rows: kept.length }, dead: dead.length }
}
