// node scripts/make-sample.ts
// Makes the sample of the lake of the current schema version: files, checksums, views, the agents. The same code gives the same
// bytes. A sample is frozen with the first release of its schema version and never made again.
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assert } from '../src/lib/assert.ts'
import { LAKE_SCHEMA_VERSION } from '../src/schema/tables.ts'
import { identifier, LAKE_TABLES } from '../src/store/duckdb/sql.ts'
import { selectLabelled, selectNewestRows } from '../src/store/lake/parquet-sql.ts'
import { lakeFolder } from '../src/store/paths.ts'
import { sampleFolder } from '../src/store/query/sample-lake.ts'
import { verifyLake } from '../src/store/verify/verify.ts'
import { type RunOptions, type RunReport, runSample } from './sample/run.ts'

const SAMPLE_FOLDER = sampleFolder()

const OPTIONS: Omit<RunOptions, 'dataDir'> = {
  seed: 20_251_103,
  startMs: Date.UTC(2025, 10, 3, 6),
  hours: 48,
  agentHours: 46,
  tokens: 60,
  tradesPerSecond: 0.08,
  // Less often than a server does, to save time.
  flushMs: 3_600_000,
}

/** Paths of the Parquet files below a folder, sorted. */
const parquetIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.parquet') && !name.startsWith('.'))
    .sort()

function copyFiles(lakeDir: string): void {
  for (const name of parquetIn(lakeDir)) cpSync(join(lakeDir, name), join(SAMPLE_FOLDER, name))
}

/** Lines for `sha256sum --check` in the sample's folder. */
function checksums(): string {
  const lines = parquetIn(SAMPLE_FOLDER).map((name) => {
    const hash = createHash('sha256').update(readFileSync(join(SAMPLE_FOLDER, name)))
    return `${hash.digest('hex')}  ${name}\n`
  })
  return lines.join('')
}

/** SQL of the catalog's views on the sample, for DuckDB in the repository's root. */
function views(): string {
  const head = '-- The tables of the lake over the frozen sample: run DuckDB in the root of the repository.\n'
  const lines = LAKE_TABLES.map((table) => {
    const path = `data/samples/v${LAKE_SCHEMA_VERSION}/${table.name}/*/*.parquet`
    return `CREATE OR REPLACE VIEW ${identifier(table.name)} AS ${selectNewestRows(table, [{ path, schemaVersion: LAKE_SCHEMA_VERSION }])};\n`
  })
  const labelled = `CREATE OR REPLACE VIEW labelled AS ${selectLabelled('training', 'outcomes')};\n`
  return head + lines.join('') + labelled
}

function readme({ agents }: RunReport): string {
  const rows = agents.map(
    ({ agentId, strategy }) => `| \`${agentId}\` | ${strategy.name} | ${strategy.description} |`,
  )
  const { seed, startMs, hours, agentHours, tokens, tradesPerSecond } = OPTIONS
  return `# Sample of the lake, schema version ${LAKE_SCHEMA_VERSION}

Frozen: tests read it, and it is never written again. All of it is **made up**: the engine, the submission service and the
store are the real ones, the market is the simulator’s (seed ${seed}, ${tokens} tokens, ${tradesPerSecond} trades a second for ${hours} hours from
${new Date(startMs).toISOString()}, after a day of history at the same rate), and scripted agents submitted for ${agentHours} hours. Time is the
market’s; how long a row took to be durable was drawn, not measured, and what the server itself makes (bars, tokens,
outcomes) went to the lake once an hour, not every ten seconds. All events that the market took are recorded, from its first one on.
Made by \`node scripts/make-sample.ts\`.

- \`<table>/dt=YYYY-MM-DD/part-*.parquet\`: the lake, as a server writes it; described in [../../README.md](../../README.md)
- \`views.sql\`: the tables as views, for DuckDB in the repository’s root
- \`SHA256SUMS\`: \`sha256sum --check SHA256SUMS\`

The agents, which know more or less and say what they like:

| Agent | Name | What it does |
| --- | --- | --- |
${rows.join('\n')}
`
}

const dataDir = mkdtempSync(join(tmpdir(), 'mintlake-sample-'))
try {
  const report = await runSample({ dataDir, ...OPTIONS })
  const { findings } = await verifyLake({ dataDir, nowMs: OPTIONS.startMs + OPTIONS.hours * 3_600_000 })
  assert(findings.length === 0, `the lake is whole: ${JSON.stringify(findings)}`)
  rmSync(SAMPLE_FOLDER, { recursive: true, force: true })
  mkdirSync(SAMPLE_FOLDER, { recursive: true })
  copyFiles(lakeFolder(dataDir))
  writeFileSync(join(SAMPLE_FOLDER, 'SHA256SUMS'), checksums())
  writeFileSync(join(SAMPLE_FOLDER, 'views.sql'), views())
  writeFileSync(join(SAMPLE_FOLDER, 'README.md'), readme(report))
  console.log(report.answers)
} finally {
  rmSync(dataDir, { recursive: true, force: true })
}
