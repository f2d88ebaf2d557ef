// The routes that give the lake to researchers on other machines: its files, and SQL on it.
import { z } from 'zod'
import { withExample } from '../example.ts'
import * as parameter from './parameters.ts'
import { metaWith, okData, wholeCount } from './parts.ts'

/** What `missingFiles` and `X-Missing-Files` count. */
export const MISSING_FILES =
  'Missing or damaged files, whose rows are left out until the operator has restored them or settled the loss'

const lakeFileSchema = z.object({
  name: z
    .string()
    .describe(
      'Name of the file. Its content changes only where a file of bars is written anew without bars that the lake had twice: compare sha256',
    ),
  path: z.string().describe('Path on this server, to be fetched with the same key'),
  dt: z.string().describe('UTC date of its rows, YYYY-MM-DD'),
  rows: z.int(),
  bytes: z.int(),
  sha256: z.string().nullable().describe('Of the content, hexadecimal; null for files of early versions'),
  schemaVersion: z.int(),
})

const lakeTableSchema = z.object({
  table: z.string(),
  description: z.string(),
  rows: z.int(),
  bytes: z.int(),
  missingFiles: wholeCount(MISSING_FILES),
  rowsLost: wholeCount('Their rows that no other file has'),
  latestBy: z
    .array(z.string())
    .nullable()
    .describe('Of rows with the same values of these columns only the newest counts; null: every row counts'),
  newestBy: z
    .array(z.string())
    .describe(
      'The columns that order such rows, the newest last: the later ones decide between equals; [] where every row counts',
    ),
  files: z.array(lakeFileSchema),
})

const lakeCatalogSchema = z.object({
  schemaVersion: z.int().describe('Version of the columns that the newest files have'),
  tables: z.array(lakeTableSchema),
})
export type LakeCatalog = z.infer<typeof lakeCatalogSchema>

export const lakeCatalogAnswerSchema = okData(lakeCatalogSchema, {
  schemaVersion: 3,
  tables: [
    {
      table: 'training',
      description: 'One labelled example per accepted submission',
      rows: 1_200,
      bytes: 412_000,
      missingFiles: 0,
      rowsLost: 0,
      latestBy: null,
      newestBy: [],
      files: [
        {
          name: 'training-2026-02-25-000000000000001-000000000001200.parquet',
          path: '/api/v1/lake/files/training-2026-02-25-000000000000001-000000000001200.parquet',
          dt: '2026-02-25',
          rows: 1_200,
          bytes: 412_000,
          sha256: null,
          schemaVersion: 3,
        },
      ],
    },
  ],
})

/** Rows of one export of the training set; a larger set takes several requests, each from where the last one ended. */
export const EXPORT_LIMIT_DEFAULT = 100_000
export const EXPORT_LIMIT_MAX = 500_000
export const EXPORT_FORMATS = ['parquet', 'arrow'] as const

/** GET /api/v1/training/export */
export const exportQuery = z.object({
  format: parameter.word(EXPORT_FORMATS, '`parquet` unless told here or by Accept'),
  from: parameter.time('Submitted at this time or later'),
  to: parameter.time('Submitted before this time'),
  since: parameter.text(
    'X-Next-Since of the answer before, for the rows after it; or Unix ms, for rows known from then on',
  ),
  limit: parameter.limit(EXPORT_LIMIT_DEFAULT, EXPORT_LIMIT_MAX, ''),
})

/** Longest SQL text, UTF-16 units. */
export const SQL_CHARACTERS_MAX = 16_384
/** Rows of one answer. */
const QUERY_ROWS_DEFAULT = 1_000
export const QUERY_ROWS_MAX = 10_000

/** DuckDB would take the text before it for the whole. */
const NO_NUL = /^[^\0]*$/

export const QUERY_FORMATS = ['json', 'csv'] as const

export const querySchema = withExample(
  z.object({
    sql: z.string().min(1).max(SQL_CHARACTERS_MAX).regex(NO_NUL, 'must not have a NUL character').meta({
      description: 'SQL as DuckDB understands it; of several statements the last one gives the rows',
    }),
    limit: z
      .int()
      .min(1)
      .max(QUERY_ROWS_MAX)
      .default(QUERY_ROWS_DEFAULT)
      .meta({ description: 'Rows that are wanted; meta.truncated says whether there are more' }),
  }),
  { sql: 'SELECT sentiment, count(*) AS n FROM training GROUP BY sentiment' },
)

const columnSchema = z.object({
  name: z.string().meta({ description: 'Unique: of equal names the later ones get a number' }),
  type: z.string().meta({ description: 'As DuckDB names it, for example BIGINT or VARCHAR[]' }),
})

export const queryAnswerSchema = withExample(
  z.object({
    ok: z.literal(true),
    data: z.object({
      columns: z.array(columnSchema),
      rows: z.array(z.array(z.unknown())).meta({
        description:
          'A value for each column. Numbers are JSON numbers where a double holds them exactly: of BIGINT, HUGEINT, DECIMAL and ' +
          'their kin those of more than 15 digits are texts. NaN, Infinity and -Infinity are texts. Times are texts in UTC ' +
          '(TIMESTAMP: YYYY-MM-DD HH:MM:SS.ffffff), use epoch_ms(…) for Unix ms. A BLOB is a text with \\xNN for bytes that are ' +
          'no printable ASCII. Lists are arrays, a STRUCT is an object, a MAP is an array of {key, value}, a UNION is {tag, value}, ' +
          'an INTERVAL is {months, days, micros}.',
      }),
    }),
    meta: metaWith({
      rows: wholeCount('Rows of this answer'),
      truncated: z.boolean().meta({ description: 'Whether the result has more rows than this answer' }),
      ms: wholeCount('How long the query ran').meta({ unit: 'ms' }),
      missingFiles: wholeCount(MISSING_FILES),
    }),
  }),
  {
    ok: true,
    data: {
      columns: [
        { name: 'sentiment', type: 'VARCHAR' },
        { name: 'n', type: 'BIGINT' },
      ],
      rows: [['bullish', 812]],
    },
    meta: { rows: 1, truncated: false, ms: 24, missingFiles: 0 },
  },
)
