// Every unflushed submission is found by its identity, and few others share its hash.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { UnflushedRows } from '../../../src/store/rows/recent-rows.ts'

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
