// Complete rows, a quiet log and temporary folders for tests of the store.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ulid } from 'ulid'
import type { ClosedBar } from '../../src/schema/bar.ts'
import {
  type Cell,
  LAKE_SCHEMA_VERSION,
  type Row,
  TABLES,
  type Table,
  type TableName,
  type Write,
} from '../../src/schema/tables.ts'
import type { Store } from '../../src/store/store.ts'
import { openStore, type StoreOptions } from '../../src/store/store.ts'
import { clockOf } from '../support/clock.ts'
import { withLakeProcess } from '../support/lake/lend.ts'

export const NOON_MS = Date.UTC(2025, 5, 1, 12)
export const quietLog = { info: () => {}, warn: () => {}, error: () => {} }

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'mintlake-store-'))
}

export const removeFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true })

const FILLING: Record<Table['columns'][number]['type'], Cell> = {
  VARCHAR: 'text',
  DOUBLE: 0.5,
  BIGINT: 7,
  INTEGER: 1,
  BOOLEAN: true,
  TIMESTAMP: NOON_MS,
  'VARCHAR[]': ['whale_dominance', 'new_deployer'],
}

/** A row of `table` with every column filled, overridden by the values of the test. */
export function rowOf(table: TableName, over: Row = {}): Row {
  const columns: Table['columns'] = TABLES[table].columns
  const row: Row = Object.fromEntries(columns.map((column) => [column.name, FILLING[column.type]]))
  if ('schema_version' in row) row.schema_version = LAKE_SCHEMA_VERSION
  if ('received_at' in row) row.received_at = over.submitted_at ?? NOON_MS
  return { ...row, ...over }
}

export const writeOf = (table: TableName, over: Row = {}): Write => ({ table, row: rowOf(table, over) })

/** A submission id for a time; the same for each call. */
export const analysisIdAt = (timeMs: number): string => `an_${ulid(timeMs, () => 0.5)}`

/** An accepted submission as the submission service commits it: example, award and attempt. */
export function submission(id: string, over: Row = {}): Write[] {
  const at = (over.submitted_at as number | undefined) ?? NOON_MS
  const agent = (over.agent_id as string | undefined) ?? 'agent-1'
  return [
    writeOf('training', { analysis_id: id, agent_id: agent, submitted_at: at, snapshot_at: at, ...over }),
    writeOf('xp_ledger', {
      entry_id: `xp-${id}`,
      analysis_id: id,
      agent_id: agent,
      kind: 'analysis',
      xp: 17.5,
      awarded_at: at,
    }),
    writeOf('submit_attempts', { agent_id: agent, at }),
  ]
}

/** A closed bar as the market emits it, overridden by the values of the test. */
export const closedBar = (over: Partial<ClosedBar> = {}): ClosedBar => ({
  mint: 'mint-1',
  tf: '1m',
  t: NOON_MS,
  o: 1,
  h: 4,
  l: 0.5,
  c: 2,
  v: 30,
  n: 3,
  buyV: 20,
  buys: 2,
  closedAtMs: NOON_MS + 65_000,
  watchedSinceMs: NOON_MS - 5,
  complete: true,
  ...over,
})

/** Opens a store and waits until its log is flushed to the lake. */
export async function openTestStore(dataDir: string, options: Partial<StoreOptions> = {}): Promise<Store> {
  const all = { dataDir, lakeFlushMs: 0, clock: clockOf(() => NOON_MS), log: quietLog, ...options }
  // A process that is to be killed somewhere is one of its own.
  const store = options.crash
    ? await openStore(all)
    : await withLakeProcess((lakeProcess) => openStore({ ...all, lakeProcess }))
  await store.caughtUp
  return store
}

/** The rows of a query in a separate database, as another process reads them. */
export async function readSql(sql: string, ...before: string[]): Promise<Record<string, unknown>[]> {
  // Loaded on demand, as most processes of tests only write and need no DuckDB of their own.
  const { duckdb } = await import('../../src/store/duckdb/duckdb.ts')
  const instance = await duckdb.DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  try {
    for (const statement of before) await connection.run(statement)
    return (await (await connection.run(sql)).getRowObjectsJS()) as Record<string, unknown>[]
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

export const lakeGlob = (dataDir: string, table: string): string =>
  `read_parquet('${dataDir}/lake/${table}/*/*.parquet', hive_partitioning=true)`
