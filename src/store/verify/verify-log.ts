// Reads what the log has beyond the lake, as a state and as rows. No server may be running.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readFolderInfo } from '../data-folder/folder-info.ts'
import type { LakeTable } from '../duckdb/sql.ts'
import { splitCommits } from '../flush/log-rows.ts'
import { RowSplitter, type StagedRows } from '../flush/row-splitter.ts'
import { selectStaged } from '../flush/staged-sql.ts'
import { DAMAGED_SUFFIX } from '../log/segments/format.ts'
import type { LogDamage } from '../log/types.ts'
import { deadLetterFolder, logFolder } from '../paths.ts'
import { loadState } from '../state/read-state.ts'
import type { StoreState } from '../state/state.ts'
import type { VerifyContext } from './verify-files.ts'

/** The commits of the log that the lake does not have. */
export class LogTail {
  /** The sums that a restart would have. */
  readonly state: StoreState
  readonly #stagedRows: readonly StagedRows[]
  readonly #dead: ReadonlyMap<string, number>

  constructor(state: StoreState, staged: readonly StagedRows[], dead: ReadonlyMap<string, number>) {
    this.state = state
    this.#stagedRows = staged
    this.#dead = dead
  }

  /** SELECTs of its rows of a table. */
  selects(table: LakeTable): string[] {
    return this.#staged(table).map((staged) => `(${selectStaged(table, staged)})`)
  }

  rows(table: LakeTable): number {
    return this.#staged(table).reduce((sum, { rows }) => sum + rows, 0)
  }

  /** How many rows of a table are dead letters. */
  deadRows(table: LakeTable): number {
    return this.#dead.get(table.name) ?? 0
  }

  #staged(table: LakeTable): StagedRows[] {
    return this.#stagedRows.filter((staged) => staged.table.name === table.name)
  }
}

/** Reads the log beyond the state of the attached store, and reports its damage. @param spillDir for the rows read */
export async function readLogTail(
  context: VerifyContext,
  dataDir: string,
  spillDir: string,
): Promise<LogTail> {
  const state = await loadState(context.connection, { cooldownKeptMs: 0 })
  const splitter = new RowSplitter(join(spillDir, 'tail'))
  const info = readFolderInfo(dataDir)
  const folder = logFolder(dataDir)
  if (info !== null && existsSync(folder)) {
    const report = await splitCommits({ folder, logId: info.logId }, state, splitter)
    for (const damage of report.damage) context.findings.add(null, damage.file, describeDamage(damage))
    for (const name of readdirSync(folder).filter((each) => each.endsWith(DAMAGED_SUFFIX)))
      context.findings.add(
        null,
        join('log', name),
        'is a damaged part of the log; its undamaged records are in the lake',
      )
  }
  return new LogTail(state, splitter.finish(), countDeadRows(context, dataDir))
}

function describeDamage({ kind, fromByte, toByte, missing }: LogDamage): string {
  const where = toByte > fromByte ? ` (bytes ${fromByte} to ${toByte})` : ''
  const lost = missing === null ? '' : `; the commits ${missing.from} to ${missing.to} are lost`
  return `the log is damaged: ${kind.replaceAll('_', ' ')}${where}${lost}`
}

/** Counts dead letters by table, and reports them: a server wrote rows that do not fit their table. */
function countDeadRows({ findings }: VerifyContext, dataDir: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  const folder = deadLetterFolder(dataDir)
  if (!existsSync(folder)) return counts
  for (const name of readdirSync(folder)) {
    const [table] = name.split('.')
    const rows = readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .filter((line) => line !== '').length
    counts.set(table, (counts.get(table) ?? 0) + rows)
    findings.add(table, join('dead-letters', name), `holds ${rows} rows that did not fit the table`)
  }
  return counts
}
