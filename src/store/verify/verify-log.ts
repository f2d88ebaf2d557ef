// In: the log of a store that nobody writes, and the state that its lake stands at. Out: the commits beyond that, as a state
// and as rows; and what of the log is damaged. Never writes to the folder.
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
import type { StoreState } from '../state/state.ts'
import { loadState, stateFrom } from '../state/state-database.ts'
import type { VerifyContext } from './verify-files.ts'

/** What the log has that the lake does not. */
export class LogTail {
  /** As a start would have it. */
  readonly state: StoreState
  readonly #staged: readonly StagedRows[]
  readonly #dead: ReadonlyMap<string, number>

  constructor(state: StoreState, staged: readonly StagedRows[], dead: ReadonlyMap<string, number>) {
    this.state = state
    this.#staged = staged
    this.#dead = dead
  }

  /** SQL of its rows of a table. */
  selects(table: LakeTable): string[] {
    return this.#of(table).map((staged) => `(${selectStaged(table, staged)})`)
  }

  rows(table: LakeTable): number {
    return this.#of(table).reduce((sum, { rows }) => sum + rows, 0)
  }

  /** Rows that the table did not take, and that lie beside the lake. */
  deadRows(table: LakeTable): number {
    return this.#dead.get(table.name) ?? 0
  }

  #of(table: LakeTable): StagedRows[] {
    return this.#staged.filter((staged) => staged.table.name === table.name)
  }
}

/** Reads the log beyond the state of the attached store. `spillDir`: a folder of the caller's for its rows. */
export async function readTail(context: VerifyContext, dataDir: string, spillDir: string): Promise<LogTail> {
  const state = stateFrom(await loadState(context.connection), { cooldownKeptMs: Number.POSITIVE_INFINITY })
  const splitter = new RowSplitter(join(spillDir, 'tail'))
  const info = readFolderInfo(dataDir)
  const folder = logFolder(dataDir)
  if (info !== null && existsSync(folder)) {
    const report = await splitCommits({ folder, logId: info.logId }, state, splitter)
    for (const damage of report.damage) context.findings.add(null, damage.file, sentenceOf(damage))
    for (const name of readdirSync(folder).filter((each) => each.endsWith(DAMAGED_SUFFIX)))
      context.findings.add(
        null,
        join('log', name),
        'is a part of the log that was damaged; its whole records are in the lake',
      )
  }
  return new LogTail(state, splitter.finish(), deadRows(context, dataDir))
}

function sentenceOf({ kind, fromByte, toByte, missing }: LogDamage): string {
  const where = toByte > fromByte ? ` (bytes ${fromByte} to ${toByte})` : ''
  const lost = missing === null ? '' : `; the commits ${missing.from} to ${missing.to} are lost`
  return `the log is damaged: ${kind.replaceAll('_', ' ')}${where}${lost}`
}

/** Rows that no table took, by table: a fault of the server. */
function deadRows({ findings }: VerifyContext, dataDir: string): ReadonlyMap<string, number> {
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
