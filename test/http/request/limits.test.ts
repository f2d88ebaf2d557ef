// The limits of reads and registrations on a clock that the test sets: exact counts and headers, on 2xx and on 429.

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AppOptions } from '../../../src/app.ts'
import { clockOf } from '../../support/clock.ts'
import { RawSocket } from '../../support/raw-socket.ts'
import { StreamReader } from '../../support/stream-reader.ts'
import { expectProblem, newMint } from '../../support/submission.ts'
import { openTestServer, type Settings, type TestServer } from '../../support/test-server.ts'

const START_MS = 1_795_000_000_000
const HOUR_MS = 3_600_000
let nowMs: number
let server: TestServer

async function open(settings: Settings, options: AppOptions = {}): Promise<void> {
  server = await openTestServer(settings, { clock: clockOf(() => nowMs), ...options })
}
beforeEach(() => {
  nowMs = START_MS
})
afterEach(() => server.remove())

const market = (key = '') =>
  server.client.get('/api/v1/market?limit=1', key === '' ? {} : { Authorization: `Bearer ${key}` })

const LIMIT_HEADERS = [
  'ratelimit-policy',
  'ratelimit',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
]
const limitsOf = ({ headers }: { headers: Headers }) => LIMIT_HEADERS.map((name) => headers.get(name))

