// Reads the rows of a query as DuckDB makes them, in chunks. DuckDB's package ends a result in the same way at its last row and
// where the query fails on the way, so nothing else may read one: `test/structure.test.ts` holds it.
import type {
  DuckDBConnection,
  DuckDBDataChunk,
  DuckDBPreparedStatement,
  DuckDBResult,
} from '@duckdb/node-api'
import { errorMessage } from '../../lib/error-text.ts'
import { duckdb } from './duckdb.ts'

/** A result that has failed is no longer of any type: the only trace that the package shows of the error. */
export const hasFailed = (result: DuckDBResult): boolean =>
  result.returnType === duckdb.ResultReturnType.INVALID

/** What is said of a query that was ended by `interrupt`: as DuckDB itself says it. */
const INTERRUPTED = 'INTERRUPT Error: Interrupted!'

export class ResultStream implements AsyncIterable<DuckDBDataChunk> {
  readonly columns: readonly { name: string; type: string }[]
  readonly #result: DuckDBResult
  readonly #whyFailed: () => Promise<Error>
  #rows = 0
  #end: 'whole' | Error | null = null

  private constructor(result: DuckDBResult, whyFailed: () => Promise<Error>) {
    this.columns = result
      .deduplicatedColumnNames()
      .map((name, index) => ({ name, type: String(result.columnType(index)) }))
    this.#result = result
    this.#whyFailed = whyFailed
  }

  /**
   * Starts a query. Its connection must run nothing else before the stream has ended: that would end it.
   * @param wasInterrupted whether the queries of the connection were interrupted
   */
  static async open(
    connection: DuckDBConnection,
    sql: string,
    wasInterrupted?: () => boolean,
  ): Promise<ResultStream> {
    return new ResultStream(await connection.stream(sql), () => findReason(connection, sql, wasInterrupted))
  }

  /** The same for a prepared statement. @param sql its text; null where it is not known, and a failure has no reason then */
  static async ofPrepared(
    connection: DuckDBConnection,
    prepared: DuckDBPreparedStatement,
    sql: string | null,
    wasInterrupted?: () => boolean,
  ): Promise<ResultStream> {
    return new ResultStream(await prepared.stream(), () => findReason(connection, sql, wasInterrupted))
  }

  /** How many rows were read. */
  get rows(): number {
    return this.#rows
  }

  /** The next rows, at least one; null after the last one. Rejects where the query has failed, and then always. */
  async next(): Promise<DuckDBDataChunk | null> {
    if (this.#end instanceof Error) throw this.#end
    if (this.#end !== null) return null
    const chunk = await this.#result.fetchChunk()
    if (chunk !== null && chunk.rowCount > 0) {
      this.#rows += chunk.rowCount
      return chunk
    }
    this.#end = hasFailed(this.#result) ? await this.#whyFailed() : 'whole'
    return this.next()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<DuckDBDataChunk, void> {
    for (let chunk = await this.next(); chunk !== null; chunk = await this.next()) yield chunk
  }
}

/**
 * Why a query has failed on the way. The package does not pass DuckDB's message on, so the query is run once more, its rows
 * dropped: a file that is damaged is so again.
 */
async function findReason(
  connection: DuckDBConnection,
  sql: string | null,
  wasInterrupted: () => boolean = () => false,
): Promise<Error> {
  if (wasInterrupted()) return new Error(INTERRUPTED)
  const unknown = new Error('DuckDB has ended the query before its last row')
  if (sql === null) return unknown
  try {
    await connection.run(`EXPLAIN ANALYZE ${sql}`)
    return unknown
  } catch (error) {
    // Not every statement can be explained, and that is not why it failed.
    return /^Parser Error/.test(errorMessage(error)) ? unknown : new Error(errorMessage(error))
  }
}
