// Rows by table and date, as lines of JSON.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { type Row, TABLES } from '../../../src/schema/tables.ts'
import { RowSplitter } from '../../../src/store/flush/row-splitter.ts'
import { SPLIT_BYTES } from '../../../src/store/limits.ts'

const folder = mkdtempSync(join(tmpdir(), 'mintlake-splitter-'))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const DAY_MS = 86_400_000
const { xp_ledger: ledger, tokens } = TABLES
const readLines = (path: string): Row[] =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

it('writes each row to the file of its table and date, with the time at which it became durable', () => {
  const splitter = new RowSplitter(folder)
  const award = (day: number, note: string): Row => ({ awarded_at: day * DAY_MS + 5, note })
  const addText = (row: Row, knownAtMs: number) =>
    splitter.addText(ledger, Number(row.awarded_at), Buffer.from(JSON.stringify(row)), knownAtMs)
  addText(award(1, 'été 🎈'), 10)
  addText(award(0, 'a'), 11)
  splitter.add(tokens, { updated_at: 7, name: 'x' }, 12)
  addText({ ...award(1, 'has a time of its own'), known_at: 3 }, 13)
  addText(award(1, 'z'.repeat(2 * SPLIT_BYTES)), 14)
  addText(award(1, 'last'), 15)
  const files = splitter.finish()
  expect(files.map(({ table, date, rows }) => [table.name, date, rows])).toEqual([
    ['tokens', '1970-01-01', 1],
    ['xp_ledger', '1970-01-01', 1],
    ['xp_ledger', '1970-01-02', 4],
  ])
  expect(readLines(files[0].path)).toEqual([{ updated_at: 7, name: 'x', known_at: 12 }])
  expect(readLines(files[1].path)).toEqual([{ ...award(0, 'a'), known_at: 11 }])
  expect(readLines(files[2].path)).toEqual([
    { ...award(1, 'été 🎈'), known_at: 10 },
    { ...award(1, 'has a time of its own'), known_at: 13 },
    { ...award(1, 'z'.repeat(2 * SPLIT_BYTES)), known_at: 14 },
    { ...award(1, 'last'), known_at: 15 },
  ])
})
