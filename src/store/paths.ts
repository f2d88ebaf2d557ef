// In: the data folder. Out: where the store keeps what. Never touches the disk.
import { join } from 'node:path'

export const databasePath = (dataDir: string): string => join(dataDir, 'mintlake.duckdb')
export const databaseLogPath = (dataDir: string): string => `${databasePath(dataDir)}.wal`
/** Rows that are not in their tables yet; see journal.ts. */
export const journalPath = (dataDir: string): string => join(dataDir, 'journal.duckdb')
export const journalLogPath = (dataDir: string): string => `${journalPath(dataDir)}.wal`
/** Where DuckDB spills what does not fit in memory. */
export const spillFolder = (dataDir: string): string => join(dataDir, 'mintlake.tmp')
/** Where exports keep what they write for a client, and spill. Swept at the start. */
export const exportFolder = (dataDir: string): string => join(dataDir, 'export.tmp')
export const lakeFolder = (dataDir: string): string => join(dataDir, 'lake')
/** Up to where positions of the market are reserved; see positions.ts. */
export const positionsPath = (dataDir: string): string => join(dataDir, 'positions.json')
