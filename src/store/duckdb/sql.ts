// SQL text made from the tables of schema/tables.ts: definitions, comments, select lists.
import { type Column, TABLES, type Table, type TableName } from '../../schema/tables.ts'

/** Row number that tables in the store's databases have besides their columns. Not written to the lake. */
export const ROW_SEQ = 'row_seq'

export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** NULL where there is none. */
export const literalOrNull = (text: string | null): string => (text === null ? 'NULL' : literal(text))
export const timeOrNull = (ms: number | null): string => (ms === null ? 'NULL' : `epoch_ms(${ms})`)

export const ALL_TABLES: readonly Table[] = Object.values(TABLES)
/** A table that is written to the lake. */
export type LakeTable = Table & { name: TableName; lakeDateColumn: string }
export const LAKE_TABLES: readonly LakeTable[] = ALL_TABLES.filter(
  (table): table is LakeTable => table.lakeDateColumn !== null,
)

const lakeTables = new Map<string, LakeTable>(LAKE_TABLES.map((table) => [table.name, table]))
/** Returns undefined where the lake has no table of that name. */
export const findLakeTable = (name: string): LakeTable | undefined => lakeTables.get(name)
/** The column with the time a row became durable, or for tables without one, the time the row is about. */
export const createdAtColumn = ({ columns, lakeDateColumn }: LakeTable): string =>
  columns.some(({ name }) => name === 'known_at') ? 'known_at' : lakeDateColumn

/** Name of the in-memory database where bars wait for the next flush. */
export const MARKET_DATABASE = 'market_data'
/** SQL name of the database table whose rows wait for a flush. */
export const relation = (table: Table): string =>
  table.origin === 'market' ? `${MARKET_DATABASE}.${identifier(table.name)}` : identifier(table.name)

const definition = (column: Column): string =>
  `${identifier(column.name)} ${column.type}${column.nullable ? '' : ' NOT NULL'}`

const tableDefinition = (table: Table): string =>
  `${relation(table)} (${ROW_SEQ} BIGINT NOT NULL, ${table.columns.map(definition).join(', ')})`

/** Leaves a table that is there as it is. */
export const createTable = (table: Table): string => `CREATE TABLE IF NOT EXISTS ${tableDefinition(table)}`

/** Begins a table anew, without rows. */
export const createEmptyTable = (table: Table): string => `CREATE OR REPLACE TABLE ${tableDefinition(table)}`

/** For a column that an older store lacks; NULL in existing rows. */
export const addColumn = (table: Table, column: Column): string =>
  `ALTER TABLE ${identifier(table.name)} ADD COLUMN ${identifier(column.name)} ${column.type}`

export const commentOnColumn = (table: Pick<Table, 'name'>, column: Column): string =>
  `COMMENT ON COLUMN ${identifier(table.name)}.${identifier(column.name)} IS ${literal(column.comment)}`

/** The list of the lake's files. Paths are relative to the lake's folder, with forward slashes. */
export const MANIFEST = 'lake_files'
/** The last time known to be right; see lake/clock-guard.ts. */
export const CLOCK_KNOWN = 'clock_known'
/** Dates that expired, by table; see lake/retention.ts. */
export const REMOVALS = 'lake_removals'
/** What became of the closed bars of each run, by timeframe; see market-data/bar-account.ts. */
export const BAR_ACCOUNTS = 'bar_accounts'
export const CREATE_MANIFEST = [
  `CREATE TABLE IF NOT EXISTS ${MANIFEST} (
    table_name VARCHAR NOT NULL, path VARCHAR NOT NULL, dt DATE NOT NULL, seq_first BIGINT NOT NULL,
    seq_last BIGINT NOT NULL, row_count BIGINT NOT NULL, byte_count BIGINT NOT NULL, written_at TIMESTAMP NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS ${REMOVALS} (table_name VARCHAR NOT NULL, dt DATE NOT NULL, row_count BIGINT NOT NULL,
    seq_last BIGINT NOT NULL, removed_at TIMESTAMP NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS ${CLOCK_KNOWN} (known_ms BIGINT NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS ${BAR_ACCOUNTS} (run_id VARCHAR NOT NULL, tf VARCHAR NOT NULL, closed BIGINT NOT NULL,
    dropped BIGINT NOT NULL, repeated BIGINT NOT NULL, written BIGINT NOT NULL, settled BIGINT NOT NULL,
    to_ms BIGINT NOT NULL)`,
  // Columns added later. A file from before has schema 1 and is live.
  `ALTER TABLE ${MANIFEST} ADD COLUMN IF NOT EXISTS schema_version INTEGER DEFAULT 1`,
  `ALTER TABLE ${MANIFEST} ADD COLUMN IF NOT EXISTS replaced_at TIMESTAMP`,
  // SHA-256 of the file's bytes; NULL: written before hashes were recorded.
  `ALTER TABLE ${MANIFEST} ADD COLUMN IF NOT EXISTS sha256 VARCHAR`,
  // Of a missing or damaged file: since when, why, how many of its rows are in no other file, and when an operator
  // acknowledged the loss.
  `ALTER TABLE ${MANIFEST} ADD COLUMN IF NOT EXISTS set_aside_at TIMESTAMP`,
  `ALTER TABLE ${MANIFEST} ADD COLUMN IF NOT EXISTS set_aside_reason VARCHAR`,
  `ALTER TABLE ${MANIFEST} ADD COLUMN IF NOT EXISTS rows_lost BIGINT`,
  `ALTER TABLE ${MANIFEST} ADD COLUMN IF NOT EXISTS settled_at TIMESTAMP`,
]

/** Selects a column as JavaScript numbers and strings: TIMESTAMP as Unix ms, BIGINT as a double. */
export function readableCell(column: Column): string {
  const name = identifier(column.name)
  if (column.type === 'TIMESTAMP') return `epoch_ms(${name})::DOUBLE AS ${name}`
  if (column.type === 'BIGINT') return `${name}::DOUBLE AS ${name}`
  return name
}

export const selectList = (table: Table): string => table.columns.map(readableCell).join(', ')

/** All columns of a lake file, in their order. */
export const lakeColumns = (table: Table): string =>
  table.columns.map((column) => identifier(column.name)).join(', ')

/** True where compaction may drop a row that a newer row of the same key replaces. */
export const keepsNewestOnly = ({ latestBy, keepsHistory }: LakeTable): boolean =>
  latestBy !== undefined && keepsHistory !== true

/**
 * Sort order of a lake file: that of the table where it names one, else mint where there is one, then time, then the first column,
 * so that the order is total.
 */
export const sortColumns = (table: LakeTable): readonly Column[] => {
  const names = new Set(table.sortedBy ?? ['mint', table.lakeDateColumn, table.columns[0].name])
  return [...names].flatMap((name) => table.columns.filter((column) => column.name === name))
}

export const sortOrderSql = (table: LakeTable): string =>
  sortColumns(table)
    .map(({ name }) => identifier(name))
    .join(', ')
