// Answers of the routes that give the lake to researchers on other machines.
import { z } from 'zod'
import { okData, withExample } from './parts.ts'

export const lakeFileSchema = z.object({
  name: z.string().describe('Name of the file; it never stands for other content'),
  path: z.string().describe('Path on this server, to be fetched with the same key'),
  dt: z.string().describe('UTC date of its rows, YYYY-MM-DD'),
  rows: z.int(),
  bytes: z.int(),
  sha256: z.string().nullable().describe('Of the content, hexadecimal; null for files of early versions'),
  schemaVersion: z.int(),
})

export const lakeTableSchema = z.object({
  table: z.string(),
  description: z.string(),
  rows: z.int(),
  bytes: z.int(),
  latestBy: z
    .array(z.string())
    .nullable()
    .describe('Of rows with the same values of these columns only the newest counts; null: every row counts'),
  newestBy: z
    .array(z.string())
    .describe('The columns that order such rows, the newest last: the later ones decide between equals'),
  files: z.array(lakeFileSchema),
})

export const lakeCatalogSchema = z.object({
  schemaVersion: z.int().describe('Version of the columns that the newest files have'),
  tables: z.array(lakeTableSchema),
})
export type LakeCatalog = z.infer<typeof lakeCatalogSchema>

export const lakeCatalogAnswerSchema = withExample(okData(lakeCatalogSchema), {
  ok: true,
  data: {
    schemaVersion: 3,
    tables: [
      {
        table: 'training',
        description: 'One labelled example per accepted submission',
        rows: 1_200,
        bytes: 412_000,
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
  },
})
