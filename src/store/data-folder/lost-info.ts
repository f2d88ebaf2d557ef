// What store.json said, where it is lost or damaged: the copy of the accounts has it, and segments of log and journal name the
// folder that they belong to. Without its identity they would be files of strangers.
import { journalFormat } from '../../journal/segments/journal-format.ts'
import { nodeDisk } from '../../lib/disk/disk.ts'
import { SegmentReader } from '../../lib/segments/segment-reader.ts'
import type { SegmentFormat } from '../../lib/segments/types.ts'
import { queryOne } from '../duckdb/query.ts'
import { withScratchDatabase } from '../duckdb/scratch-database.ts'
import { LAKE_TABLES, type LakeTable } from '../duckdb/sql.ts'
import { locateLakeFiles } from '../lake/locate-files.ts'
import { selectAllRows, toReadableFiles } from '../lake/parquet-sql.ts'
import { logFormat } from '../log/segments/format.ts'
import { journalFolder, lakeFolder, logFolder } from '../paths.ts'
import { readAccounts } from '../state/accounts-copy.ts'
import { StoreState } from '../state/state.ts'
import { type FolderInfo, STORE_FORMAT } from './folder-info.ts'

/** Null: nothing in the folder names it, so that it may have any identity. */
export async function findLostInfo(dataDir: string, nowMs: number): Promise<FolderInfo | null> {
  const accounts = await readAccounts(
    dataDir,
    new StoreState({ cooldownKeptMs: 0, labelsDelayMs: 0 }, false),
  ).catch(() => null)
  if (accounts?.folder) return accounts.folder
  const logId =
    (await findOwner(logFolder(dataDir), logFormat)) ??
    (await findOwner(journalFolder(dataDir), journalFormat))
  if (logId === null) return null
  const held = await findHeldKinds(dataDir).catch(() => ({ holdsSimulated: false, holdsReal: false }))
  return { format: STORE_FORMAT, logId, createdAtMs: nowMs, ...held }
}

/** The identity in the header of the newest segment whose header can be read. */
async function findOwner(folder: string, format: SegmentFormat): Promise<string | null> {
  const { segments } = await new SegmentReader(nodeDisk, format).plan(folder, null)
  return segments.findLast(({ header }) => header !== null)?.header?.owner ?? null
}

/** Which kinds of data the lake's rows are of. */
function findHeldKinds(dataDir: string): Promise<Pick<FolderInfo, 'holdsSimulated' | 'holdsReal'>> {
  return withScratchDatabase(':memory:', { threads: '1' }, async (connection) => {
    const { content, pathOf } = await locateLakeFiles(connection, lakeFolder(dataDir))
    const isTold = ({ columns }: LakeTable): boolean => columns.some(({ name }) => name === 'simulated')
    const selects = LAKE_TABLES.filter(isTold).map((table) => {
      const files = content.tables.find((each) => each.table.name === table.name)?.files ?? []
      return `SELECT DISTINCT simulated FROM (${selectAllRows(table, toReadableFiles(files, pathOf))})`
    })
    return queryOne(
      connection,
      `SELECT coalesce(bool_or(simulated), false) AS "holdsSimulated", coalesce(bool_or(NOT simulated), false) AS "holdsReal"
       FROM (${selects.join(' UNION ALL ')})`,
      { holdsSimulated: 'boolean', holdsReal: 'boolean' },
    )
  })
}
