// Paths of the files and folders in a data folder.
import { join } from 'node:path'

/** Commits that the lake does not hold yet. */
export const logFolder = (dataDir: string): string => join(dataDir, 'log')
/** How far the log went, so that a lost end of it is noticed; see lib/disk/high-water-mark.ts. The same for the journal. */
export const logMarkPath = (dataDir: string): string => join(dataDir, 'log.mark')
export const journalMarkPath = (dataDir: string): string => join(dataDir, 'journal.mark')
/** Recorded market events that the lake or a restart still needs. */
export const journalFolder = (dataDir: string): string => join(dataDir, 'journal')
/** The market as it was after recorded events; see src/checkpoint. */
export const checkpointFolder = (dataDir: string): string => join(dataDir, 'checkpoints')
/** The list of the lake's files, and the state as of the last flush. */
export const statePath = (dataDir: string): string => join(dataDir, 'state.duckdb')
export const stateLogPath = (dataDir: string): string => `${statePath(dataDir)}.wal`
/** Agents, keys and bans once more, for a rebuilt state; see state/accounts-copy.ts. */
export const accountsPath = (dataDir: string): string => join(dataDir, 'accounts.log')
/** What was lost and that nobody has acknowledged; see data-folder/losses.ts. */
export const lossesPath = (dataDir: string): string => join(dataDir, 'losses.json')
/** Format, identity of the log, kinds of data; see data-folder/folder-info.ts. */
export const folderInfoPath = (dataDir: string): string => join(dataDir, 'store.json')
/** Which market is simulated; see src/ingest/simulated-market.ts. */
export const simulatedMarketPath = (dataDir: string): string => join(dataDir, 'simulator.json')
/** Rows that fit no table of the lake, as they were committed. */
export const deadLetterFolder = (dataDir: string): string => join(dataDir, 'dead-letters')
/** Where a flush writes rows for DuckDB to read. Emptied at each flush. */
export const flushFolder = (dataDir: string): string => join(dataDir, 'flush.tmp')
/** Where DuckDB spills data that does not fit in memory. */
export const spillFolder = (dataDir: string): string => join(dataDir, 'mintlake.tmp')
/** Where exports write files for clients, and spill. Emptied at the start. */
export const exportFolder = (dataDir: string): string => join(dataDir, 'export.tmp')
/** Where queries of HTTP clients spill. Emptied at the start. */
export const queryFolder = (dataDir: string): string => join(dataDir, 'query.tmp')
/** Whether a folder is an unfinished or a complete backup; see backup/note.ts. */
export const backupNotePath = (dataDir: string): string => join(dataDir, 'backup.json')
/** Where a server puts the copy that a backup is made from; the next backup replaces it. */
export const stagingFolder = (dataDir: string): string => join(dataDir, 'backup.tmp')
export const stagedCopyFolder = (dataDir: string): string => join(stagingFolder(dataDir), 'copy')
/** A pinned version of the lake; see query/lake-pin.ts. */
export const pinnedFolder = (dataDir: string, name: string): string => join(dataDir, 'snapshots', name)
export const lakeFolder = (dataDir: string): string => join(dataDir, 'lake')
/** What the next run is to know of the time; see data-folder/clock-file.ts. */
export const clockPath = (dataDir: string): string => join(dataDir, 'clock.json')
/** Reserved stream positions; see data-folder/positions.ts. */
export const positionsPath = (dataDir: string): string => join(dataDir, 'positions.json')

/** Small files of the server, any of which may be missing; a copy of a folder has them as well. */
export const noteFiles = (dataDir: string): string[] =>
  [positionsPath, clockPath, lossesPath, simulatedMarketPath].map((pathOf) => pathOf(dataDir))
