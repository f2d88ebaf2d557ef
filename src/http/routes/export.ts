// Exports rows of the training set as Parquet or Arrow. A thread of the store makes the file; this sends it as fast as the client
// reads, and tells in headers where the next request goes on.
import { EXPORT_FORMATS, exportQuery } from '../../schema/api/queries.ts'
import type { Exporter, ExportFormat, ExportJob, ExportRequest } from '../../store/types.ts'
import type { BodyWriter, Context } from '../context.ts'
import { ARROW_TYPE } from '../encode/items.ts'
import { EXPORT_LIMIT_DEFAULT, EXPORT_LIMIT_MAX } from '../limits.ts'
import { negotiate } from '../request/negotiate.ts'
import { timeMs, wholeNumber } from '../request/parameters.ts'
import type { Route } from '../route.ts'

export interface ExportDeps {
  exports: Exporter
}

export const EXPORT_PATH = '/api/v1/training/export'
const PARQUET_TYPE = 'application/vnd.apache.parquet'
export const CONTENT_TYPES: Readonly<Record<ExportFormat, string>> = {
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
const NO_BYTES = Buffer.alloc(0)

function parseRequest(context: Context): ExportRequest {
  const { query } = context
  return {
    format: negotiate(context, EXPORT_FORMATS, MEDIA_TYPES, EXPORT_FORMATS, 'parquet'),
    fromMs: timeMs(query, 'from'),
    toMs: timeMs(query, 'to'),
    since: query.get('since') || null,
    limit: wholeNumber(query, 'limit', { min: 1, max: EXPORT_LIMIT_MAX, otherwise: EXPORT_LIMIT_DEFAULT })
      .value,
  }
}

/** Sends the chunks of a job. After one that fills the socket, waits until there is room. */
async function sendExport(job: ExportJob, writer: BodyWriter): Promise<void> {
  let isClosed = false
  let resume = () => {}
  writer.onWritable(() => resume())
  writer.onClosed(() => {
    isClosed = true
    job.stop()
    resume()
  })
  try {
    for (let chunk = await job.next(); chunk !== null; chunk = await job.next()) {
      if (isClosed || writer.write(chunk) || isClosed) continue
      await new Promise<void>((resolve) => {
        resume = resolve
      })
    }
    writer.end(NO_BYTES)
  } catch {
    job.stop()
    writer.fail()
  }
}

export function exportRoutes({ exports }: ExportDeps): Route[] {
  return [
    {
      method: 'GET',
      path: EXPORT_PATH,
      access: 'researcher',
      summary: 'The training set as Parquet or Arrow, from where the last answer ended',
      docs: { operationId: 'exportTraining', tag: 'lake', query: exportQuery, answers: {} },
      handle: async (context) => {
        const request = parseRequest(context)
        const job = exports.begin(request)
        context.onGone(() => job.stop())
        const { rows, more, next } = await job.head
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
          },
          stream: (writer) => void sendExport(job, writer),
          onDiscard: () => job.stop(),
        }
      },
    },
  ]
}
