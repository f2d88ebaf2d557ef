// What the lake of a stopped writer has of the submissions, compared with what agents were told.
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { expect } from 'vitest'
import { LOW_COVERAGE_COUNT, XP_TABLE } from '../../../src/schema/xp.ts'
import type { Sent } from './agents.ts'

interface StoredRow {
  id: string
  agent: string
  mint: string
  summary: string
  xp: number
}

async function rowsOf(dataDir: string): Promise<StoredRow[]> {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  const table = (name: string) => `read_parquet('${join(dataDir, 'lake', name, '*/*.parquet')}')`
  const sql = `SELECT t.analysis_id AS id, t.agent_id AS agent, t.mint, t.summary, x.xp::DOUBLE AS xp
    FROM ${table('training')} t LEFT JOIN ${table('xp_ledger')} x ON x.analysis_id = t.analysis_id`
  const rows = (await connection.runAndReadAll(sql)).getRowObjectsJson() as unknown as StoredRow[]
  connection.closeSync()
  instance.closeSync()
  return rows
}

/** Every acknowledged submission is there exactly once, the others at most once, with the XP that was told and that is due. */
export async function checkStored(dataDir: string, sent: readonly Sent[]): Promise<void> {
  const rows = await rowsOf(dataDir)
  const bySummary = new Map<string, StoredRow[]>()
  for (const row of rows) bySummary.set(row.summary, [...(bySummary.get(row.summary) ?? []), row])
  const lost: string[] = []
  const doubled: string[] = []
  for (const { summary, acknowledged } of sent) {
    const found = bySummary.get(summary) ?? []
    if (found.length > 1) doubled.push(summary)
    if (acknowledged === null) continue
    const isTold = found.some(({ id, xp }) => id === acknowledged.analysisId && xp === acknowledged.xpEarned)
    if (!isTold) lost.push(`${summary} ${JSON.stringify([acknowledged, found])}`)
  }
  expect(lost).toEqual([])
  expect(doubled).toEqual([])
  expect(rows.length).toBeLessThanOrEqual(sent.length)
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
  const { base, firstBonus, lowCoverageBonus } = XP_TABLE.analysis
  for (const [mint, ofMint] of Map.groupBy(rows, ({ mint }) => mint)) {
    const due = ofMint.map(
      (_, before) =>
        base + (before === 0 ? firstBonus : 0) + (before < LOW_COVERAGE_COUNT ? lowCoverageBonus : 0),
    )
    expect(
      ofMint.map(({ xp }) => xp).toSorted((a, b) => b - a),
      mint,
    ).toEqual(due)
  }
}
