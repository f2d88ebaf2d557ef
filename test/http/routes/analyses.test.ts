// GET /api/v1/analysis?agentId=&mint= over real HTTP and the real store: lists of submissions, and who sees which labels.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { analysisListSchema } from '../../../src/schema/api/submissions.ts'
import { SteppedClock } from '../../support/clock.ts'
import {
  expectProblem,
  newMint,
  quant,
  SUMMARY,
  seedToken,
  submission,
  submit,
  VALUES,
} from '../../support/submission.ts'
import { ADMIN_KEY, openTestServer, type Settings, type TestServer } from '../../support/test-server.ts'

const START_MS = 1_795_000_000_000
const DELAY_MS = 600_000
let clock: SteppedClock
let server: TestServer
let key: string
const open = async (settings: Settings = {}) => {
  server = await openTestServer({ 'labels-delay-ms': `${DELAY_MS}`, ...settings }, { clock })
  key = await server.client.register()
}

beforeEach(() => {
  clock = new SteppedClock(START_MS)
})
afterEach(() => server.remove())

const get = (query: string, agentKey = '', headers: Record<string, string> = {}) =>
  server.client.get(`/api/v1/analysis${query}`, {
    ...(agentKey && { Authorization: `Bearer ${agentKey}` }),
    ...headers,
  })
const seed = () => seedToken(server.client, clock.now())
const send = async (mint: string, more: object = {}, agentKey = key): Promise<string> =>
  (await submit(server.client, agentKey, submission(mint, more))).body.analysisId
const rejected = { snapshot: { ...VALUES, priceUsd: 1, snapshotAt: START_MS } }
const SHOWN = { sentiment: 'bullish', score: 70, summary: SUMMARY, quant, labelsAvailableAt: null }
const withheldUntil = (labelsAvailableAt: number) => ({
  sentiment: null,
  score: null,
  summary: null,
  quant: null,
  labelsAvailableAt,
})

interface FilteredPage {
  data: { analysisId: string; createdAt: number }[]
  meta: { nextCursor: string | null; searchedTo: number | null }
}

