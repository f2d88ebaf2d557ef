// The tool that queries the lake, where it is at hand.
import pLimit from 'p-limit'
import { z } from 'zod'
import { MISSING_FILES } from '../schema/api/lake.ts'
import { isInterrupted, type QueryResult, toUnreadable, withLakeReader } from '../store/query/lake-reader.ts'
import type { Plain } from '../store/query/plain-value.ts'
import { rounded } from './compact.ts'
import { SQL_CHARACTERS_MAX, SQL_MS_MAX, SQL_RESULT_CHARACTERS_MAX, SQL_ROWS } from './limits.ts'
import { type AddTool, clampLimit, limitInput, parseHere, ToolError, tool, UNTRUSTED } from './tool.ts'

const input = z.object({
  query: z.string().min(1).max(SQL_CHARACTERS_MAX).meta({ description: 'SQL as DuckDB understands it' }),
  limit: limitInput(SQL_ROWS, 'Rows that are answered'),
  detail: z.boolean().optional().meta({ description: 'true: all digits of numbers' }),
})

interface Rows {
  columns: readonly { name: string; type: string }[]
  rows: Plain[][]
  /** Whether the result has more rows, and why they are not here. */
  truncated: boolean
  limited?: string
}
/** An answer, with how many files are lost, whose rows it leaves out. */
type Answer = Rows & { missingFiles: number }

/** The first rows of a result, within the bounds of an answer. */
async function firstRows({ columns, batches }: QueryResult, limit: number): Promise<Rows> {
  const rows: Plain[][] = []
  let characters = 0
  for await (const batch of batches) {
    for (const row of batch) {
      characters += JSON.stringify(row).length
      const limited =
        rows.length === limit
          ? `There are more than ${limit} rows: aggregate, or add LIMIT and OFFSET.`
          : `More than ${rows.length} rows are larger than ${SQL_RESULT_CHARACTERS_MAX} characters: select fewer columns.`
      if (rows.length === limit || characters > SQL_RESULT_CHARACTERS_MAX)
        return { columns, rows, truncated: true, limited }
      rows.push(row)
    }
  }
  return { columns, rows, truncated: false }
}

/** Runs a query on the lake of a data folder, for at most SQL_MS_MAX and until the caller gives up. */
async function runQuery(dataDir: string, query: string, limit: number, signal: AbortSignal): Promise<Answer> {
  const end = AbortSignal.any([signal, AbortSignal.timeout(SQL_MS_MAX)])
  try {
    return await withLakeReader({ dataDir }, async (reader) => {
      const interrupt = (): void => reader.interrupt()
      end.addEventListener('abort', interrupt)
      try {
        end.throwIfAborted()
        const rows = await firstRows(await reader.query(query), limit)
        return { ...rows, missingFiles: reader.lost.length }
      } finally {
        end.removeEventListener('abort', interrupt)
      }
    })
  } catch (error) {
    if (!end.aborted || !(isInterrupted(error) || error === end.reason)) throw toUnreadable(error)
    throw new ToolError(
      'timeout',
      `The query was ended after ${SQL_MS_MAX / 1_000} s`,
      'Read fewer rows: filter by mint and time.',
    )
  }
}

/** `sql`. */
export function sqlTool(dataDir: string): AddTool {
  // One after another: each may take the whole memory that a reader of the lake is allowed.
  const queue = pLimit(1)
  return tool({
    name: 'sql',
    title: 'Query the lake',
    description:
      'Runs one read-only SQL query (DuckDB) on the lake: labelled (accepted submissions with their features, and what the price did ' +
      'afterwards), bars, tokens, rejections, xp_ledger. SHOW TABLES and DESCRIBE labelled tell more. ' +
      `Answers columns and rows. ${UNTRUSTED}`,
    input,
    output: z.looseObject({
      columns: z.array(z.looseObject({ name: z.string(), type: z.string() })),
      rows: z.array(z.array(z.unknown())),
      truncated: z.boolean(),
      limited: z.string().optional(),
      missingFiles: z.number().meta({ description: MISSING_FILES }),
    }),
    run: async (args, signal) => {
      const { query, limit, detail } = parseHere(input, args)
      const bound = clampLimit(limit, SQL_ROWS)
      const { rows, ...told } = await queue(() => runQuery(dataDir, query, bound.limit, signal))
      return { ...told, rows: detail === true ? rows : rounded(rows), ...bound.told }
    },
  })
}
