// In a replay that waits, time is the market's: limits, ages, waits and what answers say.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { submission } from '../support/submission.ts'
import { openTestServer } from '../support/test-server.ts'
import { MINUTE_MS, openStepped, recordLake, removeFolder, START_MS, type Stepped } from './support.ts'

let lake: string
let stepped: Stepped

beforeAll(async () => {
  lake = await recordLake(4)
  stepped = await openStepped(lake)
})
afterAll(async () => {
  await stepped.close()
  removeFolder()
})

const mintsOf = async (): Promise<string[]> => {
  const { body } = await stepped.client.get('/api/v1/market?limit=40')
  return body.data.map(({ mint }: { mint: string }) => mint)
}

describe('the time of the market', () => {
  test('is said by every answer, whatever it is, and by none of a server that follows the clock', async () => {
    const { client, driver } = stepped
    await driver.stepTo(START_MS + 10_000)
    const asked: [string, string, object?][] = [
      ['GET', '/api/v1/market'],
      ['GET', '/api/v1/market?format=ndjson'],
      ['GET', '/health'],
      ['GET', '/'],
      ['GET', '/openapi.json'],
      ['GET', '/api/v1/datapoint?mint=wrong'],
      ['GET', '/no/such/path'],
      ['DELETE', '/api/v1/market'],
      ['OPTIONS', '/api/v1/market'],
      ['HEAD', '/api/v1/market'],
      ['POST', '/api/v1/analysis/submit', {}],
      ['POST', '/api/v1/query', { sql: 'SELECT 1' }],
    ]
    for (const [method, path, body] of asked) {
      const { headers, status } = await client.request(method, path, body)
      expect(headers.get('x-market-time'), `${method} ${path} ${status}`).toBe(`${START_MS + 10_000}`)
      expect(headers.get('x-market-waits')).toBe('true')
    }
    const live = await openTestServer()
    expect((await live.client.get('/api/v1/market')).headers.has('x-market-time')).toBe(false)
    const { body } = await live.client.get('/api/v1/time')
    expect(Math.abs(body.data.marketTime - Date.now())).toBeLessThan(20_000)
    await live.remove()
  })

  test('begins with the first recorded event where it is wanted from an earlier one, and else where it is wanted', async () => {
    const said: string[] = []
    const openFrom = async (fromMs: number) => {
      const from = new Date(fromMs).toISOString()
      const { span, close } = await openStepped(lake, { from, say: (sentence) => void said.push(sentence) })
      await close()
      return span.fromMs
    }
    expect(await openFrom(START_MS + MINUTE_MS)).toBe(START_MS + MINUTE_MS)
    expect(said).toEqual([])
    expect(await openFrom(START_MS - 60 * MINUTE_MS)).toBe(START_MS)
    expect(said).toEqual(['the lake has nothing before 2026-03-02T12:00:00.000Z: the market begins then'])
  })

  test('ends cooldowns, opens limits and says when: an agent that waits for what it was told gets through', async () => {
    const { app, client, driver } = stepped
    const { key } = await app.agents.register({ name: 'waiter' })
    const [mint, ...others] = await mintsOf()
    const submit = (of: string) => client.post('/api/v1/analysis/submit', submission(of), key)
    const first = await submit(mint)
    expect(first.body).toMatchObject({ outcome: 'validated', createdAt: driver.marketMs })
    expect(first.body.nextAllowedAt).toBeGreaterThan(driver.marketMs)
    const again = await submit(mint)
    expect(again.body.code).toBe('mint_cooldown')
    expect(again.body.retryAfterMs).toBe(first.body.nextAllowedAt - driver.marketMs)
    for (const other of others.slice(0, 8)) await submit(other)
    const limited = await submit(others[9])
    expect(limited.body.code).toBe('submit_rate_limited')
    await driver.stepTo(driver.marketMs + limited.body.retryAfterMs - 1)
    expect((await submit(others[9])).body.code).toBe('submit_rate_limited')
    await driver.stepTo(driver.marketMs + 1)
    expect((await submit(others[9])).status).toBe(201)
    const { standing } = (await client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })).body
    expect(standing.limits.cooldowns.at(-1)).toEqual({
      mint: others[9],
      nextAllowedAt: driver.marketMs + MINUTE_MS,
    })
  })

  test('is what DataPoints are stamped with, and what their age is measured by', async () => {
    const { app, client, driver } = stepped
    const { key } = await app.agents.register({ name: 'stamper' })
    const mint = (await mintsOf())[30]
    const { data } = (await client.get(`/api/v1/datapoint?mint=${mint}`)).body
    expect(driver.marketMs - data.snapshotAt).toBeLessThan(1_000)
    const snapshot = { priceUsd: data.priceUsd, snapshotAt: data.snapshotAt - 400_000 }
    const stale = await client.post('/api/v1/analysis/submit', submission(mint, { snapshot }), key)
    expect(stale.body).toMatchObject({ code: 'snapshot_stale', serverTime: driver.marketMs })
  })

  test('is stepped over by a request that waits for it, which does not keep the market from going on', async () => {
    const { app, client, driver } = stepped
    const until = driver.marketMs + 5_000
    let isDone = false
    const waiting = client.get(`/api/v1/time?until=${until}`).then((answer) => {
      isDone = true
      return answer
    })
    await expect.poll(() => app.timeWaits.size).toBe(1)
    await driver.runTo(until - 1)
    expect(isDone).toBe(false)
    await driver.runTo(until)
    expect((await waiting).body.data.marketTime).toBe(until)
    expect(driver.stats.stepsCut).toBe(0)
    expect((await client.get('/api/v1/time?until=1772000000')).body.code).toBe('invalid_parameter')
  })

  test('waits for a program that has its turn, however busy the machine is for a moment, and tells of one that stays away', async () => {
    const { app, driver } = stepped
    const { stepsInTurn } = driver.stats
    const { key } = await app.agents.register({ name: 'slow' })
    const mintlake = createClient({ baseUrl: app.url, key })
    const fromMs = driver.marketMs
    const moments: number[] = []
    const busy = () => sleep(100)
    const program = (async () => {
      for (let round = 0; round < 3; round++) {
        moments.push((await mintlake.now()) - fromMs)
        await busy()
        moments.push((await mintlake.now()) - fromMs)
        await busy()
        await mintlake.sleep(10_000)
      }
      await busy()
      moments.push((await mintlake.now()) - fromMs)
    })()
    let running = [key]
    driver.programs = () => running
    program.finally(() => {
      running = []
    })
    await expect.poll(() => moments.length).toBeGreaterThan(0)
    // It wakes in the last step, and has its turn then.
    await driver.runTo(fromMs + 30_000)
    await driver.untilTurnsEnd()
    expect(moments).toEqual([0, 0, 10_000, 10_000, 20_000, 20_000, 30_000])
    await program
    expect(driver.stats.stepsInTurn).toBe(stepsInTurn)

    running = [key]
    await driver.runTo(fromMs + 33_000)
    expect(driver.stats.stepsInTurn).toBe(stepsInTurn + 3)
    running = []
  })

  test('wakes programs one after the other in their order, whichever asks for the longer time and is the slower', async () => {
    const { app, driver } = stepped
    const names = ['first', 'second', 'third']
    const keys = await Promise.all(names.map(async (name) => (await app.agents.register({ name })).key))
    const fromMs = driver.marketMs
    const woken: string[] = []
    let running: readonly string[] = keys
    driver.programs = () => running
    const programs = keys.map(async (key, at) => {
      const mintlake = createClient({ baseUrl: app.url, key })
      for (const laterMs of [5_000, 10_000]) {
        await sleep(30 * ((2 - at) % 3))
        while ((await mintlake.now()) < fromMs + laterMs) await mintlake.sleep(5_000)
        await sleep(30 * (2 - at))
        woken.push(names[at])
        await mintlake.market({ limit: 1 })
      }
      running = running.filter((other) => other !== key)
    })
    await expect.poll(() => app.timeWaits.size).toBe(3)
    await driver.runTo(fromMs + 10_000)
    await driver.untilTurnsEnd()
    await Promise.all(programs)
    expect(woken).toEqual([...names, ...names])
  })

  test('counts a step as cut short once, however many programs were not silent in it', async () => {
    const { app, driver, close } = await openStepped(lake, { waitMsMax: 50 })
    const keys = await Promise.all(['a', 'b'].map(async (name) => (await app.agents.register({ name })).key))
    driver.programs = () => keys
    let isOver = false
    const programs = keys.map(async (key) => {
      const mintlake = createClient({ baseUrl: app.url, key })
      await mintlake.sleep(1_000)
      while (!isOver) await mintlake.now()
    })
    await expect.poll(() => app.timeWaits.size).toBe(2)
    await driver.stepTo(START_MS + 1_000)
    await driver.untilSilent()
    expect(driver.stats.stepsCut).toBe(1)
    await driver.stepTo(START_MS + 2_000)
    await driver.untilSilent()
    expect(driver.stats.stepsCut).toBe(2)
    isOver = true
    await Promise.all(programs)
    await close()
  })

  test('is told to streams before those that wait for it go on: each has what is new in its turn', async () => {
    const { app, driver } = stepped
    const names = ['first', 'second']
    const keys = await Promise.all(names.map(async (name) => (await app.agents.register({ name })).key))
    const left = new AbortController()
    const stream = await fetch(`${app.url}/api/v1/market?follow=1&limit=40`, { signal: left.signal })
    const heard: string[] = []
    const following = (async () => {
      for await (const _ of stream.body ?? []) heard.push('news')
    })().catch(() => {})
    await expect.poll(() => heard.length).toBeGreaterThan(0)
    heard.length = 0
    driver.programs = () => keys
    const programs = keys.map(async (key, at) => {
      await createClient({ baseUrl: app.url, key }).sleep(20_000)
      heard.push(names[at])
      await expect.poll(() => heard).toContain('news')
    })
    await expect.poll(() => app.timeWaits.size).toBe(2)
    await driver.stepTo(driver.marketMs + 20_000)
    await Promise.all(programs)
    driver.programs = () => []
    left.abort()
    await following
    expect(heard.indexOf('news')).toBeLessThan(heard.indexOf('second'))
  })

  test('waits for a program beside another that waits and follows several streams at once', async () => {
    const { app, driver } = stepped
    const { key } = await app.agents.register({ name: 'follower' })
    const left = new AbortController()
    const ask = (path: string) =>
      fetch(`${app.url}${path}`, { headers: { Authorization: `Bearer ${key}` }, signal: left.signal })
    await ask('/api/v1/market?follow=1&limit=1')
    await ask('/api/v1/market?follow=1&tab=new&limit=1')
    const waiting = ask(`/api/v1/time?until=${driver.marketMs + MINUTE_MS}`).catch(() => {})
    await expect.poll(() => [app.timeWaits.size, app.broadcaster.size]).toEqual([1, 2])
    const stepsInTurn = async (programs: readonly string[]): Promise<number> => {
      const before = driver.stats.stepsInTurn
      driver.programs = () => programs
      await driver.runTo(driver.marketMs + 2_000)
      return driver.stats.stepsInTurn - before
    }
    expect([await stepsInTurn([key]), await stepsInTurn([key, 'of another'])]).toEqual([0, 2])
    driver.programs = () => []
    left.abort()
    await waiting
    await expect.poll(() => app.broadcaster.size).toBe(0)
  })

  test('is what the client sleeps and waits for limits by', async () => {
    const { app, driver } = stepped
    const { key } = await app.agents.register({ name: 'sleeper' })
    const mintlake = createClient({ baseUrl: app.url, key, waitForLimits: true })
    expect(await mintlake.now()).toBe(driver.marketMs)
    const fromMs = driver.marketMs
    let wokeAtMs = 0
    const slept = mintlake.sleep(7_000).then(async () => {
      wokeAtMs = await mintlake.now()
    })
    await expect.poll(() => app.timeWaits.size).toBe(1)
    await driver.runTo(fromMs + 20_000, () => wokeAtMs > 0)
    await slept
    expect(wokeAtMs - fromMs).toBeGreaterThanOrEqual(7_000)
    expect(wokeAtMs - fromMs).toBeLessThan(9_000)
    const mints = (await mintsOf()).slice(12, 24)
    let receipts = 0
    const all = (async () => {
      for (const mint of mints) {
        await mintlake.submit({ ...submission(mint) } as never)
        receipts++
      }
    })()
    await driver.runTo(driver.marketMs + 2 * MINUTE_MS, () => receipts === mints.length)
    await all
    expect(receipts).toBe(mints.length)
  })

  test('is bounded by a speed, and does not catch up with the time in which a program was slow', {
    tags: 'drill',
  }, async () => {
    const [speed, marketStepMs, slowMs] = [100, 500, 400]
    const bounded = await openStepped(lake, { speed, marketStepMs, silenceMs: 0 })
    const { driver } = bounded
    const passed: { realMs: number; marketMs: number }[] = []
    let steps = 0
    await driver.runTo(START_MS + 20_000, undefined, async (marketMs) => {
      if (++steps === 20) await sleep(slowMs)
      passed.push({ realMs: performance.now(), marketMs })
    })
    await bounded.close()
    expect(passed).toHaveLength(40)
    // From any step to any later one; two steps may come at once.
    for (const [index, from] of passed.entries())
      for (const to of passed.slice(index))
        expect(to.marketMs - from.marketMs).toBeLessThanOrEqual(
          speed * (to.realMs - from.realMs) + 2 * marketStepMs,
        )
  })
})
