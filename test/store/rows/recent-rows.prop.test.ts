// Every unflushed submission is found by its identity, and few others share its hash; so are the latest ones as text.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RECENT_CHUNK_BYTES, RECENT_CHUNK_ROWS, RECENT_CHUNKS_MAX } from '../../../src/store/limits.ts'
import { RecentRows, UnflushedRows } from '../../../src/store/rows/recent-rows.ts'

const RECORD_BYTES = 2_000
const positionOf = (index: number, perSegment: number) => ({
  segment: 1 + Math.floor(index / perSegment),
  offset: 118 + (index % perSegment) * RECORD_BYTES,
  length: RECORD_BYTES - (index % 7),
})

const identityOf = (analysisId: string) => ({ analysisId, agentId: 'agent', mint: 'mint', submittedAtMs: 1 })

test('a submission is found in the log until its segment is in the lake', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string(), { maxLength: 300 }),
      fc.integer({ min: 1, max: 80 }),
      (ids, per) => {
        const unflushed = new UnflushedRows()
        for (const [index, id] of ids.entries())
          unflushed.add(
            [
              { table: 'training', submission: identityOf(id) },
              { table: 'xp_ledger', submission: null },
            ],
            positionOf(index, per),
          )
        expect([unflushed.count('training'), unflushed.count('xp_ledger')]).toEqual([ids.length, ids.length])
        for (const [index, id] of ids.entries())
          expect(unflushed.find(id)).toContainEqual(positionOf(index, per))
        unflushed.forget(1)
        for (const id of ids.slice(0, per))
          expect(unflushed.find(id).map(({ segment }) => segment)).not.toContain(1)
        for (const [index, id] of ids.entries())
          if (index >= per) expect(unflushed.find(id)).toContainEqual(positionOf(index, per))
      },
    ),
    { numRuns: 100 },
  )
})

test('of a hundred thousand submissions few share a hash', () => {
  const unflushed = new UnflushedRows()
  const idOf = (index: number): string => `an_01M7Y1VW${String(index).padStart(18, '0')}`
  for (let index = 0; index < 100_000; index++)
    unflushed.add([{ table: 'training', submission: identityOf(idOf(index)) }], positionOf(index, 25_000))
  let found = 0
  for (let index = 0; index < 100_000; index++) found += unflushed.find(idOf(index)).length
  expect(found).toBeLessThan(100_100)
  expect(unflushed.find('an_unknown').length).toBeLessThan(2)
})

const rowOf = (id: string, text = '') => ({ analysis_id: id, reason: text })

test('the latest submissions are found as they were added', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(
        fc.tuple(
          fc.string({ unit: 'grapheme' }),
          fc.constantFrom('training' as const, 'rejections' as const),
          fc.nat(),
          fc.string({ unit: 'grapheme' }),
        ),
        { selector: ([id]) => id },
      ),
      (added) => {
        const recent = new RecentRows()
        for (const [id, table, knownAtMs, text] of added)
          recent.add(id, table, knownAtMs, JSON.stringify(rowOf(id, text)))
        for (const [id, table, knownAtMs, text] of added)
          expect(recent.find(id)).toEqual({ table, knownAtMs, row: rowOf(id, text) })
        expect(recent.find('not added')).toBeNull()
      },
    ),
  )
})

test('the oldest submissions give way, by their number and by their size', () => {
  const idOf = (index: number): string => `an_${index}`
  const addTo = (recent: RecentRows, index: number, text?: string): void =>
    recent.add(idOf(index), 'training', index, JSON.stringify(rowOf(idOf(index), text)))
  const many = new RecentRows()
  const kept = RECENT_CHUNKS_MAX * RECENT_CHUNK_ROWS
  for (let index = 0; index <= kept; index++) addTo(many, index)
  expect([0, RECENT_CHUNK_ROWS - 1].map((index) => many.find(idOf(index)))).toEqual([null, null])
  expect([RECENT_CHUNK_ROWS, kept].map((index) => many.find(idOf(index))?.knownAtMs)).toEqual([
    RECENT_CHUNK_ROWS,
    kept,
  ])
  const large = new RecentRows()
  const text = 'x'.repeat(RECENT_CHUNK_BYTES / 2)
  for (let index = 0; index <= RECENT_CHUNKS_MAX; index++) addTo(large, index, text)
  expect([0, 1, RECENT_CHUNKS_MAX].map((index) => large.find(idOf(index)) !== null)).toEqual([
    false,
    true,
    true,
  ])
  addTo(large, 99, text.repeat(2))
  expect(large.find(idOf(99))).toBeNull()
})
