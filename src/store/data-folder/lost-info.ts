// What store.json said, where it is lost or damaged: the copy of the accounts has it, and segments of log and journal name the
// folder that they belong to. Without its identity they would be files of strangers.
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { planJournal } from '../../journal/segments/plan.ts'
import { nodeDisk } from '../../lib/disk/disk.ts'
import { queryOne } from '../duckdb/query.ts'
import { withScratchDatabase } from '../duckdb/scratch-database.ts'
import { LAKE_TABLES, type LakeTable } from '../duckdb/sql.ts'
import { locateLakeFiles } from '../lake/locate-files.ts'
import { selectAllRows, toReadableFiles } from '../lake/parquet-sql.ts'
import { LOG_HEADER_BYTES_MAX } from '../limits.ts'
import { PREFIX_BYTES, parsePayload, parseSegmentName } from '../log/segments/format.ts'
import { journalFolder, lakeFolder, logFolder } from '../paths.ts'
import { readAccounts } from '../state/accounts-copy.ts'
import { StoreState } from '../state/state.ts'
import { type FolderInfo, STORE_FORMAT } from './folder-info.ts'

/** Null: nothing in the folder names it, so that it may have any identity. */
export async function findLostInfo(dataDir: string, nowMs: number): Promise<FolderInfo | null> {
  const accounts = await readAccounts(dataDir, new StoreState({ cooldownKeptMs: 0, isSaved: false })).catch(
    () => null,
  )
  if (accounts?.folder) return accounts.folder
  const logId = (await findLogId(dataDir)) ?? (await findJournalId(dataDir))
  if (logId === null) return null
  const held = await findHeldKinds(dataDir).catch(() => ({ holdsSimulated: false, holdsReal: false }))
  return { format: STORE_FORMAT, logId, createdAtMs: nowMs, ...held }
}

/** The identity in the header of the newest segment whose header can be read. */
async function findLogId(dataDir: string): Promise<string | null> {
  const folder = logFolder(dataDir)
  const names = (await readdir(folder).catch(() => [])).filter((name) => parseSegmentName(name) !== null)
  for (const name of names.toSorted().toReversed()) {
    const id = await readLogId(join(folder, name)).catch(() => null)
    if (id !== null) return id
  }
  return null
}

async function readLogId(path: string): Promise<string | null> {
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(
      Buffer.alloc(LOG_HEADER_BYTES_MAX),
      0,
      LOG_HEADER_BYTES_MAX,
      0,
    )
    const line = buffer.subarray(0, bytesRead).toString('utf8').split('\n', 1)[0]
    const header = parsePayload(Buffer.from(line.slice(PREFIX_BYTES)))
    return header?.kind === 'header' ? header.log : null
  } finally {
    await file.close()
  }
}

async function findJournalId(dataDir: string): Promise<string | null> {
  const { segments } = await planJournal(nodeDisk, journalFolder(dataDir), null)
  return segments.findLast(({ header }) => header !== null)?.header?.folderId ?? null
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
