// Reads all that the Parquet files of a lake have, by SQL.

import type { RecordedEvent } from '../../../../src/journal/event-batch.ts'
import type { Row, TableName } from '../../../../src/schema/tables.ts'
import { identifier, LAKE_TABLES, type LakeTable } from '../../../../src/store/duckdb/sql.ts'
import { readCatalogFiles } from '../../../../src/store/lake/catalog-reader.ts'
import { selectAllRows } from '../../../../src/store/lake/parquet-sql.ts'
import { withLakeReader } from '../../../../src/store/query/lake-reader.ts'
import { ANY, allEvents } from '../../../support/lake/all-events.ts'

export interface ReadLake {
  rows: Partial<Record<TableName, Row[]>>
  events: RecordedEvent[]
}

/** Times and whole numbers as numbers. */
const cells = ({ columns }: LakeTable): string =>
  columns
    .map(({ name, type }) => {
      const cell = identifier(name)
      if (type === 'TIMESTAMP') return `epoch_ms(${cell})::DOUBLE AS ${cell}`
      return type === 'BIGINT' || type === 'INTEGER' ? `${cell}::DOUBLE AS ${cell}` : cell
    })
    .join(', ')

/** Those of tables that do not come from the journal. */
export const readRows = (dataDir: string): Promise<ReadLake['rows']> =>
  withLakeReader({ dataDir, threads: 1 }, async ({ connection }) => {
    const listed = await readCatalogFiles(connection, 'lake')
    const rows: ReadLake['rows'] = {}
    for (const table of LAKE_TABLES) {
      const files = listed.filter((file) => file.table === table.name)
      if (files.length === 0 || table.origin === 'journal') continue
      const result = await connection.runAndReadAll(
        `SELECT ${cells(table)} FROM (${selectAllRows(table, files)})`,
      )
      rows[table.name] = result.getRowObjectsJS() as Row[]
    }
    return rows
  })

export async function readLake(dataDir: string): Promise<ReadLake> {
  const events: RecordedEvent[] = []
  for await (const batch of allEvents(dataDir, ANY)) events.push(...batch)
  return { rows: await readRows(dataDir), events }
}
