// The simulated market of a data folder: a start goes on with it, or begins one of other tokens, so that nothing that is kept of a token is
// that of two markets.
import { mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { SIMULATED_TRADES_REPEATED_MAX } from '../../src/ingest/limits.ts'
import { openSimulatedMarket, type SimulatedMarketOptions } from '../../src/ingest/simulated-market.ts'
import { Simulation } from '../../src/ingest/simulator/simulation.ts'
import { simulatedEvents } from '../support/simulated-events.ts'
import { type Client, type ServerProcess, spawnServer, temporaryFolder } from '../support/test-server.ts'
import { silentLog } from './memory-sink.ts'

const NOW_MS = Date.UTC(2026, 10, 1)

let folder: string
let server: ServerProcess | null = null
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(async () => {
  await server?.kill()
  rmSync(folder, { recursive: true, force: true })
})

describe('the market of a start', () => {
  const OPTIONS = { seed: null, tokens: 50, tradesPerSecond: 10, isRecorded: false }
  const openAt = async (nowMs: number, more: Partial<SimulatedMarketOptions> = {}) => {
    const { onSkipped, ...market } = await openSimulatedMarket(
      join(folder, 'simulator.json'),
      { ...OPTIONS, ...more },
      nowMs,
      silentLog,
    )
    return { onSkipped, market }
  }
  const first = { seed: 1, generation: 0, tokens: 50, tradesPerSecond: 10, startMs: NOW_MS }
  const laterMs = NOW_MS + 3_600_000
  const longestMs = (SIMULATED_TRADES_REPEATED_MAX / 10) * 1_000

  it('goes on as long as it can be made again soon', async () => {
    expect((await openAt(NOW_MS)).market).toEqual(first)
    expect((await openAt(NOW_MS + longestMs)).market).toEqual(first)
    expect((await openAt(NOW_MS + longestMs + 1)).market).toMatchObject({ seed: 1, generation: 1 })
  })

  it.each<[string, number, Partial<SimulatedMarketOptions>, number]>([
    ['with as many tokens as before', laterMs, { tokens: 50 }, 0],
    ['with the seed that it has', laterMs, { seed: 1 }, 0],
    ['with other tokens', laterMs, { tokens: 51 }, 1],
    ['at another rate', laterMs, { tradesPerSecond: 20 }, 1],
    ['of another seed', laterMs, { seed: 7 }, 1],
    ['with the seed that it has, whose events are recorded', laterMs, { seed: 1, isRecorded: true }, 1],
    ['with the seed that it has, after too many trades', NOW_MS + longestMs + 1, { seed: 1 }, 1],
    ['before it began', NOW_MS - 1, {}, 1],
  ])('%s', async (_, nowMs, more, generation) => {
    await openAt(NOW_MS)
    const { market } = await openAt(nowMs, more)
    expect(market).toEqual({
      ...{ seed: more.seed ?? 1, generation },
      ...{ tokens: more.tokens ?? 50, tradesPerSecond: more.tradesPerSecond ?? 10 },
      startMs: generation === 0 ? NOW_MS : nowMs,
    })
  })

  it('shares no token with those before, in whatever order seeds are named', async () => {
    const mints: string[] = []
    for (const [at, seed] of [2, 1, null, 2, 2].entries()) {
      const { market } = await openAt(NOW_MS + at, { seed, isRecorded: true })
      for (const { event } of simulatedEvents(new Simulation(market), NOW_MS + at))
        if (event.type === 'token') mints.push(event.mint)
    }
    expect(mints.length).toBeGreaterThan(200)
    expect(new Set(mints).size).toBe(mints.length)
  })

  it('goes on with the next generation where a file of an older version tells of none', async () => {
    const { generation: _, ...older } = first
    writeFileSync(join(folder, 'simulator.json'), JSON.stringify({ ...older, hasSkipped: false }))
    expect((await openAt(laterMs)).market).toEqual(first)
    expect((await openAt(laterMs, { tokens: 51 })).market).toMatchObject({ seed: 1, generation: 1 })
  })

  it('does not go on once it has skipped some time', async () => {
    await (await openAt(NOW_MS)).onSkipped()
    expect((await openAt(laterMs)).market).toMatchObject({ generation: 1, startMs: laterMs })
    expect((await openAt(laterMs + 1)).market).toMatchObject({ generation: 1, startMs: laterMs })
  })

  it('follows one of the largest seed', async () => {
    const seed = Number.MAX_SAFE_INTEGER
    expect((await openAt(NOW_MS, { seed })).market).toMatchObject({ seed, generation: 0 })
    const { market } = await openAt(NOW_MS + longestMs + 1)
    expect(market).toMatchObject({ seed, generation: 1 })
    expect(simulatedEvents(new Simulation(market), NOW_MS, 1)).not.toEqual([])
  })

  it('is another one of the same kind where nobody knows what it was', async () => {
    await openAt(NOW_MS)
    writeFileSync(join(folder, 'simulator.json'), '{"seed":')
    expect((await openAt(laterMs)).market).toEqual({ ...first, generation: laterMs, startMs: laterMs })
  })

  it('is one that no other start has where it cannot be noted', async () => {
    await openAt(NOW_MS)
    const inTheWay = join(folder, 'simulator.json.tmp')
    mkdirSync(inTheWay)
    expect((await openAt(laterMs, { isRecorded: true })).market).toMatchObject({ generation: laterMs })
    rmdirSync(inTheWay)
    expect((await openAt(laterMs + 1, { isRecorded: true })).market).toMatchObject({ generation: 1 })
  })
})

const SETTINGS = { feed: 'simulator', simulator: 'tokens=200,trades-per-second=50' }
const BAR_MS = 1_000
/** The bars of tokens that had ended by a time, by mint. Late trades may still come to the newest of them. */
async function barsUntil(client: Client, mints: readonly string[], endMs: number) {
  const bars: { t: number }[][] = []
  for (const mint of mints) {
    const { body } = await client.get(`/api/v1/ohlc?mint=${mint}&tf=1s&limit=1000`)
    const ended = body.data.filter(({ t }: { t: number }) => t + BAR_MS <= endMs)
    bars.push(ended.map(({ closed: _, ...bar }: { t: number; closed: boolean }) => bar))
  }
  return bars
}
const mintsOf = async (client: Client): Promise<string[]> =>
  (await client.get('/api/v1/market?limit=200')).body.data.map(({ mint }: { mint: string }) => mint)

test('after a kill the server goes on with the market: its bars of before are the same', {
  tags: 'drill',
}, async () => {
  const startedMs = Date.now()
  server = await spawnServer(SETTINGS, folder)
  const { client } = server
  const mints = (await mintsOf(client)).slice(0, 5)
  // Until there are bars of trades that happened by the clock, behind those of its history.
  const untilMs = startedMs + 2 * BAR_MS
  const isOver = async () => (await barsUntil(client, mints, Infinity)).flat().some(({ t }) => t > untilMs)
  await expect.poll(isOver).toBe(true)
  const before = await barsUntil(client, mints, untilMs)
  expect(before.flat().filter(({ t }) => t < startedMs).length).toBeGreaterThan(20)
  expect(before.flat().filter(({ t }) => t >= startedMs).length).toBeGreaterThan(0)
  await server.kill()
  server = await spawnServer(SETTINGS, folder)
  expect(await mintsOf(server.client)).toEqual(expect.arrayContaining(mints))
  expect(await barsUntil(server.client, mints, untilMs)).toEqual(before)
})