describe('the list of an agent’s submissions', () => {
  it('shows outcome, deviation, XP and labels, newest first, at once and after the flush', async () => {
    await open()
    const [first, second] = [await seed(), await seed()]
    const firstId = await send(first)
    await send(second, rejected)
    const expected = [
      { mint: second, outcome: 'rejected', validated: false, xpEarned: 0, createdAt: START_MS },
      { mint: first, analysisId: firstId, outcome: 'validated', deviationPct: 0, xpEarned: 50, ...SHOWN },
    ]
    const { body } = await get('?agentId=me', key)
    expect(body.data).toMatchObject(expected)
    expect(analysisListSchema.parse(body)).toEqual(body)
    expect(body.data[1].outcomes).toEqual({
      fwd_ret_5m: null,
      fwd_ret_15m: null,
      fwd_ret_1h: null,
      fwd_ret_6h: null,
      fwd_ret_24h: null,
      fwd_max_drawdown_24h: null,
      dead_24h: null,
    })
    expect(body.meta).toEqual({ limit: 50, nextCursor: null, searchedTo: null })
    await server.store.flushLake()
    expect((await get('?agentId=me', key)).body).toEqual(body)
    expect((await get(`?agentId=${body.data[0].agentId}&mint=${first}`, key)).body.data).toEqual([
      body.data[1],
    ])
    server = await server.restart()
    expect((await get('?agentId=me', key)).body).toEqual(body)
  })

  it('has what the price did afterwards, once it is known', async () => {
    await open()
    const mint = await seed()
    await send(mint)
    for (let minute = 0; minute < 12; minute++) {
      const trade = { type: 'trade', mint, side: 'buy', tokenAmount: 1000, tx: `t${minute}` }
      await server.client.push({ ...trade, ts: clock.now(), priceUsd: 0.001 * (1 + minute / 10) })
      clock.pass(60_000)
    }
    server.market.advanceTo(clock.now())
    // A label is due once the bars up to its time have been emitted.
    await expect.poll(() => server.market.barsEmittedToMs).toBe(clock.now() - 15_000)
    await server.store.bars.flush()
    await server.store.flushLake()
    await server.store.flushLake()
    const [{ outcomes }] = (await get('?agentId=me', key)).body.data
    expect(outcomes.fwd_ret_5m).toBeCloseTo(0.4)
    expect(outcomes).toMatchObject({ fwd_ret_15m: null, dead_24h: null })
  })

  it('comes in pages', async () => {
    await open({ 'submit-limits': 'rate=0' })
    const ids: string[] = []
    for (let index = 0; index < 5; index++) {
      ids.unshift(await send(await seed()))
      if (index === 2) await server.store.flushLake()
      clock.pass(1)
    }
    const seen: string[] = []
    let cursor = ''
    do {
      const { body } = await get(`?agentId=me&limit=2&cursor=${cursor}`, key)
      seen.push(...body.data.map(({ analysisId }: { analysisId: string }) => analysisId))
      cursor = body.meta.nextCursor
    } while (cursor !== null)
    expect(seen).toEqual(ids)
    expect((await get('?agentId=me&limit=9999', key)).body.meta).toMatchObject({
      limit: 200,
      clamped: { limit: 200 },
    })
  })

  it('refuses what it does not understand', async () => {
    await open()
    const me = await get('?agentId=me')
    expectProblem(me, 'missing_key')
    expect(me.headers.get('www-authenticate')).toBe('Bearer')
    expectProblem(await get('?agentId=me', 'ps_wrong'), 'invalid_key')
    expectProblem(await get('?agentId=a%27b', key), 'invalid_parameter', '/agentId')
    expectProblem(await get('?mint=abc'), 'invalid_mint', '/mint')
    expectProblem(await get(`?mint=${newMint()}&limit=0`), 'invalid_parameter', '/limit')
    for (const cursor of ['x', Buffer.from('1.an_x').toString('base64url')])
      expectProblem(await get(`?agentId=me&cursor=${cursor}`, key), 'invalid_parameter', '/cursor')
    expect((await get('?agentId=ag_unknown')).body.data).toEqual([])
    expect((await get('?agentId=&mint=')).body.leaderboard).toEqual([])
  })

  it('is 503 with Retry-After while the lake process does not answer', {
    tags: 'drill',
    timeout: 20_000,
  }, async () => {
    await open()
    const lake = childrenOf(process.pid).filter((pid) => commandOf(pid).includes('/lake/host.child'))
    expect(lake).not.toEqual([])
    for (const pid of lake) process.kill(pid, 'SIGSTOP')
    const answer = await get('?agentId=me', key)
    for (const pid of lake) process.kill(pid, 'SIGCONT')
    expectProblem(answer, 'store_unavailable')
    expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
    expect((await get('?agentId=me', key)).status).toBe(200)
  })
})

