// In: a small job for DuckDB that is not the store's. Out: its result, from a database of its own that is gone afterwards.
// Never shares memory, threads or failures with the store's database: what is fatal here is an ordinary failure there.
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { ServiceError } from '../schema/errors.ts'

/** Everything needed is built in; nothing is ever fetched or loaded at run time. */
const CLOSED_TO_EXTENSIONS = {
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
  allow_community_extensions: 'false',
}

/** Runs `work` in a database at `path` (`:memory:`: in memory). What fails rejects with `store_unavailable`. */
export async function inOwnDatabase<Value>(
  path: string,
  settings: Record<string, string>,
  work: (connection: DuckDBConnection) => Promise<Value>,
): Promise<Value> {
  try {
    const instance = await DuckDBInstance.create(path, { ...CLOSED_TO_EXTENSIONS, ...settings })
    try {
      const connection = await instance.connect()
      try {
        return await work(connection)
      } finally {
        connection.closeSync()
      }
    } finally {
      instance.closeSync()
    }
  } catch (error) {
    throw new ServiceError('store_unavailable', error instanceof Error ? error.message : String(error))
  }
}
