// Rows that DuckDB will not read: they are kept, once each, and the others go on.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { expect, test } from 'vitest'
import { TABLES } from '../../../src/schema/tables.ts'
import { findLakeTable } from '../../../src/store/duckdb/sql.ts'
import { withoutDeadRows } from '../../../src/store/flush/dead-letters.ts'
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

test('a flush that fails and is tried again keeps a row that it cannot read once, beside the new ones', async () => {
  const folder = temporaryFolder()
  const instance = await DuckDBInstance.create(':memory:', {})
  const connection = await instance.connect()
  const path = join(folder, 'staged.ndjson')
  const table = findLakeTable(TABLES.xp_ledger.name)!
  const flush = async (lines: string[]) => {
    writeFileSync(path, `${lines.join('\n')}\n`)
    const staged = { table, date: '2026-01-01', path, rows: lines.length }
    return withoutDeadRows(connection, folder, staged)
  }
  const [good, bad, worse] = [rowOf('x1', 1), rowOf('x2', 'no number'), rowOf('x3', [])]
  for (let attempt = 0; attempt < 2; attempt++) {
    const { staged, dead } = await flush([good, bad])
    expect({ rows: staged.rows, dead }).toEqual({ rows: 1, dead: 1 })
    expect(readFileSync(path, 'utf8')).toBe(`${good}\n`)
  }
  expect((await flush([bad, good, worse])).dead).toBe(2)
  const kept = deadLetterFolder(folder)
  expect(readdirSync(kept)).toEqual(['xp_ledger.2026-01-01.ndjson'])
  expect(readFileSync(join(kept, 'xp_ledger.2026-01-01.ndjson'), 'utf8')).toBe(`${bad}\n${worse}\n`)
  connection.closeSync()
  instance.closeSync()
  removeFolder(folder)
})
