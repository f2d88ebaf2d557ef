// In: SQL. Out: its rows as objects. Loads nothing of DuckDB: who has a connection has it.
import type { DuckDBConnection } from '@duckdb/node-api'

/** Rows of a query as plain objects. */
export async function query<T>(
  connection: DuckDBConnection,
  sql: string,
  values: Record<string, string | number> = {},
): Promise<T[]> {
  const result = await connection.run(sql, values)
  return (await result.getRowObjectsJS()) as T[]
}
