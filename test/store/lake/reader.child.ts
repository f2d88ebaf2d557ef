// Runs the SQL of its first argument with a plain DuckDB, as a researcher would, and prints the rows as JSON.
import { DuckDBInstance } from '@duckdb/node-api'

const instance = await DuckDBInstance.create(':memory:')
const connection = await instance.connect()
const result = await connection.run(process.argv[2])
process.stdout.write(JSON.stringify(await result.getRowObjectsJson()))
