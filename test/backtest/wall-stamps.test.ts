// A snapshot that is stamped with the program's own clock: which market time it stands for.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WallStamps } from '../../src/backtest/wall-stamps.ts'
import { submission } from '../support/submission.ts'
import { openStepped, recordLake, removeFolder, START_MS, type Stepped } from './support.ts'

const WALL_MS = 1_900_000_000_000
const MINT = 'token'

function stampsOf(...steps: [wallMs: number, marketMs: number][]) {
  const clock = { ms: WALL_MS }
  const stamps = new WallStamps(() => clock.ms)
  for (const [wallMs, marketMs] of steps) {
    clock.ms = WALL_MS + wallMs
    stamps.note(marketMs)
  }
  return { stamps, at: (wallMs: number) => stamps.marketTimeOf(MINT, WALL_MS + wallMs), clock }
}

describe('the market time of a stamp', () => {
  test('is that which was in effect', () => {
    const { at } = stampsOf([0, 100], [50, 200], [90, 300])
    expect([at(20), at(49 - 3), at(60), at(95), at(5_003)]).toEqual([100, 100, 200, 300, 300])
  })

  test('where a step lies at the stamp is that at which the token was served', () => {
    const { stamps, at, clock } = stampsOf([0, 100])
    stamps.noteServed(MINT)
    clock.ms = WALL_MS + 50
    stamps.note(200)
    expect([at(49), at(51)]).toEqual([100, 100])
    expect(stamps.marketTimeOf('another', WALL_MS + 51)).toBe('ambiguous')
    stamps.noteServed(MINT)
    expect(at(51)).toBe('ambiguous')
  })

  test('of a clock that is read in whole seconds is one of that second', () => {
    const { stamps, at } = stampsOf([0, 100], [400, 200], [800, 300], [1_600, 400])
    expect(at(0)).toBe('ambiguous')
    stamps.noteServed(MINT)
    expect([at(1_000), at(2_000)]).toEqual([400, 400])
  })

  test('is none where it is no time of this machine', () => {
    const { at } = stampsOf([0, 100])
    expect([at(-9e7), at(9e7)]).toEqual([null, null])
  })

  test('is none before anything was served: a market of this morning has its own times there', () => {
    const { stamps, at } = stampsOf([0, 100], [50, 200])
    stamps.noteServed(MINT)
    expect([at(-3_600_000), at(-1_000 * 60), at(-3)]).toEqual([null, null, null])
  })
})

describe('a submission', () => {
  let stepped: Stepped
  beforeAll(async () => {
    stepped = await openStepped(await recordLake(2))
  })
  afterAll(async () => {
    await stepped.close()
    removeFolder()
  })

  const submitted = async (
    snapshotAt: (point: { snapshotAt: number }) => number,
    key: string,
    mint: string,
  ) => {
    const { data } = (await stepped.client.get(`/api/v1/datapoint?mint=${mint}`)).body
    const snapshot = { priceUsd: data.priceUsd, snapshotAt: snapshotAt(data) }
    return stepped.client.post('/api/v1/analysis/submit', submission(mint, { snapshot }), key)
  }

  test('with a stamp of the own clock is compared with what was served then, and one that may be several moments is refused with what to do', {
    tags: 'drill',
  }, async () => {
    const { app, client, driver } = stepped
    const { key } = await app.agents.register({ name: 'stamper' })
    const { body } = await client.get('/api/v1/market?limit=4')
    const mints: string[] = body.data.map(({ mint }: { mint: string }) => mint)
    await driver.stepTo(START_MS + 30_000)
    // A stamp at the edge of the step may be of either.
    await new Promise((resolve) => setTimeout(resolve, 5))
    const right = await submitted(() => Date.now(), key, mints[0])
    expect(right.body).toMatchObject({ outcome: 'validated', deviationPct: 0, createdAt: START_MS + 30_000 })
    for (let second = 31; second <= 40; second++) await driver.stepTo(START_MS + second * 1_000)
    const { body: refused } = await submitted(() => Math.floor(Date.now() / 1_000) * 1_000 - 0, key, mints[1])
    if (refused.code !== undefined) expect(refused.detail).toContain('X-Market-Time')
    const { body: unknown } = await submitted(() => Date.now() + 9e7, key, mints[2])
    expect(unknown.code).toBe('snapshot_in_future')
    const { body: own } = await submitted(({ snapshotAt }) => snapshotAt, key, mints[3])
    expect(own.outcome).toBe('validated')
  })
})
