// Opens the sample of the lake for reading.
import { LAKE_SCHEMA_VERSION } from '../../src/schema/tables.ts'
import { type LakeReader, openLakeReader } from '../../src/store/query/lake-reader.ts'
import { makeSampleFolder } from '../../src/store/query/sample-lake.ts'

/** Opens the sample of a schema version, by default of the current one, in a temporary data folder that `close` removes. */
export async function openSample(
  schemaVersion: number = LAKE_SCHEMA_VERSION,
): Promise<{ dataDir: string; reader: LakeReader; close(): Promise<void> }> {
  const { dataDir, remove } = await makeSampleFolder(schemaVersion)
  const reader = await openLakeReader({ dataDir })
  return {
    dataDir,
    reader,
    close() {
      reader.close()
      return remove()
    },
  }
}
