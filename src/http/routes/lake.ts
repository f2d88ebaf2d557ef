// The lake for researchers on other machines: a list of its files, and the files in ranges of bytes, as DuckDB's httpfs and
// other Parquet readers ask for them.
import { z } from 'zod'
import { type LakeCatalog, lakeCatalogAnswerSchema } from '../../schema/api/lake.ts'
import { LAKE_SCHEMA_VERSION, TABLES, type Table } from '../../schema/tables.ts'
import type { LakeFile, SetAsideFile } from '../../store/types.ts'
import { type Context, type HttpAnswer, NO_BYTES, okData } from '../context.ts'
import { jsonDocs } from '../docs/operation-docs.ts'
import { LAKE_DOWNLOAD_MS_MAX } from '../limits.ts'
import { byteRange } from '../request/byte-range.ts'
import { oneOf } from '../request/parameters.ts'
import { hasCurrent, notModified } from '../response/etag.ts'
import { sendChunks } from '../response/send-chunks.ts'
import type { Route } from '../route.ts'
import { PARQUET_TYPE } from './export.ts'
import type { RouteParts } from './route-parts.ts'

const CATALOG_PATH = '/api/v1/lake/catalog'
const FILES_PATH = '/api/v1/lake/files'

const ALL_TABLES: readonly Table[] = Object.values(TABLES)
const LAKE_TABLES = ALL_TABLES.filter(({ lakeDateColumn }) => lakeDateColumn !== null)
const TABLE_NAMES = LAKE_TABLES.map(({ name }) => name)
const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)

function catalogOf(
  files: readonly LakeFile[],
  lostFiles: readonly SetAsideFile[],
  wanted: string | null,
): LakeCatalog {
  const byTable = Map.groupBy(files, ({ table }) => table)
  const tables = LAKE_TABLES.filter(({ name }) => wanted === null || name === wanted)
  return {
    schemaVersion: LAKE_SCHEMA_VERSION,
    tables: tables.map(({ name, comment, latestBy = null, newestBy = [] }) => {
      const listed = byTable.get(name) ?? []
      const lost = lostFiles.filter(({ table }) => table === name)
      return {
        table: name,
        description: comment,
        rows: sum(listed.map(({ rows }) => rows)),
        bytes: sum(listed.map(({ bytes }) => bytes)),
        missingFiles: lost.length,
        rowsLost: sum(lost.map(({ rowsLost }) => rowsLost)),
        latestBy: latestBy && [...latestBy],
        newestBy: [...newestBy],
        files: listed.map((file) => ({
          name: file.name,
          path: `${FILES_PATH}/${file.name}`,
          dt: file.date,
          rows: file.rows,
          bytes: file.bytes,
          sha256: file.sha256,
          schemaVersion: file.schemaVersion,
        })),
      }
    }),
  }
}

/** Strong: it names these very bytes, so that a reader may put ranges together. */
const strongEtag = ({ sha256, bytes, writtenAtMs }: LakeFile): string =>
  `"${sha256 ?? `${bytes}-${writtenAtMs}`}"`

async function sendFile(
  { downloads, downloadMsMax = LAKE_DOWNLOAD_MS_MAX }: RouteParts,
  context: Context,
): Promise<HttpAnswer> {
  const { headers, id } = context
  let isGone = false
  context.onGone(() => {
    isGone = true
  })
  const file = await downloads.find(id)
  const etag = strongEtag(file)
  const validators = { ETag: etag, 'Cache-Control': 'private, no-cache' }
  if (hasCurrent(context, etag)) return notModified(validators)
  // A range of another version of the file would not fit to what the client has.
  const isRanged = headers.ifRange === '' || headers.ifRange === etag
  const range = isRanged ? byteRange(headers.range, file.bytes) : null
  const { first, last } = range ?? { first: 0, last: file.bytes - 1 }
  const download = await downloads.begin(file, first, last - first + 1)
  if (isGone) download.stop()
  context.onGone(() => download.stop())
  return {
    status: range === null ? 200 : 206,
    body: NO_BYTES,
    bytes: last - first + 1,
    contentType: PARQUET_TYPE,
    headers: {
      ...validators,
      'Accept-Ranges': 'bytes',
      'Last-Modified': new Date(file.writtenAtMs).toUTCString(),
      ...(range !== null && { 'Content-Range': `bytes ${first}-${last}/${file.bytes}` }),
    },
    stream: (writer) => void sendChunks(download, writer, downloadMsMax),
    onDiscard: () => download.stop(),
  }
}

const FILE_HEADERS = z.object({
  'Accept-Ranges': z.literal('bytes'),
  'Last-Modified': z.string().meta({ description: 'When the file was written' }),
})

/** Not counted as reads: one query takes dozens of requests. The maximum of downloads at once bounds them instead. */
export function lakeRoutes(deps: RouteParts): Route[] {
  return [
    {
      method: 'GET',
      path: CATALOG_PATH,
      access: 'researcher',
      summary: 'The tables of the lake and their Parquet files',
      docs: jsonDocs('getLakeCatalog', 'lake', 'The tables', lakeCatalogAnswerSchema, {
        description:
          'The files as of one moment: together they hold each row once. A file that a merge has replaced since is served for ' +
          'a few minutes more; then its address answers 410, and the catalog lists the file that has its rows. One that is lost or damaged is not listed but ' +
          'counted, and answers 503, until the operator has put it back or settled the loss.',
        query: z.object({ table: z.enum(TABLE_NAMES).optional().describe('Only this table') }),
      }),
      handle: async ({ query }) => {
        const wanted = oneOf(query, 'table', ['', ...TABLE_NAMES], '')
        return okData(catalogOf(await deps.downloads.list(), deps.store.lostFiles, wanted || null))
      },
    },
    {
      method: 'GET',
      path: `${FILES_PATH}/{id}`,
      access: 'researcher',
      summary: 'A Parquet file of the lake, whole or a range of its bytes',
      docs: {
        operationId: 'getLakeFile',
        tag: 'lake',
        description:
          'The name is that of the catalog. HEAD tells the length. One range of bytes is served (Range, If-Range); of several ' +
          'the file is served whole. The ETag is strong: it is the sha256 of the content, which ' +
          'changes only where a file of bars is written anew without bars that the lake had twice (mintlake lake repair).',
        headers: z.object({
          Range: z.string().optional().describe('bytes=FIRST-LAST, bytes=FIRST- or bytes=-COUNT'),
          'If-Range': z.string().optional().describe('The ETag that the range belongs to'),
        }),
        answers: {
          200: { description: 'The whole file', content: { [PARQUET_TYPE]: null }, headers: FILE_HEADERS },
          206: {
            description: 'The range',
            content: { [PARQUET_TYPE]: null },
            headers: FILE_HEADERS.extend({
              'Content-Range': z.string().meta({ description: 'Which bytes of how many' }),
            }),
          },
        },
        errors: ['not_found', 'file_gone', 'range_not_satisfiable', 'store_unavailable'],
      },
      handle: (context) => sendFile(deps, context),
    },
  ]
}
