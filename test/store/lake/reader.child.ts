// In: SQL as the first argument. Out: its rows as JSON on standard output. A researcher's process, which knows nothing
// of the store but the lake's files.
import { DuckDBInstance } from '@duckdb/node-api'

const instance = await DuckDBInstance.create(':memory:')
const connection = await instance.connect()
const result = await connection.run(process.argv[2])
process.stdout.write(JSON.stringify(await result.getRowObjectsJson()))
