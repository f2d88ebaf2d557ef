// In: the data folder. Out: where the store keeps what. Never touches the disk.
import { join } from 'node:path'

/** The databases of a store of format 1; see state/import-v1.ts. */
export const storePathV1 = (dataDir: string): string => join(dataDir, 'mintlake.duckdb')
export const logPathV1 = (dataDir: string): string => join(dataDir, 'journal.duckdb')
/** What agents and operators have caused, and the lake does not have yet. */
export const logFolder = (dataDir: string): string => join(dataDir, 'log')
/** The list of the lake's files, and what the commits up to the last flush add up to. */
export const statePath = (dataDir: string): string => join(dataDir, 'state.duckdb')
export const stateLogPath = (dataDir: string): string => `${statePath(dataDir)}.wal`
/** What the folder is: its format, the log's identity, where its data came from. */
export const folderInfoPath = (dataDir: string): string => join(dataDir, 'store.json')
/** Rows that no table of the lake takes, as they were committed. */
export const deadLetterFolder = (dataDir: string): string => join(dataDir, 'dead-letters')
/** Where a flush keeps rows for DuckDB to read. Swept at each flush. */
export const flushFolder = (dataDir: string): string => join(dataDir, 'flush.tmp')
/** Where DuckDB spills what does not fit in memory. */
export const spillFolder = (dataDir: string): string => join(dataDir, 'mintlake.tmp')
/** Where exports keep what they write for a client, and spill. Swept at the start. */
export const exportFolder = (dataDir: string): string => join(dataDir, 'export.tmp')
/** A lake that was pinned under a name; see query/lake-pin.ts. */
export const pinnedFolder = (dataDir: string, name: string): string => join(dataDir, 'snapshots', name)
export const lakeFolder = (dataDir: string): string => join(dataDir, 'lake')
/** Up to where positions of the market are reserved; see positions.ts. */
export const positionsPath = (dataDir: string): string => join(dataDir, 'positions.json')
