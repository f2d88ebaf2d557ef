// A list is merged of the log and the lake: whenever a flush moves submissions between the two, and whatever the lake's page
// leaves to later pages.
import { expect, it } from 'vitest'
import type { SubmissionPage } from '../../../src/schema/api/submission-list.ts'
import { LogError } from '../../../src/store/log/errors.ts'
import type { CommitRecord, Position, StoredCommit } from '../../../src/store/log/types.ts'
import { identifyRow, UnflushedRows } from '../../../src/store/rows/recent-rows.ts'
import { type ListSources, pageOfSubmissions } from '../../../src/store/submission-lists.ts'
import { readUnlessRemoved } from '../../../src/store/submission-lookup.ts'
import { NOON_MS, rowOf } from '../support.ts'

const QUERY = { agentId: 'agent', mint: null, before: null, limit: 10 }
const KNOWN_AT_MS = NOON_MS + 60_000

/** A log of submissions, one of each millisecond, and a lake that a flush moves them to. */
class World {
  readonly unflushed = new UnflushedRows()
  readonly ids: string[] = []
  isFlushed = false
  /** Called before each answer of the log and of the lake. */
  onRead: (from: 'log' | 'lake') => void = () => {}
  lake: SubmissionPage = { submissions: [], next: null, searchedToMs: null }

  constructor(count: number) {
    for (let index = 0; index < count; index++) {
      this.ids.unshift(`an_${index}`)
      this.unflushed.add([identifyRow('training', this.#row(index))], this.#position(index))
    }
  }

  #row(index: number) {
    return rowOf('training', { analysis_id: `an_${index}`, agent_id: 'agent', submitted_at: NOON_MS + index })
  }

  #position(index: number): Position {
    return { segment: 1, offset: 100 * (index + 1), length: 100 }
  }

  #read(index: number): CommitRecord {
    const rows = () => [['training', this.#row(index)] as ['training', ReturnType<typeof rowOf>]]
    return {
      lsn: index,
      knownAtMs: KNOWN_AT_MS,
      position: this.#position(index),
      payload: Buffer.alloc(0),
      rows,
    }
  }

  flush(): void {
    this.isFlushed = true
    this.unflushed.forget(1)
  }

  readonly sources: ListSources = {
    unflushed: this.unflushed,
    readCommit: (position) => readUnlessRemoved({ read: (at) => this.#readFromLog(at) }, position),
    readLake: async () => {
      const page = this.isFlushed ? this.all() : this.lake
      this.onRead('lake')
      return page
    },
  }

  async #readFromLog({ offset }: Position): Promise<StoredCommit> {
    this.onRead('log')
    if (this.isFlushed) throw new LogError('segment_removed', 'it was flushed')
    return this.#read(offset / 100 - 1)
  }

  /** The lake's page once all are flushed. */
  all(): SubmissionPage {
    const listed = this.ids.map((_, index) => ({
      row: this.#read(
        this.ids.length - 1 - index,
      ).rows()[0][1] as SubmissionPage['submissions'][number]['row'],
      xp: 1,
      outcomes: null,
    }))
    return { submissions: listed, next: null, searchedToMs: null }
  }
}

const idsOf = ({ submissions }: SubmissionPage): string[] => submissions.map(({ row }) => row.analysis_id)

it.each(['before', 'log', 'lake'] as const)('each is there once where the flush comes %s', async (moment) => {
  const world = new World(4)
  if (moment === 'before') world.flush()
  world.onRead = (from) => {
    if (from === moment) world.flush()
  }
  expect(idsOf(await pageOfSubmissions(world.sources, QUERY))).toEqual(world.ids)
})

it('each is there once where the lake has it and the log still does', async () => {
  const world = new World(4)
  world.lake = world.all()
  expect(idsOf(await pageOfSubmissions(world.sources, QUERY))).toEqual(world.ids)
})

it('what is older than the lake was searched is left to the next page', async () => {
  const world = new World(6)
  const next = { submittedAtMs: NOON_MS + 3, analysisId: '' }
  world.lake = { submissions: [], next, searchedToMs: next.submittedAtMs }
  const page = await pageOfSubmissions(world.sources, QUERY)
  expect(idsOf(page)).toEqual(['an_5', 'an_4', 'an_3'])
  expect(page.next).toEqual(next)
  world.lake = { submissions: [], next: null, searchedToMs: null }
  expect(idsOf(await pageOfSubmissions(world.sources, { ...QUERY, before: next }))).toEqual([
    'an_2',
    'an_1',
    'an_0',
  ])
})

it('a page that the log fills ends with its last submission', async () => {
  const world = new World(6)
  const page = await pageOfSubmissions(world.sources, { ...QUERY, limit: 4 })
  expect(idsOf(page)).toEqual(['an_5', 'an_4', 'an_3', 'an_2'])
  expect(page.next).toEqual({ submittedAtMs: NOON_MS + 2, analysisId: 'an_2' })
})
