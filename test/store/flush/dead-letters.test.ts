// Rows that DuckDB cannot read are kept once each in the dead letters, and the other rows reach the lake.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { expect, test } from 'vitest'
import { TABLES } from '../../../src/schema/tables.ts'
import { findLakeTable } from '../../../src/store/duckdb/sql.ts'
import { moveDeadRows } from '../../../src/store/flush/dead-letters.ts'
import { deadLetterFolder } from '../../../src/store/paths.ts'
import { NOON_MS, removeFolder, temporaryFolder } from '../support.ts'

const rowOf = (id: string, xp: unknown): string =>
  JSON.stringify({
    entry_id: id,
    agent_id: 'a',
    awarded_at: NOON_MS,
    kind: 'analysis',
    xp,
    known_at: NOON_MS,
  })

test('a retried flush adds an unreadable row to the dead letters only once', async () => {
  const folder = temporaryFolder()
  const instance = await DuckDBInstance.create(':memory:', {})
  const connection = await instance.connect()
  const path = join(folder, 'staged.ndjson')
  const table = findLakeTable(TABLES.xp_ledger.name)!
  const flush = async (lines: string[]) => {
    writeFileSync(path, `${lines.join('\n')}\n`)
    const staged = { table, date: '2026-01-01', path, rows: lines.length }
    return moveDeadRows(connection, folder, staged)
  }
  const [good, bad, worse] = [rowOf('x1', 1), rowOf('x2', 'no number'), rowOf('x3', [])]
  for (let attempt = 0; attempt < 2; attempt++) {
    const { staged, deadRows } = await flush([good, bad])
    expect({ rows: staged.rows, deadRows }).toEqual({ rows: 1, deadRows: 1 })
    expect(readFileSync(path, 'utf8')).toBe(`${good}\n`)
  }
  expect((await flush([bad, good, worse])).deadRows).toBe(2)
  const kept = deadLetterFolder(folder)
  expect(readdirSync(kept)).toEqual(['xp_ledger.2026-01-01.ndjson'])
  expect(readFileSync(join(kept, 'xp_ledger.2026-01-01.ndjson'), 'utf8')).toBe(`${bad}\n${worse}\n`)
  connection.closeSync()
  instance.closeSync()
  removeFolder(folder)
})
