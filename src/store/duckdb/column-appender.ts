// Appends rows to a table of DuckDB from columns, a chunk at a time.
import type {
  DuckDBAppender,
  DuckDBConnection,
  DuckDBDataChunk,
  DuckDBType,
  DuckDBValue,
} from '@duckdb/node-api'
import { duckdb } from './duckdb.ts'

/** The most rows of a chunk of DuckDB. */
const CHUNK_ROWS = 2_048

export class ColumnAppender {
  readonly #appender: DuckDBAppender
  /** Reused: its memory is not managed by the garbage collector. */
  readonly #chunk: DuckDBDataChunk

  /** `close` must be called. @param types of the columns of the table, in their order */
  static async open(
    connection: DuckDBConnection,
    table: string,
    types: readonly DuckDBType[],
    catalog?: string,
  ): Promise<ColumnAppender> {
    return new ColumnAppender(await connection.createAppender(table, 'main', catalog), types)
  }

  constructor(appender: DuckDBAppender, types: readonly DuckDBType[]) {
    this.#appender = appender
    this.#chunk = duckdb.DuckDBDataChunk.create(types)
  }

  /** Appends the rows from index `from` to `to` (exclusive). */
  append(columns: readonly ArrayLike<DuckDBValue>[], from = 0, to = columns[0].length): void {
    for (let first = from; first < to; first += CHUNK_ROWS)
      this.#appendChunk(columns, first, Math.min(to, first + CHUNK_ROWS))
  }

  /** Makes the appended rows visible. */
  flush(): void {
    this.#appender.flushSync()
  }

  close(): void {
    // After a failure closing would otherwise write the buffered rows.
    this.#appender.clear()
    this.#appender.closeSync()
  }

  #appendChunk(columns: readonly ArrayLike<DuckDBValue>[], from: number, to: number): void {
    const chunk = this.#chunk
    chunk.reset()
    chunk.rowCount = to - from
    for (const [index, column] of columns.entries()) {
      const vector = chunk.getColumnVector(index)
      for (let row = from; row < to; row++) vector.setItem(row - from, column[row])
      vector.flush()
    }
    this.#appender.appendDataChunk(chunk)
  }
}
