// In: the tables of schema/tables.ts. Out: SQL text: definitions, comments, select lists. Never runs it.
import { type Column, TABLES, type Table } from '../../schema/tables.ts'

/** The store's own column of tables in its database: counts rows. Not part of the lake. */
export const ROW_SEQ = 'row_seq'

export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

export const ALL_TABLES: readonly Table[] = Object.values(TABLES)
/** A table whose rows go to the lake. */
export type LakeTable = Table & { lakeDateColumn: string }
export const LAKE_TABLES: readonly LakeTable[] = ALL_TABLES.filter(
  (table): table is LakeTable => table.lakeDateColumn !== null,
)

const lakeTables = new Map<string, LakeTable>(LAKE_TABLES.map((table) => [table.name, table]))
/** The table of that name; undefined where the lake has none. */
export const lakeTableOf = (name: string): LakeTable | undefined => lakeTables.get(name)
/** The column that tells when a row was made: when it became durable, or where its table does not tell, its own time. */
export const madeAtColumn = ({ columns, lakeDateColumn }: LakeTable): string =>
  columns.some(({ name }) => name === 'known_at') ? 'known_at' : lakeDateColumn

/** Market data waits for the lake in a database in memory, beside the store's file: it delays no commit. */
export const MARKET_DATABASE = 'market_data'
/** Where the rows of a table are that no file may hold yet. */
export const relation = (table: Table): string =>
  table.origin === 'market' ? `${MARKET_DATABASE}.${identifier(table.name)}` : identifier(table.name)

const definition = (column: Column): string =>
  `${identifier(column.name)} ${column.type}${column.nullable ? '' : ' NOT NULL'}`

export const createTable = (table: Table): string =>
  `CREATE TABLE ${relation(table)} (${ROW_SEQ} BIGINT NOT NULL, ${table.columns.map(definition).join(', ')})`

/** A column that an older store lacks: NULL in its rows. */
export const addColumn = (table: Table, column: Column): string =>
  `ALTER TABLE ${identifier(table.name)} ADD COLUMN ${identifier(column.name)} ${column.type}`

export const commentOnTable = (table: Table): string =>
  `COMMENT ON TABLE ${identifier(table.name)} IS ${literal(table.comment)}`

export const commentOnColumn = (table: Table, column: Column): string =>
  `COMMENT ON COLUMN ${identifier(table.name)}.${identifier(column.name)} IS ${literal(column.comment)}`

/** One file of the lake that readers may see. Paths are relative to the lake's folder, with forward slashes. */
export const MANIFEST = 'lake_files'
/** The time that the store knows of; see clock-guard.ts. */
export const CLOCK_KNOWN = 'clock_known'
/** Dates that left the lake for good, by table; see retention.ts. */
export const REMOVALS = 'lake_removals'
export const CREATE_MANIFEST = [
  `CREATE TABLE IF NOT EXISTS ${MANIFEST} (
    table_name VARCHAR NOT NULL, path VARCHAR NOT NULL, dt DATE NOT NULL, seq_first BIGINT NOT NULL,
    seq_last BIGINT NOT NULL, row_count BIGINT NOT NULL, byte_count BIGINT NOT NULL, written_at TIMESTAMP NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS ${REMOVALS} (table_name VARCHAR NOT NULL, dt DATE NOT NULL, row_count BIGINT NOT NULL,
    seq_last BIGINT NOT NULL, removed_at TIMESTAMP NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS ${CLOCK_KNOWN} (known_ms BIGINT NOT NULL)`,
  // Added since: a file of before has the first schema and is live.
  `ALTER TABLE ${MANIFEST} ADD COLUMN IF NOT EXISTS schema_version INTEGER DEFAULT 1`,
  `ALTER TABLE ${MANIFEST} ADD COLUMN IF NOT EXISTS replaced_at TIMESTAMP`,
  // What the bytes of the file hash to; NULL: written before this was noted.
  `ALTER TABLE ${MANIFEST} ADD COLUMN IF NOT EXISTS sha256 VARCHAR`,
  // A file that is gone or damaged: since when and why, how many of its rows are in no other file, and when an operator
  // took note of the loss.
  `ALTER TABLE ${MANIFEST} ADD COLUMN IF NOT EXISTS set_aside_at TIMESTAMP`,
  `ALTER TABLE ${MANIFEST} ADD COLUMN IF NOT EXISTS set_aside_reason VARCHAR`,
  `ALTER TABLE ${MANIFEST} ADD COLUMN IF NOT EXISTS rows_lost BIGINT`,
  `ALTER TABLE ${MANIFEST} ADD COLUMN IF NOT EXISTS settled_at TIMESTAMP`,
]

/** A cell as JavaScript wants it: TIMESTAMP as Unix ms, whole numbers as doubles. */
export function readable(column: Column): string {
  const name = identifier(column.name)
  if (column.type === 'TIMESTAMP') return `epoch_ms(${name})::DOUBLE AS ${name}`
  if (column.type === 'BIGINT') return `${name}::DOUBLE AS ${name}`
  return name
}

export const selectList = (table: Table): string => table.columns.map(readable).join(', ')

/** The columns of a lake file, always all of them, always in this order. */
export const lakeColumns = (table: Table): string =>
  table.columns.map((column) => identifier(column.name)).join(', ')

/** True of a table of which a row need not stay in the lake once a newer one follows it. */
export const mayBeReplaced = ({ latestBy, keepsHistory }: LakeTable): boolean =>
  latestBy !== undefined && keepsHistory !== true

/** What rows of a lake file are sorted by: mint where there is one, then time; ties by the first column, so that the order is one. */
export const lakeKey = (table: LakeTable): readonly Column[] => {
  const names = new Set(['mint', table.lakeDateColumn, table.columns[0].name])
  return [...names].flatMap((name) => table.columns.filter((column) => column.name === name))
}

export const lakeOrder = (table: LakeTable): string =>
  lakeKey(table)
    .map(({ name }) => identifier(name))
    .join(', ')