describe('reads', () => {
  it('without a key are limited to 30 a minute, and every answer says how many are left', async () => {
    await open({ 'read-limit-anonymous': '30' })
    for (let left = 29; left >= 0; left--) {
      const answer = await market()
      expect(answer.status).toBe(200)
      const reset = `${START_MS / 1_000 + 60}`
      expect(limitsOf(answer)).toEqual(['"read";q=30;w=60', `"read";r=${left};t=60`, '30', `${left}`, reset])
    }
    nowMs += 12_500
    const refused = await market()
    expectProblem(refused, 'read_rate_limited')
    expect(refused.headers.get('retry-after')).toBe('48')
    expect(refused.headers.get('ratelimit')).toBe('"read";r=0;t=48')
    expect(refused.body).toMatchObject({ limit: 30, retryAfterMs: 47_500 })
    nowMs += 47_499
    expectProblem(await market(), 'read_rate_limited')
    nowMs += 1
    expect((await market()).status).toBe(200)
  })

  it('with a key are limited to 300 a minute for each agent, and do not count against the address', async () => {
    await open({ 'read-limit-anonymous': '1', 'read-limit-keyed': '300' })
    const [one, other] = [await server.client.register('one'), await server.client.register('other')]
    const answers = await Promise.all(Array.from({ length: 310 }, () => market(one)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(300)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(10)
    const first = await market(other)
    expect(first.headers.get('ratelimit')).toBe('"read";r=299;t=60')
    expect((await market()).status).toBe(200)
    expectProblem(await market(), 'read_rate_limited')
    const { data } = (await server.client.post('/api/v1/keys/rotate', {}, one)).body
    expectProblem(await market(data.key), 'read_rate_limited')
  })

  it('are counted over all endpoints, errors and 304 included, but not those on the state of the server', async () => {
    await open({ 'read-limit-anonymous': '4' })
    const etag = (await market()).headers.get('etag')!
    expect((await server.client.get('/api/v1/market?limit=1', { 'If-None-Match': etag })).status).toBe(304)
    expect((await server.client.get('/api/v1/market?limit=x')).status).toBe(400)
    for (const path of [
      '/health',
      '/readyz',
      '/metrics',
      '/openapi.json',
      '/llms.txt',
      '/skill.md',
      '/api/v1/analysis/schema',
    ])
      expect((await server.client.get(path)).status, path).toBe(200)
    expect((await server.client.get('/api/v1/xp')).headers.get('x-ratelimit-remaining')).toBe('0')
    for (const path of ['/api/v1/market', '/api/v1/analysis', '/api/v1/agents/leaderboard'])
      expectProblem(await server.client.get(path), 'read_rate_limited')
    expectProblem(await server.client.post('/api/v1/datapoint/batch', { mints: [] }), 'read_rate_limited')
  })

  it('are counted by the first 64 bits of an IPv6 address, however it is written', async () => {
    await open({ 'read-limit-anonymous': '1', 'trusted-proxies': '127.0.0.0/8' })
    const from = (address: string) => server.client.get('/api/v1/market', { 'X-Forwarded-For': address })
    expect((await from('2001:db8:0:1::1')).status).toBe(200)
    for (const same of [
      '2001:db8:0:1::2',
      '2001:0DB8:0000:0001:ffff:ffff:ffff:ffff',
      '[2001:db8:0:1::3]:443',
      '2001:db8:0:1:5:6:7:8',
    ])
      expectProblem(await from(same), 'read_rate_limited')
    expect((await from('2001:db8:0:2::1')).status).toBe(200)
    expect((await from('10.9.8.7:1234')).status).toBe(200)
    for (const same of ['10.9.8.7', '::ffff:10.9.8.7', '::ffff:a09:807'])
      expectProblem(await from(same), 'read_rate_limited')
    expect((await from('10.9.8.8')).status).toBe(200)
  })

  it('are counted, and proxies trusted, when the server listens on an IPv6 address', async () => {
    await open({ host: '::1', 'read-limit-anonymous': '1', 'trusted-proxies': '::1' })
    expect(server.url).toMatch(/^http:\/\/\[::1\]:\d+$/)
    const from = (address: string) => server.client.get('/api/v1/market', { 'X-Forwarded-For': address })
    expect((await from('10.0.0.1')).status).toBe(200)
    expect((await from('10.0.0.2')).status).toBe(200)
    expectProblem(await from('10.0.0.2'), 'read_rate_limited')
  })

  it('are counted for each IPv4 client when the server listens on every address', async () => {
    await open({ host: '::', 'read-limit-anonymous': '1', 'trusted-proxies': '127.0.0.1' })
    const { port } = new URL(server.url)
    const from = (address: string) =>
      fetch(`http://127.0.0.1:${port}/api/v1/market`, { headers: { 'X-Forwarded-For': address } })
    expect((await from('10.0.0.1')).status).toBe(200)
    expect((await from('10.0.0.2')).status).toBe(200)
    expect((await from('10.0.0.2')).status).toBe(429)
    expect((await fetch(`http://127.0.0.2:${port}/api/v1/market`)).status).toBe(200)
    expect((await fetch(`http://[::1]:${port}/api/v1/market`)).status).toBe(200)
  })

  it('are counted by the address that a trusted proxy reports, and by that of the peer without one', async () => {
    await open({ 'read-limit-anonymous': '1', 'trusted-proxies': '127.0.0.1' })
    const from = (address: string) => server.client.get('/api/v1/market', { 'X-Forwarded-For': address })
    expect((await from('10.0.0.1')).status).toBe(200)
    expect((await from('10.0.0.2')).status).toBe(200)
    expectProblem(await from('10.0.0.2'), 'read_rate_limited')
    expectProblem(await from('6.6.6.6, 10.0.0.1'), 'read_rate_limited')
    // The one that the proxy added last, also in a header of its own.
    const raw = async (spoofed: string): Promise<number[]> => {
      const socket = new RawSocket(server.url)
      const added = `X-Forwarded-For: ${spoofed}\r\nX-Forwarded-For: 10.0.0.9\r\n`
      await socket.write(`GET /api/v1/market HTTP/1.1\r\nHost: x\r\n${added}\r\n`)
      const statuses = await socket.answers(1)
      socket.close()
      return statuses
    }
    expect(await raw('6.6.6.6')).toEqual([200])
    expect(await raw('6.6.6.7')).toEqual([429])
    await server.remove()
    await open({ 'read-limit-anonymous': '1' })
    expect((await from('10.0.0.1')).status).toBe(200)
    expectProblem(await from('10.0.0.2'), 'read_rate_limited')
  })
})

describe('rows of the market list', () => {
  const ROWS = 15
  /** Ten reads and twenty rows a minute. */
  const SETTINGS = { 'read-limit-anonymous': '10', 'read-limit-keyed': '10' }
  const openFew = (settings: Settings) => open(settings, { tuning: { rowsPerRead: 2 } })
  const list = (query = '', key = '') =>
    server.client.get(`/api/v1/market?${query}`, key === '' ? {} : { Authorization: `Bearer ${key}` })
  const fill = () =>
    server.client.push(
      ...Array.from({ length: ROWS }, () => ({
        type: 'token',
        mint: newMint(),
        ts: nowMs,
        name: 'N',
        symbol: 'S',
      })),
    )

  it('have a limit of their own: a client that reaches it is refused further rows and can read everything else', async () => {
    await openFew(SETTINGS)
    await fill()
    for (let left = 9; left >= 8; left--)
      expect((await list()).headers.get('x-ratelimit-remaining')).toBe(`${left}`)
    nowMs += 30_000
    const refused = await list('limit=1&format=ndjson')
    expectProblem(refused, 'read_rate_limited')
    expect(refused.body.error).toMatch(
      /^The limit of 20 rows in 60 seconds is used up; try again in 30 seconds/,
    )
    expect(refused.body).toMatchObject({ limit: 20, retryAfterMs: 30_000 })
    expect(refused.headers.get('ratelimit-policy')).toBe('"read-rows";q=20;w=60')
    expect(refused.headers.get('retry-after')).toBe('30')
    expect((await list('offset=1000')).body.data).toEqual([])
    expect((await server.client.get('/api/v1/xp')).headers.get('x-ratelimit-remaining')).toBe('5')
    const key = await server.client.register()
    expect((await list('', key)).status).toBe(200)
    nowMs += 30_000
    expect((await list()).body.data).toHaveLength(ROWS)
  })

  it('are counted when the answer comes from the cache, and not when it is 304', async () => {
    await openFew({ ...SETTINGS, 'page-age-ms': '1000' })
    await fill()
    const etag = (await list()).headers.get('etag')!
    for (let count = 0; count < 3; count++) {
      const { status } = await server.client.get('/api/v1/market', { 'If-None-Match': etag })
      expect(status).toBe(304)
    }
    expect((await list()).status).toBe(200)
    expectProblem(await list(), 'read_rate_limited')
  })

  it('are counted when a stream opens or restarts, over HTTP and WebSocket, but not when it resumes', async () => {
    await openFew(SETTINGS)
    await fill()
    const follow = async (query: string) => {
      const response = await fetch(`${server.url}/api/v1/market?follow=1&${query}`)
      await response.body!.cancel()
      return response.status
    }
    expect(await follow('limit=15')).toBe(200)
    const reader = new StreamReader(`${server.url.replace('http', 'ws')}/api/v1/stream`)
    const subscribe = async (topic: object) => {
      await reader.send({ op: 'subscribe', topic: 'market', ...topic })
      return (await reader.next()).event
    }
    expect(await subscribe({ tab: 'all', limit: 15 })).toBe('subscribed')
    expect(await reader.next()).toMatchObject({ event: 'snapshot' })
    expect(await subscribe({ tab: 'new', limit: 1 })).toBe('error')
    expect(await follow('limit=1')).toBe(429)
    const since = server.market.seq
    expect(await follow(`since=${since}`)).toBe(200)
    // After a position that is no longer known the stream restarts with the whole tab.
    expect(await follow('since=999999999999')).toBe(429)
    expect(await subscribe({ tab: 'new', since })).toBe('subscribed')
    reader.close()
  })

  it('are unlimited when reads are, by a limit of 0', async () => {
    await openFew({ ...SETTINGS, 'read-limit-anonymous': '0' })
    await fill()
    const answers = await Promise.all(Array.from({ length: 50 }, () => list()))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect(answers[0].headers.get('ratelimit')).toBeNull()
  })
})

describe('registrations', () => {
  it('are limited for each address and hour', async () => {
    await open({ 'register-limit': '20' })
    const register = () => server.client.post('/api/v1/keys/register', { name: 'many' })
    const answers = await Promise.all(Array.from({ length: 23 }, register))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(20)
    const refused = await register()
    expectProblem(refused, 'register_rate_limited')
    expect(refused.headers.get('retry-after')).toBe('3600')
    expect(refused.headers.get('ratelimit-policy')).toBe('"register";q=20;w=3600')
    expect(refused.body).toMatchObject({ limit: 20, retryAfterMs: HOUR_MS })
    nowMs += HOUR_MS
    const allowed = await register()
    expect(allowed.status).toBe(201)
    expect(allowed.headers.get('ratelimit')).toBe('"register";r=19;t=3600')
    expect(allowed.headers.get('cache-control')).toContain('no-store')
  })

  it('can be closed', async () => {
    await open({ registration: 'closed' })
    expectProblem(await server.client.post('/api/v1/keys/register', { name: 'late' }), 'registration_closed')
  })
})
