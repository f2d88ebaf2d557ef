// Lists of submissions from the real store: from its log, from its lake, and while a flush moves them from one to the other.
import fc from 'fast-check'
import { ulid } from 'ulid'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DAY_MS } from '../../src/lib/time.ts'
import { compareKeys, type SubmissionKey, type SubmissionPage } from '../../src/schema/api/submission-list.ts'
import { openDatabase } from '../../src/store/duckdb/database.ts'
import { openLake } from '../../src/store/lake/lake.ts'
import { listSubmissions } from '../../src/store/query/lake-lists.ts'
import type { Store } from '../../src/store/store.ts'
import { NOON_MS, openTestStore, removeFolder, submission, temporaryFolder, writeOf } from './support.ts'

let folder: string
let store: Store
beforeAll(async () => {
  folder = temporaryFolder()
  store = await openTestStore(folder)
})
afterAll(async () => {
  await store.close()
  removeFolder(folder)
})

let made = 0
/** Identities that are not in the order in which they are made. */
const nextId = (timeMs: number): string =>
  `an_${ulid(timeMs, () => 0).slice(0, 10)}${String((++made * 7_919) % 1_000_003).padStart(16, '0')}`

/** Commits a submission and returns its place in lists. */
async function commit(
  agentId: string,
  mint: string,
  timeMs: number,
  isRejected = false,
): Promise<SubmissionKey> {
  const analysisId = nextId(timeMs)
  const row = { agent_id: agentId, mint, submitted_at: timeMs, snapshot_at: timeMs }
  await store.commit(
    isRejected
      ? [writeOf('rejections', { ...row, analysis_id: analysisId, outcome: 'rejected' })]
      : submission(analysisId, { ...row, outcome: 'validated' }),
  )
  return { submittedAtMs: timeMs, analysisId }
}

const keysOf = ({ submissions }: SubmissionPage): SubmissionKey[] =>
  submissions.map(({ row }) => ({ submittedAtMs: row.submitted_at, analysisId: row.analysis_id }))
const list = (over: Partial<Parameters<Store['submissions']>[0]> = {}) =>
  store.submissions({ agentId: null, mint: null, before: null, limit: 50, ...over })