describe('the labels of others', () => {
  it('are withheld everywhere until the delay has passed; one’s own never are', async () => {
    await open()
    const other = await server.client.register('other')
    const mint = await seed()
    const id = await send(mint)
    const { agentId } = (await get(`/${id}`, key)).body.data
    const reads = [`/${id}`, `?agentId=${agentId}`, `?mint=${mint}`]
    const read = async (path: string, agentKey: string) => {
      const { data } = (await get(path, agentKey)).body
      return Array.isArray(data) ? data[0] : data
    }
    const coverage = async () => (await get('')).body.leaderboard[0]
    const check = async (shown: object, latest: object) => {
      for (const path of reads) {
        expect(await read(path, key)).toMatchObject(SHOWN)
        for (const reader of ['', other]) expect(await read(path, reader)).toMatchObject(shown)
      }
      expect(await coverage()).toMatchObject({ mint, count: 1, ...latest })
    }
    const hidden = { lastSentiment: null, lastScore: null }
    await check(withheldUntil(START_MS + DELAY_MS), hidden)
    await server.store.flushLake()
    clock.pass(DELAY_MS - 1)
    await check(withheldUntil(START_MS + DELAY_MS), hidden)
    server = await server.restart()
    await check(withheldUntil(START_MS + DELAY_MS), hidden)
    clock.pass(1)
    await check(SHOWN, { lastSentiment: 'bullish', lastScore: 70 })
  })

  it('leave the latest that are old enough in the coverage, across restarts too', {
    tags: 'drill',
  }, async () => {
    await open()
    const mint = await seed()
    const latest = async () => {
      const { count, lastScore } = (await get('')).body.leaderboard[0]
      return [count, lastScore]
    }
    const others = await Promise.all(['a', 'b'].map((name) => server.client.register(name)))
    await send(mint, { score: 1 })
    clock.pass(DELAY_MS - 100)
    await send(mint, { score: 2 }, others[0])
    expect(await latest()).toEqual([2, null])
    clock.pass(100)
    await send(mint, { score: 3 }, others[1])
    expect(await latest()).toEqual([3, 1])
    server = await server.restart()
    expect(await latest()).toEqual([3, 1])
    clock.pass(DELAY_MS - 100)
    expect(await latest()).toEqual([3, 2])
    server = await server.restart()
    expect(await latest()).toEqual([3, 2])
    clock.pass(100)
    expect(await latest()).toEqual([3, 3])
  })

  it('do not come early when the wall clock is set ahead, nor later when it is set back', {
    tags: 'drill',
  }, async () => {
    await open()
    const id = await send(await seed())
    clock.pass(1_000)
    const untilMs = clock.now() + DELAY_MS - 1_000
    for (const step of [3_600_000, -7_200_000]) {
      clock.step(step)
      const { data } = (await get(`/${id}`)).body
      // The clock is not believed yet.
      expect(data).toMatchObject(withheldUntil(untilMs))
    }
    clock.pass(DELAY_MS - 1_000)
    expect((await get('')).body.leaderboard[0].lastScore).toBe(70)
  })

  it('stay shown when the clock goes back behind the submission', async () => {
    await open()
    const mint = await seed()
    const id = await send(mint)
    clock.pass(DELAY_MS)
    expect((await get('')).body.leaderboard[0].lastScore).toBe(70)
    clock.step(-86_400_000)
    await server.client.post('/api/v1/admin/clock/trust', {}, ADMIN_KEY)
    expect((await get(`/${id}`)).body.data).toMatchObject(SHOWN)
    const agentKey = await server.client.register('other')
    const later = (await submit(server.client, agentKey, submission(mint))).body
    expect((await get(`/${later.analysisId}`)).body.data).toMatchObject(
      withheldUntil(later.createdAt + DELAY_MS),
    )
    clock.pass(DELAY_MS)
    for (const each of [id, later.analysisId]) expect((await get(`/${each}`)).body.data).toMatchObject(SHOWN)
  })

  it('are never shared with who may not see them: by a cache, a compressed form or an ETag', async () => {
    await open({ 'page-age-ms': '1000' })
    const other = await server.client.register('other')
    const mint = await seed()
    for (let index = 0; index < 4; index++) await send(index === 0 ? mint : await seed())
    const { agentId } = (await get('?agentId=me', key)).body.data[0]
    for (const path of [`?mint=${mint}`, `?agentId=${agentId}`]) {
      const own = await get(path, key, { 'Accept-Encoding': 'gzip' })
      const own2 = await get(path, key, { 'Accept-Encoding': 'gzip' })
      expect(own2.body.data[0].score).toBe(70)
      expect(own.headers.get('cache-control')).toBe('private, no-cache')
      const etag = own.headers.get('etag') ?? ''
      for (const reader of ['', other]) {
        const seen = await get(path, reader, { 'Accept-Encoding': 'gzip', 'If-None-Match': etag })
        expect([seen.status, seen.body.data[0].score]).toEqual([200, null])
      }
      expect((await get(path, key, { 'If-None-Match': etag })).status).toBe(304)
    }
  })

  it('are in no other public answer', async () => {
    await open()
    const mint = await seed()
    const secret = `${SUMMARY} ${createHash('sha256').update(mint).digest('hex')}`
    await send(mint, { summary: secret, score: 12.3456789 })
    const paths = [
      'market',
      'market?format=ndjson',
      `datapoint?mint=${mint}`,
      'analysis',
      'agents/leaderboard',
      'xp',
    ]
    for (const path of paths) {
      const { text } = await server.client.get(`/api/v1/${path}`)
      expect(text).not.toContain(secret)
      expect(text).not.toContain('12.3456789')
    }
    for (const path of ['/health', '/metrics', '/openapi.json', '/llms.txt', '/skill.md'])
      expect((await server.client.get(path)).text).not.toContain(secret)
  })
})

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

