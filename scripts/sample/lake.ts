// Opens the sample of the lake, of the current schema version or an older one, with a catalog in a temporary folder.
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DuckDBInstance } from '@duckdb/node-api'
import { LAKE_SCHEMA_VERSION } from '../../src/schema/tables.ts'
import { LAKE_TABLES, literal } from '../../src/store/duckdb/sql.ts'
import { writeCatalog } from '../../src/store/lake/catalog.ts'
import { createAndListTableFolder, fileSizeBytes, relativePath } from '../../src/store/lake/lake-files.ts'
import type { ListedFile } from '../../src/store/lake/manifest.ts'
import { lakeFolder } from '../../src/store/paths.ts'
import { type LakeReader, openLakeReader } from '../../src/store/query/lake-reader.ts'

/** The folder of the sample, by default of the current schema version. */
export const sampleFolder = (schemaVersion: number = LAKE_SCHEMA_VERSION): string =>
  fileURLToPath(new URL(`../../data/samples/v${schemaVersion}`, import.meta.url))

async function rowsOf(path: string): Promise<number> {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  try {
    const result = await connection.run(`SELECT num_rows::INT FROM parquet_file_metadata(${literal(path)})`)
    return Number((await result.getRowsJS())[0][0])
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/** The files of one table, as the store would list them. */
async function listSampleFiles(lakeDir: string, table: string, schemaVersion: number): Promise<ListedFile[]> {
  const { files } = await createAndListTableFolder(lakeDir, table)
  return Promise.all(
    files.map(async (file) => {
      const path = join(lakeDir, relativePath(file))
      return {
        ...file,
        rows: await rowsOf(path),
        bytes: await fileSizeBytes(path),
        sha256: null,
        writtenAtMs: 0,
        schemaVersion,
      }
    }),
  )
}

/** Opens a sample for reading, in a temporary data folder that `close` removes. */
export async function openSample(
  schemaVersion: number = LAKE_SCHEMA_VERSION,
): Promise<{ dataDir: string; reader: LakeReader; close(): void }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'mintlake-sample-'))
  const lakeDir = lakeFolder(dataDir)
  mkdirSync(lakeDir, { recursive: true })
  cpSync(sampleFolder(schemaVersion), lakeDir, { recursive: true })
  const listed = []
  for (const table of LAKE_TABLES)
    listed.push({ table, files: await listSampleFiles(lakeDir, table.name, schemaVersion) })
  await writeCatalog({ tables: listed, quarantined: [] }, 0, {
    lakeDir,
    pathOf: (file) => join(lakeDir, relativePath(file)),
    failpoint: () => {},
  })
  const reader = await openLakeReader({ dataDir })
  return {
    dataDir,
    reader,
    close() {
      reader.close()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
