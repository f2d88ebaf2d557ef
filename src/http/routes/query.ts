// SQL on the lake for the operator and for researchers. It runs in a process of its own (store/sql).
import { z } from 'zod'
import { jsonLine } from '../../lib/text/json-text.ts'
import { MISSING_FILES, QUERY_FORMATS, queryAnswerSchema, querySchema } from '../../schema/api/lake.ts'
import type { QueryAnswer, QueryFormat } from '../../store/types.ts'
import { parseBody } from '../../submissions/field-errors.ts'
import { type HttpAnswer, JSON_TYPE, type Notes, type ReaderContext } from '../context.ts'
import { maybeText, maybeWhole } from '../docs/headers.ts'
import { json, type OperationDocs, textType } from '../docs/operation-docs.ts'
import { negotiate } from '../request/negotiate.ts'
import type { Route } from '../route.ts'
import { jsonObject } from './agents.ts'
import type { RouteParts } from './route-parts.ts'

const CSV_TYPE = 'text/csv; charset=utf-8'
const MEDIA_TYPES: Readonly<Record<string, QueryFormat>> = {
  'application/json': 'json',
  'text/csv': 'csv',
  'text/*': 'csv',
  'application/*': 'json',
  '*/*': 'json',
}

/** The rows are JSON already: they are put between the other members as they are. */
function jsonBody({ columns, text, rows, isTruncated, ms, missingFiles }: QueryAnswer, notes: Notes): Buffer {
  const meta = { rows, truncated: isTruncated, ms, missingFiles, ...notes }
  return Buffer.concat([
    Buffer.from(`{"ok":true,"data":{"columns":${jsonLine(columns)},"rows":`),
    text,
    Buffer.from(`},"meta":${jsonLine(meta)}}`),
  ])
}

function toAnswer(answer: QueryAnswer, format: QueryFormat, notes: Notes): HttpAnswer {
  const headers = { 'Cache-Control': 'no-store' }
  if (format === 'json') {
    const body = jsonBody(answer, notes)
    return { status: 200, body, contentType: JSON_TYPE, headers }
  }
  return {
    status: 200,
    body: answer.text,
    contentType: CSV_TYPE,
    headers: {
      ...headers,
      'Content-Disposition': 'attachment; filename="query.csv"',
      'X-Result-Count': `${answer.rows}`,
      'X-More': `${answer.isTruncated}`,
      'X-Missing-Files': `${answer.missingFiles}`,
    },
  }
}

/** By the key's owner, never by the text of a header: the same key can be written in many ways. */
const ownerOf = ({ caller }: ReaderContext): string =>
  caller === null ? 'operator' : `agent ${caller.agent.agentId}`

const QUERY_DOCS: OperationDocs = {
  operationId: 'queryLake',
  tag: 'lake',
  description:
    'DuckDB’s SQL on the tables of the lake. SHOW TABLES and DESCRIBE training tell what there is. Nothing can be written, and no ' +
    'file but the lake’s can be read; paths of the lake on the server can be seen. A query may run for 30 seconds in a process of ' +
    'its own, with bounded memory. Two run at once, and a key may have three running or waiting. Temporary tables live as long as ' +
    'the query. Closing the connection ends it.',
  query: z.object({
    format: z.enum(QUERY_FORMATS).optional().meta({ description: '`json` unless told here or by Accept' }),
  }),
  body: json(querySchema),
  answers: {
    200: {
      description: 'The rows',
      content: { ...json(queryAnswerSchema), ...textType('text/csv') },
      // Of the CSV; JSON has the same in `meta`.
      headers: z.object({
        'Content-Disposition': maybeText('A file name'),
        'X-Result-Count': maybeWhole('Rows of this answer'),
        'X-More': z
          .enum(['true', 'false'])
          .optional()
          .meta({ description: 'Whether the result has more rows' }),
        'X-Missing-Files': maybeWhole(MISSING_FILES),
      }),
    },
  },
  errors: ['query_failed', 'query_too_costly', 'not_acceptable', 'store_unavailable'],
}

/** Not counted as a read: the places for queries, in all and of one key, bound it instead. */
export function queryRoute(deps: RouteParts): Route {
  return {
    method: 'POST',
    path: '/api/v1/query',
    access: 'researcher',
    opensLocally: true,
    summary: 'SQL on the lake, read-only: {sql, limit?}; as JSON or CSV',
    docs: QUERY_DOCS,
    changes: [],
    watchesClient: true,
    handle: async (context) => {
      const format = negotiate(context, QUERY_FORMATS, MEDIA_TYPES, QUERY_FORMATS, 'json')
      const { sql, limit } = parseBody(querySchema, jsonObject(context))
      const run = deps.lakeJobs.queries.begin({ sql, format, rowsMax: limit, owner: ownerOf(context) })
      context.onGone(() => run.stop())
      return toAnswer(await run.answer, format, context.notes)
    },
  }
}