/** Processes whose parent is `pid`. */
const childrenOf = (pid: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => {
      try {
        const stat = readFileSync(`/proc/${child}/stat`, 'utf8')
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid
      } catch {
        return false
      }
    })

describe('the list of all submissions', () => {
  it('has names and symbols, and is narrowed by verdict and by what is shown of the sentiment', async () => {
    await open()
    const [first, second] = [await seed(), await seed()]
    const other = await server.client.register('other')
    await send(first)
    await send(second, { sentiment: 'bearish' }, other)
    clock.pass(1_000)
    await send(second, rejected)
    const latest = (await get('?latest=1')).body
    expect(analysisListSchema.parse(latest)).toEqual(latest)
    expect(
      latest.data.map((row: Record<string, unknown>) => [row.agentName, row.symbol, row.outcome]),
    ).toEqual(
      expect.arrayContaining([
        ['tester', 'SEED', 'validated'],
        ['other', 'SEED', 'validated'],
        ['tester', 'SEED', 'rejected'],
      ]),
    )
    const namesOf = async (query: string, agentKey = '') =>
      (await get(query, agentKey)).body.data.map((row: { agentName: string }) => row.agentName)
    expect(await namesOf('?outcome=rejected')).toEqual(['tester'])
    // Labels that are withheld match nothing; an agent sees its own.
    expect(await namesOf('?sentiment=bearish')).toEqual([])
    expect(await namesOf('?sentiment=bearish', other)).toEqual(['other'])
    clock.pass(DELAY_MS)
    expect(await namesOf('?sentiment=bearish')).toEqual(['other'])
    expectProblem(await get('?outcome=good'), 'invalid_parameter')
  })

  it('of a filter has pages that leave out none; where the delay is 0 labels are shown to all at once', async () => {
    await open({ 'labels-delay-ms': '0', 'submit-limits': 'rate=0' })
    const ids: string[] = []
    for (let at = 0; at < 7; at++) {
      const mint = await seed()
      const id = await send(mint, { sentiment: at % 2 === 0 ? 'bullish' : 'bearish' })
      if (at % 2 === 0) ids.unshift(id)
      clock.pass(1_000)
    }
    const found: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body }: { body: FilteredPage } = await get(`?sentiment=bullish&limit=2&cursor=${cursor}`)
      expect(body.data.length).toBeLessThanOrEqual(2)
      // A page that is full has searched as far as its last row.
      expect(body.meta.searchedTo).toBe(body.meta.nextCursor === null ? null : body.data.at(-1)?.createdAt)
      found.push(...body.data.map(({ analysisId }) => analysisId))
      cursor = body.meta.nextCursor
    }
    expect(found).toEqual(ids)
    expect((await get(`/${ids[0]}`)).body.data).toMatchObject(SHOWN)
    const { leaderboard } = (await get('')).body
    expect(leaderboard.map(({ lastScore }: { lastScore: number | null }) => lastScore)).not.toContain(null)
  })
})
