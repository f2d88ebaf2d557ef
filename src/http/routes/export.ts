// Exports rows of the training set as Parquet or Arrow. A job of the store makes the file; this sends it as fast as the client reads,
// and tells in headers where the next request goes on.

import { z } from 'zod'
import {
  EXPORT_FORMATS,
  EXPORT_LIMIT_DEFAULT,
  EXPORT_LIMIT_MAX,
  exportQuery,
  MISSING_FILES,
} from '../../schema/api/lake.ts'
import type { ExportFormat, ExportRequest } from '../../store/types.ts'
import { type Context, NO_BYTES } from '../context.ts'
import { CACHE_HEADERS, CLAMPED_HEADER, text, whole } from '../docs/headers.ts'
import { ARROW_TYPE } from '../encode/items.ts'
import { negotiate } from '../request/negotiate.ts'
import { checkSpan, readAll, timeMs, wholeNumber } from '../request/parameters.ts'
import { sendChunks } from '../response/send-chunks.ts'
import type { Route } from '../route.ts'
import type { RouteParts } from './route-parts.ts'

export const PARQUET_TYPE = 'application/vnd.apache.parquet'
const CONTENT_TYPES: Readonly<Record<ExportFormat, string>> = {
  parquet: PARQUET_TYPE,
  arrow: ARROW_TYPE,
}
const MEDIA_TYPES: Readonly<Record<string, ExportFormat>> = {
  [PARQUET_TYPE]: 'parquet',
  [ARROW_TYPE]: 'arrow',
  'application/octet-stream': 'parquet',
  'application/*': 'parquet',
  '*/*': 'parquet',
}

function parseRequest(context: Context): { request: ExportRequest; isClamped: boolean } {
  const { query } = context
  const limits = { min: 1, max: EXPORT_LIMIT_MAX, otherwise: EXPORT_LIMIT_DEFAULT }
  const request = readAll({
    format: () => negotiate(context, EXPORT_FORMATS, MEDIA_TYPES, EXPORT_FORMATS, 'parquet'),
    fromMs: () => timeMs(query, 'from'),
    toMs: () => timeMs(query, 'to'),
    since: () => query.get('since') || null,
    limit: () => wholeNumber(query, 'limit', limits),
  })
  checkSpan(request.fromMs, request.toMs)
  const { value, clamped } = request.limit
  return { request: { ...request, limit: value }, isClamped: clamped }
}

const EXPORT_HEADERS = z.object({
  ...CACHE_HEADERS.shape,
  'Content-Disposition': text('A file name'),
  'X-Result-Count': whole('Rows of this answer'),
  'X-Clamped': CLAMPED_HEADER,
  'X-Next-Since': text('`since` of the next request'),
  'X-More': z.enum(['true', 'false']).meta({ description: 'Whether there are more rows now' }),
  'X-Missing-Files': whole(MISSING_FILES),
})

export const exportRoute = (deps: RouteParts): Route => ({
  method: 'GET',
  path: '/api/v1/training/export',
  access: 'researcher',
  summary: 'The training set as Parquet or Arrow, from where the last answer ended',
  docs: {
    operationId: 'exportTraining',
    tag: 'lake',
    query: exportQuery,
    answers: {
      200: {
        description: 'A file of rows',
        content: { [PARQUET_TYPE]: null, [ARROW_TYPE]: null },
        headers: EXPORT_HEADERS,
      },
    },
    errors: ['not_acceptable', 'store_unavailable'],
    unversioned: true,
  },
  handle: async (context) => {
    const { request, isClamped } = parseRequest(context)
    const job = deps.lakeJobs.exports.begin(request)
    context.onGone(() => job.stop())
    const { rows, more, next, missingFiles } = await job.head
    return {
      status: 200,
      body: NO_BYTES,
      contentType: CONTENT_TYPES[request.format],
      headers: {
        'Cache-Control': 'no-store',
        'Content-Disposition': `attachment; filename="training.${request.format}"`,
        'X-Result-Count': `${rows}`,
        'X-Next-Since': next,
        'X-More': `${more}`,
        'X-Missing-Files': `${missingFiles}`,
        ...(isClamped && { 'X-Clamped': `limit=${request.limit}` }),
      },
      stream: (writer) => void sendChunks(job, writer),
      onDiscard: () => job.stop(),
    }
  },
})
