// A program: reads all that the Parquet files of a lake have, by SQL, and verifies a folder as `mintlake lake verify` does.

import type { RecordedEvent } from '../../../../src/journal/event-batch.ts'
import { sendToParent } from '../../../../src/lib/process/parent.ts'
import type { Row, TableName } from '../../../../src/schema/tables.ts'
import { identifier, LAKE_TABLES, type LakeTable } from '../../../../src/store/duckdb/sql.ts'
import { readCatalogFiles } from '../../../../src/store/lake/catalog-reader.ts'
import { selectAllRows } from '../../../../src/store/lake/parquet-sql.ts'
import { withLakeReader } from '../../../../src/store/query/lake-reader.ts'
import { readRecordedEvents } from '../../../../src/store/query/recorded-events.ts'
import type { Finding } from '../../../../src/store/verify/findings.ts'
import { verifyLake } from '../../../../src/store/verify/verify.ts'

export interface ReadLake {
  rows: Partial<Record<TableName, Row[]>>
  events: RecordedEvent[]
}

export type Asked = { dataDir: string } & ({ kind: 'read' } | { kind: 'verify'; nowMs: number })
export type Answered =
  | { kind: 'read'; read: ReadLake }
  | { kind: 'verify'; findings: readonly Finding[] }
  | { kind: 'failed'; error: string }

/** Times and whole numbers as numbers. */
const cells = ({ columns }: LakeTable): string =>
  columns
    .map(({ name, type }) => {
      const cell = identifier(name)
      if (type === 'TIMESTAMP') return `epoch_ms(${cell})::DOUBLE AS ${cell}`
      return type === 'BIGINT' || type === 'INTEGER' ? `${cell}::DOUBLE AS ${cell}` : cell
    })
    .join(', ')

async function read(dataDir: string): Promise<ReadLake> {
  const events: RecordedEvent[] = []
  for await (const batch of readRecordedEvents({ dataDir, onMissing: () => {} })) events.push(...batch)
  return withLakeReader({ dataDir, threads: 1 }, async ({ connection }) => {
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
    return { rows, events }
  })
}

async function answer(asked: Asked): Promise<Answered> {
  try {
    const { dataDir } = asked
    if (asked.kind === 'read') return { kind: 'read', read: await read(dataDir) }
    const { findings } = await verifyLake({ dataDir, nowMs: asked.nowMs })
    return { kind: 'verify', findings }
  } catch (error) {
    return { kind: 'failed', error: String((error as Error).stack ?? error) }
  }
}

process.on('message', async (asked: Asked) => sendToParent(await answer(asked)))
process.once('disconnect', () => process.exit())
