// A replay of a lake that has lost files is never taken for whole: it fails where they are missing, until a repair has settled the
// loss; then it goes on, and the market says what it lacks.
import { cpSync, readdirSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { MarketEvent } from '../../src/schema/event.ts'
import { MemoryJournal, openWorld, trade } from '../store/events/world.ts'
import { openTestStore } from '../store/support.ts'
import { runCommand } from '../support/terminal.ts'
import { openTestServer, type TestServer, temporaryFolder } from '../support/test-server.ts'
import { NOON_MS } from './support.ts'

const SECOND_MS = 1_000
/** Events of each of three files, the first of which begins with the run. */
const PER_FILE = 10
const LAST_NO = 3 * PER_FILE
const atOf = (eventNo: number): number => NOON_MS + eventNo * SECOND_MS

const run: MarketEvent = {
  type: 'run',
  ts: NOON_MS,
  firstSeq: 0,
  header: {
    ...{ runId: 'one', simulated: false, version: '1', formatVersion: 1, node: 'v22', feeds: ['push'] },
    settings: {
      tokensMax: 100,
      newWindowMs: 1,
      solPriceMaxAgeMs: 0,
      barsPerTokenMax: 1_024,
      versionsMax: 64,
    },
    ...{ checkpointEventNo: null, startedAtMs: NOON_MS },
  },
}

let whole: string
let lake: string
let server: TestServer | null = null

/** @param runsAt numbers of events that begin a run */
async function record(dataDir: string, runsAt: readonly number[]): Promise<void> {
  const journal = new MemoryJournal()
  const world = await openWorld(dataDir, { journal })
  for (let first = 1; first <= LAST_NO; first += PER_FILE) {
    const events = Array.from({ length: PER_FILE }, (_, index) =>
      trade({ ts: atOf(first + index), priceUsd: 1 }),
    )
    if (runsAt.includes(first)) events.splice(0, 1, run as never)
    journal.append(events, (index) => atOf(first + index))
    await world.flush(NOON_MS)
  }
  await world.close()
}

beforeAll(async () => {
  whole = temporaryFolder()
  await record(whole, [1])
})
afterAll(() => rmSync(whole, { recursive: true }))
afterEach(async () => {
  await server?.remove()
  server = null
  rmSync(lake, { recursive: true })
})

const pathsOf = (table: string): string[] =>
  ['.files/', ''].flatMap((parent) => {
    const folder = join(lake, 'lake', `${parent}${table}`, 'dt=2025-06-01')
    return readdirSync(folder)
      .sort()
      .map((name) => join(folder, name))
  })

/** A copy of the lake in which files are lost, removed or cut off. @param which of a table's files, by their order */
function lose(table: string, which: readonly number[], remove: (path: string) => void = rmSync): void {
  const paths = pathsOf(table)
  const count = paths.length / 2
  for (const index of which) for (const path of [paths[index], paths[count + index]]) remove(path)
}

async function replay(span = '..'): Promise<TestServer> {
  server = await openTestServer({ feed: 'replay', replay: `lake=${lake},span=${span},speed=max` })
  return server
}

const healthAtEnd = async ({ client }: TestServer) => {
  const read = async () => (await client.get('/health')).body
  await expect.poll(async () => (await read()).feeds[0].state, { timeout: 10_000 }).not.toBe('running')
  return read()
}

const repair = async (): Promise<void> => {
  const store = await openTestStore(lake)
  await store.repairLake()
  await store.close()
}

beforeEach(() => {
  lake = temporaryFolder()
  cpSync(whole, lake, { recursive: true, verbatimSymlinks: true })
})

describe('a replay of a lake that has lost files fails where they are missing:', () => {
  test.each<[string, readonly number[], (path: string) => void, number]>([
    ['the last one', [2], rmSync, 2 * PER_FILE],
    ['the last one, cut off', [2], (path) => truncateSync(path, 100), 2 * PER_FILE],
    ['one in the middle', [1], rmSync, PER_FILE],
    ['all of the table', [0, 1, 2], rmSync, 1],
  ])('%s', async (_, which, remove, played) => {
    lose('trades', which, remove)
    const { feeds, status, reasons } = await healthAtEnd(await replay())
    expect(feeds[0]).toMatchObject({ state: 'failed', events: played, eventsTotal: LAST_NO })
    expect(feeds[0].error).toMatch(`the lake does not have the events ${played + 1} to `)
    expect(feeds[0].endsEarly).toMatch(
      /^events between the numbers \d+ and \d+ are lost: .*mintlake lake repair/,
    )
    expect(status).toBe('degraded')
    expect(reasons).toEqual([expect.stringContaining(feeds[0].error)])
  })

  test('the last one, in a backtest', async () => {
    lose('trades', [2])
    const args = ['--lake', lake, '--out', join(lake, 'out'), '--labels-only', '--every-ms', '1000']
    const { code, err } = await runCommand(['backtest', ...args])
    expect(err).toMatch(/mintlake: the lake does not have the events 21 to 30\n$/)
    expect(code).toBe(1)
    expect(readdirSync(join(lake, 'out'))).toEqual([])
  })

  test('the beginning of the run: the server does not start', async () => {
    lose('events', [0])
    await expect(replay()).rejects.toThrow('the lake does not have the events 1 to 1')
  })

  test.each([
    ['with a program', ['--', 'node']],
    ['for labels', ['--labels-only']],
  ])(
    'the beginning of the run, in a backtest %s: it leaves nothing, and says the same again',
    async (_, words) => {
      lose('events', [0])
      const args = ['backtest', '--lake', lake, '--out', join(lake, 'out'), ...words]
      for (let time = 0; time < 2; time++) {
        const { code, err } = await runCommand(args)
        expect(err).toContain('the lake does not have the events 1 to 1')
        expect({ code, left: readdirSync(join(lake, 'out')) }).toEqual({ code: 1, left: [] })
      }
    },
  )

  test('the last one, of a span whose end may be lost; of one that ends before, it is whole', async () => {
    lose('trades', [2])
    const { feeds } = await healthAtEnd(await replay(`..${atOf(LAST_NO - 5)}`))
    expect(feeds[0]).toMatchObject({ state: 'failed', eventsTotal: LAST_NO })
    await server?.remove()
    const before = await healthAtEnd(await replay(`..${atOf(2 * PER_FILE - 1)}`))
    expect(before.feeds[0]).toMatchObject({ state: 'finished', events: 2 * PER_FILE - 1, endsEarly: null })
  })
})

describe('once a repair has settled the loss, a replay plays the rest, and says what is missing:', () => {
  const losses = [
    ['in the middle', [1], { from: atOf(PER_FILE), to: atOf(2 * PER_FILE + 1) }],
    ['at the end', [2], null],
    ['behind the beginning', [0], { from: atOf(1), to: atOf(PER_FILE + 1) }],
  ] as const
  test.each(losses)('%s', async (_, which, gap) => {
    lose('trades', which)
    await repair()
    const { feeds, gaps } = await healthAtEnd(await replay())
    // The run is in another table.
    const events = LAST_NO - PER_FILE + Number(which[0] === 0)
    expect(feeds[0]).toMatchObject({
      state: 'finished',
      events,
      eventsTotal: events,
      percent: 100,
      error: null,
    })
    expect(feeds[0].approximate).toMatch(/^events between the numbers \d+ and \d+ are lost$/)
    const { headers } = await server!.client.get('/api/v1/market')
    expect(headers.get('x-approximate')).toBe(feeds[0].approximate)
    expect(gaps.recent).toMatchObject(gap === null ? [] : [gap])
  })
  test.each([
    ['from the first run', '..'],
    ['from its beginning', `${atOf(PER_FILE + 1)}..`],
  ])(
    'all of a run before another that began with an empty market, which is played whole: %s',
    async (_, span) => {
      rmSync(lake, { recursive: true })
      await record(lake, [1, PER_FILE + 1])
      lose('trades', [0])
      lose('events', [0])
      await repair()
      const { feeds } = await healthAtEnd(await replay(span))
      expect(feeds[0]).toMatchObject({ state: 'finished', events: 2 * PER_FILE })
      expect(feeds[0]).toMatchObject({ approximate: null, endsEarly: null })
    },
  )

  test('a part of a run before such another, in a backtest for labels: it says what the set lacks', async () => {
    rmSync(lake, { recursive: true })
    await record(lake, [1, 2 * PER_FILE + 1])
    lose('trades', [0])
    await repair()
    const args = ['--lake', lake, '--out', join(lake, 'out'), '--labels-only', '--every-ms', '1000']
    const { code, err } = await runCommand(['backtest', ...args])
    expect(err).toMatch(/mintlake: Approximate: events between the numbers \d+ and \d+ are lost\n/)
    expect(err).toMatch(/mintlake: Ends early: the run that began at \S+ began with an empty market: /)
    expect(code).toBe(0)
  })

  test('the end of a run before such another: that one can be played from its beginning', async () => {
    rmSync(lake, { recursive: true })
    await record(lake, [1, 2 * PER_FILE + 1])
    lose('trades', [1])
    await repair()
    const { feeds } = await healthAtEnd(await replay(`${atOf(2 * PER_FILE + 1)}..`))
    expect(feeds[0]).toMatchObject({ state: 'finished', events: PER_FILE })
    expect(feeds[0]).toMatchObject({ approximate: null, endsEarly: null })
  })
})
