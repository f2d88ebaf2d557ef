// A real server whose thread has more to do than it can: what is refused and how, who is told, that it recovers, and that nothing that
// was acknowledged is lost or doubled.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import type { Submission } from '../../src/schema/submission.ts'
import { FollowReader } from '../support/follow-reader.ts'
import { expectProblem, newMint, seedToken, submission } from '../support/submission.ts'
import { ADMIN_KEY, type Answer, FEED_KEY, openTestServer, type TestServer } from '../support/test-server.ts'

/** A hundredth of a second is long here: the test and its clients share the thread of the server, and perhaps the processor with others. */
const WAITS = { waitMsMax: 10, waitMs: 5 }
const WORK_MS = 15
const BUSY = { timeout: 60_000 }
const PUSH = { 'Content-Type': 'application/x-ndjson', Authorization: `Bearer ${FEED_KEY}` }

/** Work of the server's thread in every turn of the event loop, until it is stopped. */
class Work {
  #isOn = true

  constructor() {
    this.#turn()
  }

  stop(): void {
    this.#isOn = false
  }

  #turn(): void {
    if (!this.#isOn) return
    const { user } = process.threadCpuUsage()
    while (process.threadCpuUsage().user - user < WORK_MS * 1_000);
    setImmediate(() => this.#turn())
  }
}

let server: TestServer
let mint: string
let key: string
const mints = Array.from({ length: 4 }, newMint)
beforeAll(async () => {
  server = await openTestServer({}, { tuning: { overload: WAITS } })
  mint = await seedToken(server.client, Date.now())
  key = await server.client.register()
  await server.client.push(
    ...mints.map((token) => ({ type: 'token', mint: token, ts: Date.now(), name: 'S', symbol: 'S' })),
    ...mints.map((token) => ({ type: 'patch', mint: token, ts: Date.now(), fields: { price_usd: 0.001 } })),
  )
})
afterAll(() => server.remove())

const status = async (): Promise<{ status: string; reasons: string[] }> =>
  (await server.client.get('/health')).body
const metric = async (name: string): Promise<number> =>
  Number(
    (await server.client.get('/metrics')).text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))!
      .split(' ')[1],
  )
const read = (): Promise<Answer> => server.client.get(`/api/v1/datapoint?mint=${mint}`)
const trade = (at: number): string =>
  JSON.stringify({
    type: 'trade',
    mint,
    ts: Date.now(),
    side: 'buy',
    tokenAmount: 1,
    priceUsd: 0.001,
    tx: `t${at}`,
  })

/** Sends a request again and again, until it is refused. */
async function refused(send: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await send()
    if (answer.status === 503) return answer
  }
}

/** Asks until the server says that it is overloaded. */
async function untilOverloaded(): Promise<void> {
  while ((await status()).status !== 'degraded');
}

/** @returns after how long the server says that it is well, ms */
async function untilWell(): Promise<number> {
  const fromMs = performance.now()
  while ((await status()).status !== 'ready') await new Promise((resolve) => setTimeout(resolve, 20))
  return performance.now() - fromMs
}

describe('while a server has more to do than it can', BUSY, () => {
  let work: Work
  let follower: FollowReader
  let following: Promise<void>
  const told: { reason: string | null; retryInMs: number }[] = []
  const gone = new AbortController()
  beforeAll(async () => {
    // What follows began before.
    follower = new FollowReader(`${server.url}/api/v1/market?follow=1&format=ndjson`)
    await follower.next()
    following = (async () => {
      const options = { signal: gone.signal, onDisconnect: (left: (typeof told)[0]) => told.push(left) }
      for await (const _ of createClient({ baseUrl: server.url, key }).follow({}, options));
    })().catch(() => undefined)
    work = new Work()
    await untilOverloaded()
  })
  afterAll(async () => {
    work.stop()
    gone.abort()
    await following
  })

  it('refuses reads, pushes, queries and streams with when to come back, and says so', async () => {
    const researcher = { Authorization: `Bearer ${ADMIN_KEY}` }
    const query = () => server.client.request('POST', '/api/v1/query', { sql: 'SELECT 1' }, researcher)
    const push = () => server.client.request('POST', '/api/v1/ingest', trade(-1), PUSH)
    const answers = await Promise.all([refused(read), refused(push), refused(query)])
    for (const answer of answers) {
      expectProblem(answer, 'overloaded')
      const { retryAfterMs } = answer.body
      expect(answer.headers.get('Retry-After')).toBe(`${Math.ceil(retryAfterMs / 1_000)}`)
    }
    const { reasons } = await status()
    expect(reasons[0]).toMatch(/^the server has more to do than it can: it refuses \d+ % of reads/)
    expect(await metric('mintlake_overloaded')).toBe(1)
    for (const road of ['reads', 'pushes', 'lake'])
      expect(await metric(`mintlake_overload_refused_total{road="${road}"}`)).toBeGreaterThan(0)
    const admin = { Authorization: `Bearer ${ADMIN_KEY}` }
    expect((await server.client.get('/api/v1/admin/agents', admin)).status).toBe(200)
    expect((await server.client.get('/readyz')).status).toBe(200)
  })

  it('ends streams with `bye` and when to come back, and the client obeys', async () => {
    let last = await follower.next()
    while (last?.event !== 'bye') last = await follower.next()
    expect(last).toMatchObject({ reason: 'overloaded', seq: expect.any(Number) })
    expect(last.retryAfterMs).toBeGreaterThanOrEqual(1_000)
    while (told.length === 0) await status()
    expect(told[0].reason).toBe('overloaded')
    expect(told[0].retryInMs).toBeGreaterThanOrEqual(1_000)
    // The text of the metrics may be that of the test before, for a second.
    await expect
      .poll(() => metric('mintlake_streams_overloaded_total'), { timeout: 10_000 })
      .toBeGreaterThan(0)
  })

  it('loses and doubles no submission and no push that it has acknowledged, and is well soon afterwards', {
    tags: 'drill',
  }, async () => {
    const agent = createClient({ baseUrl: server.url, key, retriesMax: 100 })
    const before = server.market.stats().trades
    let pushed = 0
    let refusals = 0
    const pusher = async () => {
      while (refusals < 5 || pushed < 5) {
        const { status } = await server.client.request('POST', '/api/v1/ingest', trade(pushed), PUSH)
        if (status === 200) pushed++
        else refusals++
      }
    }
    const pushing = Promise.all([pusher(), pusher()]).finally(() => work.stop())
    const submitting = mints.map((token) => agent.submit(submission(token) as unknown as Submission))
    await pushing
    const receipts = await Promise.all(submitting)
    // Five seconds, on a machine that lets the server run.
    expect(await untilWell()).toBeLessThan(20_000)
    expect((await read()).status).toBe(200)
    expect(await metric('mintlake_overloaded')).toBe(0)
    expect(server.market.stats().trades - before).toBe(pushed)
    const { body } = await server.client.get('/api/v1/analysis?agentId=me', {
      Authorization: `Bearer ${key}`,
    })
    const stored = body.data.map(({ analysisId }: { analysisId: string }) => analysisId)
    expect(stored.toSorted()).toEqual(receipts.map(({ analysisId }) => analysisId).toSorted())
  })
})
