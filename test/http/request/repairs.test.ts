// What a program can repair by itself: every fault of a query at once, a path that was meant, a key where one is missing, and the
// description of one path.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { nearestWord } from '../../../src/lib/text/nearest-word.ts'
import { expectProblem, newMint } from '../../support/submission.ts'
import { ADMIN_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'

let server: TestServer
let mint: string
beforeAll(async () => {
  server = await openTestServer()
  mint = newMint()
  const names = { name: 'one\u0085two\u2028three\u2029', symbol: 'A\u2028B' }
  const ts = Date.now()
  await server.client.push({ type: 'token', mint, ts, ...names })
  await server.client.push({ type: 'trade', mint, ts, side: 'buy', tokenAmount: 5, priceUsd: 2 })
})
afterAll(() => server.remove())

const get = (path: string, headers?: Record<string, string>) => server.client.get(path, headers)
const pointers = (errors: readonly { pointer: string }[]) => errors.map(({ pointer }) => pointer)

describe('all faults of a query are told at once', () => {
  it.each([
    [
      '/api/v1/market?tab=lively&sort=hottest&order=up&limit=0&offset=-1&search=!!&max_analyses=few&format=xml&follow=maybe',
      ['/format', '/follow', '/limit', '/tab', '/sort', '/order', '/offset', '/search', '/max_analyses'],
    ],
    [
      '/api/v1/market?follow=1&format=ndjson&tab=lively&sort=hottest&limit=x&since=soon',
      ['/tab', '/sort', '/limit', '/since'],
    ],
    [
      '/api/v1/ohlc?mint=nobody&tf=2m&limit=none&fill=all&shape=round&from=yesterday&to=1700000000',
      ['/mint', '/tf', '/limit', '/fill', '/shape', '/from', '/to'],
    ],
    [
      '/api/v1/analysis?agentId=no%20one&mint=nobody&limit=0&cursor=zzz',
      ['/limit', '/agentId', '/mint', '/cursor'],
    ],
  ])('%s', async (path, expected) => {
    const answer = await get(path)
    expectProblem(answer, 'invalid_parameter')
    expect(pointers(answer.body.errors)).toEqual(expected)
    for (const name of expected) expect(answer.body.error).toContain(`${name.slice(1)} `)
  })

  it('on a WebSocket too', async () => {
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/api/v1/stream`)
    const answer = await new Promise<{ errors: { pointer: string }[] }>((resolve, reject) => {
      socket.onerror = reject
      socket.onmessage = ({ data }) => resolve(JSON.parse(String(data)))
      socket.onopen = () =>
        socket.send(JSON.stringify({ op: 'subscribe', topic: 'ohlc', mint: 'x', tf: '7m', from: 'now' }))
    })
    socket.close()
    expect(pointers(answer.errors)).toEqual(['/mint', '/tf', '/from'])
  })

  it('one fault keeps its own code, and what a cursor overrules is no fault', async () => {
    expectProblem(await get('/api/v1/ohlc?mint=nobody'), 'invalid_mint', '/mint')
    const { body } = await get('/api/v1/market?tab=lively&cursor=nothing')
    expect(pointers(body.errors)).toEqual(['/cursor'])
  })
})

describe('404', () => {
  it.each([
    ['/api/v1/markets', '/api/v1/market'],
    ['/market', '/api/v1/market'],
    ['/api/v1/Datapoint/', '/api/v1/datapoint'],
    ['/api/v1/data-point', '/api/v1/datapoint'],
    ['/api/v1/ohlcv', '/api/v1/ohlc'],
    ['/analysis/sumbit', '/api/v1/analysis/submit'],
    ['/keys/registr', '/api/v1/keys/register'],
    ['/openapi', '/openapi.json'],
    ['/skills.md', '/skill.md'],
    ['/api/v1/leaderboard', '/api/v1/agents/leaderboard'],
    ['/readzy', '/readyz'],
  ])('%s: did you mean %s', async (path, meant) => {
    const answer = await get(path)
    expectProblem(answer, 'not_found')
    expect(answer.body).toMatchObject({ suggestion: meant })
    expect(answer.body.error).toContain(`did you mean ${meant}?`)
  })

  it.each(['/wp-login.php', `/${'a/'.repeat(500)}`])('%s is like nothing', async (path) => {
    const answer = await get(path)
    expectProblem(answer, 'not_found')
    expect(answer.body.suggestion).toBeUndefined()
    expect(answer.body.error).toContain('/llms.txt')
  })

  it('of an unknown token names the search', async () => {
    const answer = await get(`/api/v1/datapoint?mint=${newMint()}`)
    expectProblem(answer, 'token_not_found')
    expect(answer.body.error).toContain('/api/v1/market?search=')
  })

  it('the nearest word is the first of those that differ least, and none that differs much', () => {
    const pairs = ['abcdef', 'abcxyz', 'abcdeg'].map((word) => [word, word] as const)
    expect(nearestWord('abcdex', pairs)).toBe('abcdef')
    expect(nearestWord('zzzzzz', pairs)).toBe(null)
    // Two neighbours that changed places are two differences, too much of a short word but for this.
    expect(nearestWord('prot', [['port', 'port']])).toBe('port')
    expect(nearestWord('to', [['from', 'from']])).toBe(null)
    expect(nearestWord('xy', [['xp', 'xp']])).toBe(null)
    expect(nearestWord('abcdef'.repeat(100), pairs)).toBe(null)
  })
})

describe('401 and 429 name the registration, and what a key allows', () => {
  const HINT = /POST \/api\/v1\/keys\/register .* which has 10 times the reads .* \(300 a minute\)/

  it('where a key is missing or wrong', async () => {
    const limited = await openTestServer({ 'read-limit-anonymous': '30', 'read-limit-keyed': '300' })
    try {
      const { client } = limited
      const submitted = await client.post('/api/v1/analysis/submit', {})
      expectProblem(submitted, 'missing_key')
      expect(submitted.body.error).toMatch(HINT)
      const mistyped = await client.get('/api/v1/market', { Authorization: 'Bearer ps_nothing' })
      expectProblem(mistyped, 'invalid_key')
      expect(mistyped.body.error).toMatch(HINT)
    } finally {
      await limited.remove()
    }
  })

  it('not where it is another key that is missing', async () => {
    for (const path of ['/api/v1/admin/agents', '/api/v1/lake/catalog'])
      expect((await get(path)).body.error).not.toContain('register')
  })

  it('where an address has used up its reads; with a key, and for registrations, there is no such advice', async () => {
    const flags = { 'read-limit-anonymous': '2', 'read-limit-keyed': '3', 'register-limit': '1' }
    const limited = await openTestServer(flags)
    try {
      const key = await limited.client.register()
      const read = async (times: number, headers?: Record<string, string>) => {
        for (let count = 0; count < times; count++) await limited.client.get('/api/v1/xp', headers)
        return limited.client.get('/api/v1/market', headers)
      }
      const anonymous = await read(2)
      expectProblem(anonymous, 'read_rate_limited')
      expect(anonymous.body.error).toMatch(
        /keys\/register .* which has 1\.5 times the reads .* \(3 a minute\)/,
      )
      const keyed = await read(3, { Authorization: `Bearer ${key}` })
      expectProblem(keyed, 'read_rate_limited')
      expect(keyed.body.error).not.toContain('register')
      const again = await limited.client.post('/api/v1/keys/register', { name: 'again' })
      expectProblem(again, 'register_rate_limited')
      expect(again.body.error).not.toContain('gives a key')
    } finally {
      await limited.remove()
    }
  })

  it('only where there is a registration', async () => {
    const closed = await openTestServer({ registration: 'closed' })
    try {
      const answer = await closed.client.post('/api/v1/analysis/submit', {})
      expectProblem(answer, 'missing_key')
      expect(answer.body.error).toContain('the operator gives keys')
      expect(answer.body.error).not.toContain('keys/register')
    } finally {
      await closed.remove()
    }
  })
})

describe('/openapi.json?path=', () => {
  it('has one path and every schema that it refers to, and no other', async () => {
    const whole = (await get('/openapi.json')).body
    for (const path of Object.keys(whole.paths)) {
      const answer = await get(`/openapi.json?path=${encodeURIComponent(path)}`)
      const part = answer.body
      expect(part.paths).toEqual({ [path]: whole.paths[path] })
      const refs = new Set(
        [...answer.text.matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name),
      )
      expect(new Set(Object.keys(part.components.schemas))).toEqual(refs)
      for (const name of refs)
        expect(part.components.schemas[name ?? '']).toEqual(whole.components.schemas[name ?? ''])
      expect(answer.text.length).toBeLessThan(JSON.stringify(whole).length / 4)
    }
  })

  it('of an unknown path is refused with the nearest, and each answer has an ETag and a compressed form of its own', async () => {
    const unknown = await get('/openapi.json?path=/api/v1/markt')
    expectProblem(unknown, 'invalid_parameter', '/path')
    expect(unknown.body.errors[0].suggestion).toBe('/api/v1/market')
    const [one, other] = ['/api/v1/market', '/api/v1/xp'].map((path) =>
      get(`/openapi.json?path=${path}`, { 'Accept-Encoding': 'gzip' }),
    )
    expect((await one).headers.get('etag')).not.toBe((await other)?.headers.get('etag'))
    expect(Object.keys((await one).body.paths)).toEqual(['/api/v1/market'])
    expect(Object.keys((await other)?.body.paths)).toEqual(['/api/v1/xp'])
  })
})

describe('no answer holds U+0085, U+2028 or U+2029 as they are', () => {
  const LINE_BREAKS = /[\u0085\u2028\u2029]/
  it.each([
    '/api/v1/market',
    '/api/v1/market?format=ndjson',
    '/api/v1/market?%E2%80%A8x=1&search=one',
    '/api/v1/market?search=three%E2%80%A9',
    '/api/v1/datapoint?mint=MINT&%C2%85=1',
    '/api/v1/ohlc?mint=MINT&%E2%80%A8=1',
    '/api/v1/ohlc?mint=MINT&format=ndjson',
    '/api/v1/ohlc?mint=MINT&tf=%E2%80%A8',
    '/api/v1/market?tab=%E2%80%A9',
    '/%E2%80%A8',
    '/api/v1/analysis',
  ])('%s', async (path) => {
    const { text } = await get(path.replace('MINT', mint))
    expect(text).not.toMatch(LINE_BREAKS)
    expect(text.length).toBeGreaterThan(2)
  })

  it('a stream, over HTTP and over a WebSocket', async () => {
    const followed = await fetch(`${server.url}/api/v1/market?format=ndjson&follow=1`)
    const reader = followed.body?.pipeThrough(new TextDecoderStream()).getReader()
    const first = (await reader?.read())?.value ?? ''
    await reader?.cancel()
    expect(first).toContain('one\\u0085two')
    expect(first).not.toMatch(LINE_BREAKS)
    for (const topic of ['market', 'token']) {
      const socket = new WebSocket(`${server.url.replace('http', 'ws')}/api/v1/stream`)
      const texts: string[] = []
      await new Promise<void>((resolve) => {
        socket.onmessage = ({ data }) => {
          texts.push(String(data))
          if (String(data).includes('\\u2028')) resolve()
        }
        socket.onopen = () => socket.send(JSON.stringify({ op: 'subscribe', topic, mint, id: 'i\u2028d' }))
      })
      socket.close()
      expect(texts.join('')).not.toMatch(LINE_BREAKS)
    }
  })

  it('SQL whose columns and cells hold them', async () => {
    const keyed = await server.client.request(
      'POST',
      '/api/v1/query',
      JSON.stringify({ sql: 'SELECT chr(8232) AS "a\u2028b", \'x\u0085\' AS y' }),
      { Authorization: `Bearer ${ADMIN_KEY}`, 'Content-Type': 'application/json' },
    )
    expect(keyed.status, keyed.text).toBe(200)
    expect(keyed.text).not.toMatch(LINE_BREAKS)
    expect(keyed.body.data.columns[0].name).toBe('a\u2028b')
  })
})