describe('a list of submissions', () => {
  it('has pages that neither repeat nor leave out any, whatever is committed and flushed meanwhile', {
    tags: 'drill',
  }, async () => {
    let agents = 0
    const time = fc
      .record({ day: fc.integer({ min: 0, max: 3 }), ms: fc.integer({ min: 0, max: 5 }) })
      .map(({ day, ms }) => NOON_MS + day * DAY_MS + ms)
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ timeMs: time, isRejected: fc.boolean() }) },
      { weight: 1, arbitrary: fc.constant('flush' as const) },
    )
    const between = fc.array(fc.array(step, { maxLength: 3 }), { maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 20 }),
        between,
        fc.integer({ min: 1, max: 5 }),
        async (first, later, limit) => {
          const agentId = `agent-${agents++}`
          const run = async (steps: typeof first) => {
            const keys: SubmissionKey[] = []
            for (const each of steps)
              if (each === 'flush') await store.flushLake()
              else keys.push(await commit(agentId, 'mint-1', each.timeMs, each.isRejected))
            return keys
          }
          const expected = await run(first)
          const seen: SubmissionKey[] = []
          const added: SubmissionKey[] = []
          let before: SubmissionKey | null = null
          for (let pages = 0; pages === 0 || before !== null; pages++) {
            const [page, more]: [SubmissionPage, SubmissionKey[]] = await Promise.all([
              list({ agentId, before, limit }),
              run(later[pages] ?? []),
            ])
            expect(page.submissions.length).toBeLessThanOrEqual(limit)
            seen.push(...keysOf(page))
            added.push(...more)
            before = page.next
            expect(pages).toBeLessThan(200)
          }
          expect(seen).toEqual(seen.toSorted(compareKeys))
          expect(new Set(seen.map(({ analysisId }) => analysisId)).size).toBe(seen.length)
          const addedIds = new Set(added.map(({ analysisId }) => analysisId))
          expect(seen.filter(({ analysisId }) => !addedIds.has(analysisId))).toEqual(
            expected.toSorted(compareKeys),
          )
        },
      ),
      { numRuns: 15 },
    )
  })

  it('shows each submission once, at every moment of a flush', async () => {
    const keys = []
    for (let index = 0; index < 30; index++)
      keys.push(await commit('flushed', `mint-${index}`, NOON_MS + index))
    const expected = keys.toSorted(compareKeys)
    let isFlushed = false
    const flush = store.flushLake().then(() => {
      isFlushed = true
    })
    do expect(keysOf(await list({ agentId: 'flushed' }))).toEqual(expected)
    while (!isFlushed)
    await flush
    expect(keysOf(await list({ agentId: 'flushed' }))).toEqual(expected)
  })

  it('holds the submissions of one agent, on one mint, or both', async () => {
    const [a, b, c] = [
      await commit('filter-1', 'mint-f', NOON_MS),
      await commit('filter-2', 'mint-f', NOON_MS + 1),
      await commit('filter-1', 'mint-g', NOON_MS + 2),
    ]
    for (let round = 0; round < 2; round++) {
      expect(keysOf(await list({ agentId: 'filter-1' }))).toEqual([c, a])
      expect(keysOf(await list({ mint: 'mint-f' }))).toEqual([b, a])
      expect(keysOf(await list({ agentId: 'filter-1', mint: 'mint-f' }))).toEqual([a])
      expect(keysOf(await list({ agentId: 'nobody' }))).toEqual([])
      await store.flushLake()
    }
  })

  it('tells what each earned: the same before and after the flush, and nothing for a rejection', async () => {
    await commit('earner', 'mint-1', NOON_MS)
    await commit('earner', 'mint-2', NOON_MS + 1, true)
    const before = await list({ agentId: 'earner' })
    expect(before.submissions.map(({ xp, outcomes }) => [xp, outcomes])).toEqual([
      [0, null],
      [17.5, null],
    ])
    await store.flushLake()
    expect(await list({ agentId: 'earner' })).toEqual(before)
  })

  it('survives a restart, with what is in the log alone', async () => {
    const keys = [
      await commit('restarted', 'mint-1', NOON_MS),
      await commit('restarted', 'mint-1', NOON_MS + 5),
    ]
    await store.close()
    store = await openTestStore(folder)
    expect(keysOf(await list({ agentId: 'restarted' }))).toEqual(keys.toSorted(compareKeys))
  })

  it('that is too long to be searched at once goes on where the page before has stopped', {
    tags: 'drill',
  }, async () => {
    const other = temporaryFolder()
    const written = await openTestStore(other)
    const keys: SubmissionKey[] = []
    for (const [day, count] of [3, 1, 4, 1].entries())
      for (let index = 0; index < count; index++) {
        const key = {
          submittedAtMs: NOON_MS + day * DAY_MS + index,
          analysisId: nextId(NOON_MS + day * DAY_MS),
        }
        keys.push(key)
        const agent = index === 0 ? 'rare' : 'busy'
        await written.commit(submission(key.analysisId, { agent_id: agent, submitted_at: key.submittedAtMs }))
      }
    await written.close()
    const database = await openDatabase(other)
    const nothing = () => {}
    const hooks = { failpoint: nothing, log: nothing, onTrouble: nothing }
    const lake = await openLake(database, hooks)
    for (const rowsMax of [0, 1, 2, 5, 100]) {
      for (const [agentId, expected] of [
        [null, keys],
        ['rare', keys.filter((key) => key.submittedAtMs % 10 === 0)],
      ] as const) {
        const seen: SubmissionKey[] = []
        let before: SubmissionKey | null = null
        let pages = 0
        do {
          const query = { agentId, mint: null, before, limit: 2 }
          const page: SubmissionPage = await database.lists.run((connection) =>
            listSubmissions(connection, lake.reader, { query, nowMs: NOON_MS }, rowsMax),
          )
          for (const { submittedAtMs } of keysOf(page))
            expect(submittedAtMs).toBeGreaterThanOrEqual(page.searchedToMs ?? 0)
          seen.push(...keysOf(page))
          before = page.next
        } while (before !== null && ++pages < 30)
        expect(seen).toEqual([...expected].sort(compareKeys))
      }
    }
    await database.close()
    removeFolder(other)
  })

  it('takes a text that looks like SQL for what it is', async () => {
    const key = await commit(`o'hara`, `x' OR 'a'='a`, NOON_MS)
    await store.flushLake()
    expect(keysOf(await list({ agentId: `o'hara`, mint: `x' OR 'a'='a` }))).toEqual([key])
    expect(keysOf(await list({ agentId: `' OR true --` }))).toEqual([])
  })
})
