// The sample of the lake that comes with the program, as a lake that can be queried: copied to a temporary folder, with a
// catalog there.
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { LAKE_SCHEMA_VERSION } from '../../schema/tables.ts'
import { lakeFolder } from '../paths.ts'
import { rewriteCatalog } from './lake-catalog.ts'

/** The folder of the sample of a schema version, by default of the current one. */
export const sampleFolder = (schemaVersion: number = LAKE_SCHEMA_VERSION): string =>
  fileURLToPath(new URL(`../../../data/samples/v${schemaVersion}`, import.meta.url))

/** Makes a data folder with the sample as its lake. `remove` deletes it. */
export async function makeSampleFolder(
  schemaVersion: number = LAKE_SCHEMA_VERSION,
): Promise<{ dataDir: string; remove(): Promise<void> }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'mintlake-sample-'))
  const remove = () => rm(dataDir, { recursive: true, force: true })
  try {
    await cp(sampleFolder(schemaVersion), lakeFolder(dataDir), { recursive: true })
    await rewriteCatalog(dataDir, 0)
    return { dataDir, remove }
  } catch (error) {
    await remove()
    throw error
  }
}
