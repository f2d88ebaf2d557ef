// Which files a round of compaction merges.
import { describe, expect, test } from 'vitest'
import { planMerges } from '../../../src/store/compaction/merge-plan.ts'
import type { ListedFile } from '../../../src/store/lake/manifest.ts'
import { MERGED_ROWS_MAX } from '../../../src/store/limits.ts'

let seq = 0
function file(rows: number, date = '2025-06-01', writtenAtMs = 100): ListedFile {
  const first = seq + 1
  seq += rows
  const figures = { rows, bytes: rows * 100, sha256: null, schemaVersion: 1, writtenAtMs }
  return { table: 'training', date, first, last: seq, ...figures }
}
const files = (count: number, rows: number, date?: string) =>
  Array.from({ length: count }, () => file(rows, date))
const sizes = (groups: ListedFile[][]) => groups.map((group) => group.map(({ rows }) => rows))

describe('planMerges', () => {
  test('it merges neighbours of one tier once there are eight', () => {
    expect(planMerges(files(7, 10), 100, 100)).toEqual([])
    expect(sizes(planMerges(files(9, 10), 100, 100))).toEqual([Array(9).fill(10)])
  })

  test('it does not merge larger neighbours, or files of different dates', () => {
    const parts = [file(100_000), ...files(8, 10), ...files(7, 10, '2025-06-02')]
    expect(sizes(planMerges(parts, 100, 100))).toEqual([Array(8).fill(10)])
  })

  test('it merges all files of a date without new files', () => {
    const parts = [file(100_000), file(3_000), file(10), file(5, '2025-06-02')]
    expect(sizes(planMerges(parts, 100, 0))).toEqual([[100_000, 3_000, 10]])
    expect(planMerges(parts, 100, 1)).toEqual([])
  })

  test('a file of a time to come keeps no date waiting, nor does it say that the date is quiet', () => {
    const ahead = file(10, undefined, 10_000)
    expect(sizes(planMerges([ahead, file(5)], 1_100, 1_000))).toEqual([[10, 5]])
    expect(planMerges([ahead, file(5)], 1_099, 1_000)).toEqual([])
  })

  test('it makes no file larger than the limit', () => {
    const parts = files(8, MERGED_ROWS_MAX / 3)
    const groups = planMerges(parts, 100, 100)
    expect(groups.map((group) => group.length)).toEqual([3, 3, 2])
    const after = groups.map((group) => file(group.reduce((sum, { rows }) => sum + rows, 0)))
    expect(planMerges(after, 100, 0)).toEqual([])
  })
})

test('a row is rewritten a handful of times however many flushes there are', () => {
  let parts: ListedFile[] = []
  let written = 0
  const flushes = 8_640
  for (let flush = 0; flush < flushes; flush++) {
    parts.push(file(100))
    for (let groups = planMerges(parts, 100, 100); groups.length > 0; groups = planMerges(parts, 100, 100)) {
      for (const group of groups) {
        const rows = group.reduce((sum, part) => sum + part.rows, 0)
        written += rows
        const at = parts.indexOf(group[0])
        parts = [
          ...parts.slice(0, at),
          { ...group[0], last: group[group.length - 1].last, rows },
          ...parts.slice(at + group.length),
        ]
      }
    }
  }
  expect(written / (flushes * 100)).toBeLessThan(6)
  expect(parts.length).toBeLessThan(40)
})
