// Reads what the log has beyond the lake, as a state and as rows. No server may be running.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { nodeDisk } from '../../lib/disk/disk.ts'
import { readHighWaterMark } from '../../lib/disk/high-water-mark.ts'
import { readFolderInfo } from '../data-folder/folder-info.ts'
import type { LakeTable } from '../duckdb/sql.ts'
import { countDeadLetters } from '../flush/dead-letters.ts'
import { splitCommits } from '../flush/log-rows.ts'
import { RowSplitter, type StagedRows } from '../flush/row-splitter.ts'
import { selectStaged } from '../flush/staged-sql.ts'
import { DAMAGED_SUFFIX } from '../log/segments/format.ts'
import { describeLogDamage, toLoss } from '../log-losses.ts'
import { logFolder, logMarkPath } from '../paths.ts'
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
  const state = await loadState(context.connection, { cooldownKeptMs: 0, labelsDelayMs: 0 })
  const splitter = new RowSplitter(join(spillDir, 'tail'))
  const info = readFolderInfo(dataDir)
  const folder = logFolder(dataDir)
  const logId = info?.logId ?? ''
  const knownLsn = await readHighWaterMark(nodeDisk, logMarkPath(dataDir), logId)
  if (info !== null && !existsSync(folder) && knownLsn > state.lsn)
    context.findings.add(null, 'log', `is missing; the commits ${state.lsn + 1} to ${knownLsn} are lost`)
  if (info !== null && existsSync(folder)) {
    const report = await splitCommits({ folder, logId, knownLsn }, state, splitter)
    for (const damage of report.damage)
      context.findings.addUnless(
        context.losses.isAcknowledged(toLoss(damage)),
        null,
        damage.file,
        describeLogDamage(damage),
      )
    for (const name of readdirSync(folder).filter((each) => each.endsWith(DAMAGED_SUFFIX)))
      context.findings.addUnless(
        context.losses.isAcknowledged({ kind: 'log', file: join('log', name) }),
        null,
        join('log', name),
        'is a damaged part of the log; its undamaged records are in the lake',
      )
  }
  return new LogTail(state, splitter.finish(), countDeadRows(context, dataDir))
}

/** Counts dead letters by table, and reports them: a server wrote rows that do not fit their table. */
function countDeadRows({ losses, findings }: VerifyContext, dataDir: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { name, table, rows } of countDeadLetters(dataDir)) {
    counts.set(table, (counts.get(table) ?? 0) + rows)
    const file = join('dead-letters', name)
    findings.addUnless(
      losses.isAcknowledged({ kind: 'dead_letters', file }),
      table,
      file,
      `holds ${rows} rows that did not fit the table`,
    )
  }
  return counts
}
