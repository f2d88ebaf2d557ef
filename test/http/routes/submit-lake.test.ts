// An accepted submission as a researcher sees it: from another process with its own DuckDB, while the server runs.
import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { SNAPSHOT_FIELDS } from '../../../src/schema/datapoint.ts'
import { LAKE_SCHEMA_VERSION, SNAPSHOT_COLUMNS, TABLES } from '../../../src/schema/tables.ts'
import { quant, SUMMARY, seedToken, submission, submit, VALUES } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

const READER = `
  import { DuckDBInstance } from '@duckdb/node-api'
  const connection = await (await DuckDBInstance.create(':memory:')).connect()
  const result = await connection.runAndReadAll(process.argv[1])
  console.log(JSON.stringify(result.getRowObjectsJson()))
`

let server: TestServer
beforeAll(async () => {
  server = await openTestServer({ 'lake-flush-ms': '100' })
})
afterAll(() => server.remove())

async function readElsewhere(sql: string): Promise<Record<string, unknown>[]> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', READER, sql])
  return JSON.parse(stdout)
}

const filesOf = (table: string): string[] => {
  const folder = join(server.dataDir, 'lake', table)
  return existsSync(folder)
    ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.parquet'))
    : []
}

it('an accepted submission is a row of training with every column, and its XP is a row of the ledger', async () => {
  const mint = await seedToken(server.client, Date.now())
  const key = await server.client.register()
  const snapshot = { ...VALUES, volume24h: 21_000, snapshotAt: Date.now() }
  const { body } = await submit(server.client, key, submission(mint, { snapshot }))
  expect(body.ok).toBe(true)
  while (filesOf('training').length === 0 || filesOf('xp_ledger').length === 0)
    await new Promise((resolve) => setTimeout(resolve, 20))

  const glob = (table: string) =>
    `read_parquet('${join(server.dataDir, 'lake', table, '*', '*.parquet')}', hive_partitioning = true)`
  const rows = await readElsewhere(
    `SELECT *, epoch_ms(submitted_at)::DOUBLE AS submitted_ms, known_at >= submitted_at AS known_after FROM ${glob('training')}`,
  )
  expect(rows).toHaveLength(1)
  const [row] = rows
  for (const { name } of TABLES.training.columns) expect(row).toHaveProperty(name)
  expect(row).toMatchObject({
    analysis_id: body.analysisId,
    mint,
    sentiment: 'bullish',
    score: 70,
    summary: SUMMARY,
    outcome: 'validated',
    validated: true,
    deviation_pct: 5,
    risk_factors: quant.riskFactors,
    risk_level: quant.riskLevel,
    has_mint_authority: false,
    has_freeze_authority: null,
    submitted_volume_24h: 21_000,
    dev_volume_24h: 5,
    dev_price_usd: 0,
    schema_version: LAKE_SCHEMA_VERSION,
    submitted_ms: body.createdAt,
    known_after: true,
  })
  // Features are those of the server, not those that the client sent.
  for (const field of SNAPSHOT_FIELDS) expect(row[SNAPSHOT_COLUMNS[field].name]).toBe(VALUES[field])
  const ledger = await readElsewhere(`SELECT kind, xp, analysis_id FROM ${glob('xp_ledger')}`)
  expect(ledger).toEqual([{ kind: 'analysis', xp: 50, analysis_id: body.analysisId }])
})
