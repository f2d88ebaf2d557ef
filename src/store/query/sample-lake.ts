// The sample of the lake that comes with the program, as a lake that can be queried: copied to a temporary folder, with a
// catalog there.
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { LAKE_SCHEMA_VERSION } from '../../schema/tables.ts'
import { countParquetRows } from '../duckdb/query.ts'
import { withScratchDatabase } from '../duckdb/scratch-database.ts'
import { LAKE_TABLES } from '../duckdb/sql.ts'
import { NO_EVENT_METADATA } from '../events/event-metadata.ts'
import { writeCatalog } from '../lake/catalog.ts'
import { fileSizeBytes, listTableFolder, relativePath } from '../lake/lake-files.ts'
import { groupByTable, type ListedFile } from '../lake/manifest.ts'
import { lakeFolder } from '../paths.ts'

/** The folder of the sample of a schema version, by default of the current one. */
export const sampleFolder = (schemaVersion: number = LAKE_SCHEMA_VERSION): string =>
  fileURLToPath(new URL(`../../../data/samples/v${schemaVersion}`, import.meta.url))

/** The files of the sample, as the store would list them. */
const listFiles = (lakeDir: string, schemaVersion: number): Promise<ListedFile[]> =>
  withScratchDatabase(':memory:', { threads: '1' }, async (connection) => {
    const listed: ListedFile[] = []
    for (const { name } of LAKE_TABLES) {
      for (const file of (await listTableFolder(lakeDir, name)).files) {
        const path = join(lakeDir, relativePath(file))
        const [rows, bytes] = [await countParquetRows(connection, path), await fileSizeBytes(path)]
        listed.push({ ...file, rows, bytes, sha256: null, writtenAtMs: 0, schemaVersion })
      }
    }
    return listed
  })

/** Makes a data folder with the sample as its lake. `remove` deletes it. */
export async function makeSampleFolder(
  schemaVersion: number = LAKE_SCHEMA_VERSION,
): Promise<{ dataDir: string; remove(): Promise<void> }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'mintlake-sample-'))
  const remove = () => rm(dataDir, { recursive: true, force: true })
  try {
    const lakeDir = lakeFolder(dataDir)
    await mkdir(lakeDir)
    await cp(sampleFolder(schemaVersion), lakeDir, { recursive: true })
    const tables = groupByTable(await listFiles(lakeDir, schemaVersion))
    await writeCatalog({ tables, quarantined: [], recorded: NO_EVENT_METADATA, flushedLsn: 0 }, 0, {
      lakeDir,
      pathOf: (file) => join(lakeDir, relativePath(file)),
    })
    return { dataDir, remove }
  } catch (error) {
    await remove()
    throw error
  }
}
