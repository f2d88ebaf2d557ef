// The tool that queries the lake, where it is at hand.
import { z } from 'zod'
import { isInterrupted, type QueryResult, withLakeReader } from '../store/query/lake-reader.ts'
import type { Plain } from '../store/query/plain-value.ts'
import {
  SQL_CHARACTERS_MAX,
  SQL_MS_MAX,
  SQL_RESULT_CHARACTERS_MAX,
  SQL_ROWS_DEFAULT,
  SQL_ROWS_MAX,
} from './limits.ts'
import { type AddTool, checkedHere, READ_ONLY, ToolError, tool, UNTRUSTED } from './tool.ts'

const input = z.object({
  query: z.string().min(1).max(SQL_CHARACTERS_MAX).meta({ description: 'SQL as DuckDB understands it' }),
  limit: z
    .int()
    .min(1)
    .max(SQL_ROWS_MAX)
    .default(SQL_ROWS_DEFAULT)
    .meta({ description: 'Rows of the result that are answered' }),
})

interface Rows {
  columns: readonly { name: string; type: string }[]
  rows: Plain[][]
  /** Whether the result has more rows. */
  truncated: boolean
}

/** The first rows of a result, within the bounds of an answer. */
async function firstRows({ columns, batches }: QueryResult, limit: number): Promise<Rows> {
  const rows: Plain[][] = []
  let characters = 0
  for await (const batch of batches) {
    for (const row of batch) {
      characters += JSON.stringify(row).length
      if (rows.length === limit || characters > SQL_RESULT_CHARACTERS_MAX)
        return { columns, rows, truncated: true }
      rows.push(row)
    }
  }
  return { columns, rows, truncated: false }
}

/** Runs a query on the lake of a data folder, for at most SQL_MS_MAX and until the caller gives up. */
async function runQuery(dataDir: string, query: string, limit: number, signal: AbortSignal): Promise<Rows> {
  const end = AbortSignal.any([signal, AbortSignal.timeout(SQL_MS_MAX)])
  try {
    return await withLakeReader({ dataDir }, async (reader) => {
      const interrupt = (): void => reader.interrupt()
      end.addEventListener('abort', interrupt)
      try {
        end.throwIfAborted()
        return await firstRows(await reader.query(query), limit)
      } finally {
        end.removeEventListener('abort', interrupt)
      }
    })
  } catch (error) {
    if (!end.aborted || !(isInterrupted(error) || error === end.reason)) throw error
    throw new ToolError(
      'timeout',
      `The query was ended after ${SQL_MS_MAX / 1_000} s`,
      'Read fewer rows: filter by mint and time.',
    )
  }
}

/** `sql`. */
export function sqlTool(dataDir: string): AddTool {
  let last: Promise<unknown> = Promise.resolve()
  return tool<z.output<typeof input>>({
    name: 'sql',
    title: 'Query the lake',
    description:
      'Runs one read-only SQL query (DuckDB) on the lake: labelled (accepted submissions with their features, and what the price did ' +
      'afterwards), bars, tokens, rejections, xp_ledger. SHOW TABLES and DESCRIBE labelled tell more. ' +
      `Answers columns and rows. ${UNTRUSTED}`,
    input: checkedHere(input),
    annotations: READ_ONLY,
    // One after another: each may take the whole memory that a reader of the lake is allowed.
    run: ({ query, limit }, signal) => {
      const result = last.then(() => runQuery(dataDir, query, limit, signal))
      last = result.catch(() => {})
      return result
    },
  })
}
