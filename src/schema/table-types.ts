// What a table, a column and a cell of the store are. The tables themselves are in tables.ts.

/** The TypeScript type of a cell, by column type. A TIMESTAMP is Unix milliseconds (UTC). */
export interface CellTypes {
  VARCHAR: string
  DOUBLE: number
  BIGINT: number
  INTEGER: number
  BOOLEAN: boolean
  TIMESTAMP: number
  'VARCHAR[]': readonly string[]
}
export type ColumnType = keyof CellTypes

export interface Column<
  Name extends string = string,
  Type extends ColumnType = ColumnType,
  Nullable extends boolean = boolean,
> {
  name: Name
  type: Type
  nullable: Nullable
  /** Unit and meaning, for the data dictionary and for DuckDB's column comments. */
  comment: string
}

export interface Table {
  name: string
  /** What one row is. */
  comment: string
  /** Rows are exported to the lake, partitioned by the UTC date of this TIMESTAMP column. Null: rows stay in the store. */
  lakeDateColumn: string | null
  /** The key under which a newer row replaces an older one. The catalog shows the newest. Absent: rows never replace another. */
  latestBy?: readonly string[]
  /** The newest row of a key is the one with the highest value of the first of these columns, among equals of the next. With `latestBy`. */
  newestBy?: readonly string[]
  /** Older rows stay in the files, for readers as of a time. Only the catalog's view leaves them out. */
  keepsHistory?: boolean
  /**
   * Who makes the rows. Absent: a caller commits them and is told when they are durable.
   * `market`: rows of the market, held in memory until they are in the lake, so that they never delay a caller; a killed
   * server loses those since the last flush. `store`: rows that the store computes from other rows.
   * `journal`: recorded market events; the journal has them until they are in the lake.
   * Rows of `market` and `store` are numbered by table, those of `journal` by event.
   */
  origin?: 'market' | 'store' | 'journal'
  /** How the rows of a file are sorted, where not by mint and time. A later file has later rows only. */
  sortedBy?: readonly string[]
  columns: readonly Column[]
}

export type Cell = CellTypes[ColumnType] | null
/** A row of any table, checked when it is written. `TableRow` and `NewRow` (tables.ts) are the types of rows of one table. */
export type Row = Record<string, Cell>
