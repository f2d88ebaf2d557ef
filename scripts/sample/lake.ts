// In: the frozen sample of the lake. Out: a reader of it, by the code that reads any lake: a catalog over files of schema
// version 1, in a folder of its own. Never changes the sample.
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DuckDBInstance } from '@duckdb/node-api'
import { CATALOG_TABLES, writeCatalog } from '../../src/store/catalog.ts'
import { fileBytes, listTable, partPath } from '../../src/store/lake-files.ts'
import { type LakeReader, openLakeReader } from '../../src/store/lake-reader.ts'
import type { ListedPart } from '../../src/store/manifest.ts'
import { lakeFolder } from '../../src/store/paths.ts'
import { literal } from '../../src/store/sql.ts'

export const SAMPLE_FOLDER = fileURLToPath(new URL('../../data/samples/v1', import.meta.url))
const SAMPLE_SCHEMA_VERSION = 1

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
async function partsOf(lakeDir: string, table: string): Promise<ListedPart[]> {
  const { parts } = await listTable(lakeDir, table)
  return Promise.all(
    parts.map(async (part) => {
      const path = join(lakeDir, partPath(part))
      return {
        ...part,
        rows: await rowsOf(path),
        bytes: await fileBytes(path),
        writtenAtMs: 0,
        schemaVersion: SAMPLE_SCHEMA_VERSION,
      }
    }),
  )
}

/** Opens the sample for reading, as a data folder of its own that `close` removes. */
export async function openSample(
  tables = CATALOG_TABLES,
): Promise<{ dataDir: string; reader: LakeReader; close(): void }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'mintlake-sample-'))
  const lakeDir = lakeFolder(dataDir)
  mkdirSync(lakeDir, { recursive: true })
  cpSync(SAMPLE_FOLDER, lakeDir, { recursive: true })
  const listed = []
  for (const table of tables) listed.push({ table, parts: await partsOf(lakeDir, table.name) })
  await writeCatalog(listed, 0, {
    lakeDir,
    pathOf: (part) => join(lakeDir, partPath(part)),
    reach: () => {},
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
