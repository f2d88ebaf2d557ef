// What all answers have in common, over real HTTP: request ids, CORS, methods, sizes, types, keys and the error shape.
import { once } from 'node:events'
import { connect } from 'node:net'
import { Packr } from 'msgpackr'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RawSocket } from '../../support/raw-socket.ts'
import { expectProblem, newMint, submission } from '../../support/submission.ts'
import {
  ADMIN_KEY,
  type Answer,
  FEED_KEY,
  openTestServer,
  type TestServer,
} from '../../support/test-server.ts'

let server: TestServer
let key: string
let mint: string

beforeAll(async () => {
  server = await openTestServer()
  key = await server.client.register()
  mint = newMint()
  await server.client.push({ type: 'token', mint, ts: Date.now(), name: 'Common', symbol: 'COM' })
})
afterAll(() => server.remove())

const get = (path: string, headers?: Record<string, string>) => server.client.get(path, headers)
const bearer = (value: string) => ({ Authorization: `Bearer ${value}` })
/** Both of one version: a DataPoint is as of a whole second, which may begin between the two. */
async function headAndWhole(path: string): Promise<{ head: Answer; whole: Answer }> {
  const ask = () => server.client.request('HEAD', path)
  const [head, whole, after] = [await ask(), await get(path), await ask()]
  const isOneVersion = head.headers.get('etag') === after.headers.get('etag')
  return isOneVersion ? { head, whole } : headAndWhole(path)
}
const READS = () => [
  '/api/v1/market',
  `/api/v1/datapoint?mint=${mint}`,
  `/api/v1/ohlc?mint=${mint}`,
  '/api/v1/analysis',
  '/api/v1/agents/leaderboard',
  '/api/v1/xp',
]

describe('paths and methods', () => {
  it.each(['/api', '/api/v2/market', '/api/v1/market/', '/api/v1/nothing', '/docs/', '/docs/package.json'])(
    '%s does not exist: 404 in the error shape',
    async (path) => {
      const answer = await get(path)
      expectProblem(answer, 'not_found')
      expect(answer.body.instance).toBe(path)
    },
  )

  it.each([
    ['POST', '/api/v1/market', 'GET, HEAD, OPTIONS'],
    ['PUT', '/api/v1/datapoint', 'GET, HEAD, OPTIONS'],
    ['PATCH', '/api/v1/ohlc', 'GET, HEAD, OPTIONS'],
    ['GET', '/api/v1/analysis/submit', 'POST, OPTIONS'],
    ['GET', '/api/v1/datapoint/batch', 'POST, OPTIONS'],
    ['DELETE', '/api/v1/keys/register', 'POST, OPTIONS'],
    ['POST', '/api/v1/keys/current', 'DELETE, OPTIONS'],
    ['DELETE', '/api/v1/agent/profile', 'GET, HEAD, POST, OPTIONS'],
    ['GET', '/api/v1/ingest', 'POST, OPTIONS'],
  ])('%s %s is 405 and lists the allowed methods', async (method, path, allow) => {
    const answer = await server.client.request(method, path)
    expectProblem(answer, 'method_not_allowed')
    expect(answer.headers.get('allow')).toBe(allow)
    expect(answer.body.allowed).toEqual(allow.split(', '))
  })

  it('a preflight request is answered with any origin, the methods of the path and the headers that agents send', async () => {
    const answer = await server.client.request('OPTIONS', '/api/v1/analysis/submit', undefined, {
      Origin: 'https://example.org',
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'authorization, content-type',
    })
    expect(answer.status).toBe(204)
    expect(answer.text).toBe('')
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(answer.headers.get('access-control-allow-methods')).toContain('POST')
    const allowed = answer.headers.get('access-control-allow-headers')!.toLowerCase()
    for (const name of ['authorization', 'x-api-key', 'content-type', 'idempotency-key'])
      expect(allowed).toContain(name)
  })

  it('HEAD answers as GET does, without the body', async () => {
    for (const path of READS()) {
      const { head, whole } = await headAndWhole(path)
      expect(head.status, path).toBe(200)
      expect(head.text).toBe('')
      expect(head.headers.get('content-type')).toBe(whole.headers.get('content-type'))
      expect(head.headers.get('etag')).toBe(whole.headers.get('etag'))
    }
    const missing = await server.client.request('HEAD', '/api/v1/nothing')
    expect([missing.status, missing.text]).toEqual([404, ''])
  })

  it('HEAD states the length of the body, and the connection can be used for the next request', async () => {
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    const ask = async (method: string) => {
      socket.write(`${method} /api/v1/xp HTTP/1.1\r\nHost: x\r\n\r\n`)
      const [data] = (await once(socket, 'data')) as [Buffer]
      const [head, body] = data.toString().split('\r\n\r\n')
      return { status: head.split(' ')[1], length: /Content-Length: (\d+)/.exec(head)?.[1], body }
    }
    const [first, whole, second] = [await ask('HEAD'), await ask('GET'), await ask('HEAD')]
    socket.destroy()
    expect(whole).toEqual({
      status: '200',
      length: `${whole.body.length}`,
      body: expect.stringMatching(/^{"ok":true/),
    })
    expect([first, second]).toEqual([0, 1].map(() => ({ ...whole, body: '' })))
  })
})

describe('every answer', () => {
  it('can be read by any origin, and exposes the headers that agents need', async () => {
    const errors = ['/api/v1/nothing', '/api/v1/market?tab=x', '/api/v1/datapoint?mint=x']
    for (const path of [...READS(), ...errors, '/health', '/readyz', '/openapi.json']) {
      const answer = await get(path, { Origin: 'https://example.org' })
      expect(answer.headers.get('access-control-allow-origin'), path).toBe('*')
      const exposed = answer.headers.get('access-control-expose-headers')!.toLowerCase()
      for (const name of [
        'x-request-id',
        'etag',
        'location',
        'retry-after',
        'ratelimit',
        'x-ratelimit-reset',
      ])
        expect(exposed, path).toContain(name)
    }
  })

  it('has Vary if caches may keep it, with status 304 too', async () => {
    const path = `/api/v1/ohlc?mint=${mint}`
    const first = await get(path)
    const second = await get(path, { 'If-None-Match': first.headers.get('etag')! })
    expect([first.status, second.status]).toEqual([200, 304])
    for (const { headers } of [first, second]) expect(headers.get('vary')).toBe('Accept, Accept-Encoding')
  })

  it('has the request id that the client sent, or a generated one', async () => {
    expect((await get('/health', { 'X-Request-Id': 'agent-7:1.a' })).headers.get('x-request-id')).toBe(
      'agent-7:1.a',
    )
    const own = await Promise.all(Array.from({ length: 20 }, () => get('/api/v1/nothing')))
    const ids = own.map((answer) => answer.headers.get('x-request-id'))
    expect(new Set(ids).size).toBe(20)
    for (const answer of own) expectProblem(answer, 'not_found')
  })

  it('does not repeat a request id that is too long or has other characters than allowed', async () => {
    for (const sent of ['a b', '"><script>', 'x'.repeat(129)]) {
      const answer = await get('/health', { 'X-Request-Id': sent })
      expect(answer.headers.get('x-request-id')).toMatch(/^[\w.:-]{1,128}$/)
      expect(answer.headers.get('x-request-id')).not.toBe(sent)
    }
  })
})

describe('a cached answer', () => {
  let reusing: TestServer
  beforeAll(async () => {
    reusing = await openTestServer({ 'page-age-ms': '1000', 'read-limit-keyed': '300' })
  })
  afterAll(() => reusing.remove())

  it('has the request id and the limits of the client that receives it', async () => {
    const agent = bearer(await reusing.client.register())
    const answers: (Answer & { sent: Record<string, string> })[] = []
    const askers: Record<string, string>[] = [
      {},
      { 'X-Request-Id': 'mine' },
      agent,
      { ...agent, 'X-Request-Id': 'mine' },
    ]
    for (let round = 0; round < 40; round++) {
      for (const headers of askers)
        answers.push({
          sent: headers,
          ...(await reusing.client.get('/api/v1/market?format=ndjson', headers)),
        })
    }
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    const own = answers.filter(({ sent }) => !('X-Request-Id' in sent))
    const ids = own.map(({ headers }) => headers.get('x-request-id'))
    expect(new Set(ids).size).toBe(80)
    expect(new Set(ids.map((id) => id!.split('-')[0])).size).toBe(1)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{12}-[0-9a-z]{9}$/)
    for (const { sent, headers } of answers) {
      if ('X-Request-Id' in sent) expect(headers.get('x-request-id')).toBe('mine')
      expect(headers.has('ratelimit')).toBe('Authorization' in sent)
    }
    const left = answers.flatMap(({ headers }) => headers.get('x-ratelimit-remaining') ?? [])
    expect(left).toEqual(Array.from({ length: 80 }, (_, index) => `${299 - index}`))
  })
})

const pushTypesOf = ({ body }: Answer): object => body.paths['/api/v1/ingest'].post.requestBody.content

describe('bodies', () => {
  const post = (path: string, body: string, headers: Record<string, string>) =>
    server.client.request('POST', path, body, { ...bearer(key), ...headers })

  it.each([
    '/api/v1/analysis/submit',
    '/api/v1/datapoint/batch',
    '/api/v1/keys/register',
    '/api/v1/agent/profile',
  ])('%s accepts only JSON of at most 64 KiB', async (path) => {
    const wrong = await post(path, 'a=1', { 'Content-Type': 'application/x-www-form-urlencoded' })
    expectProblem(wrong, 'unsupported_media_type')
    expect(wrong.body.allowed).toEqual(['application/json'])
    const large = JSON.stringify({ pad: 'x'.repeat(64 * 1024) })
    expectProblem(await post(path, large, {}), 'payload_too_large')
    expectProblem(await post(path, '{"a":', {}), 'invalid_json')
    expectProblem(await post(path, '[1]', {}), 'validation_failed')
  })

  it('of no use are of the same type, or none', async () => {
    const wrong = await post('/api/v1/keys/rotate', 'a=1', {
      'Content-Type': 'application/x-www-form-urlencoded',
    })
    expectProblem(wrong, 'unsupported_media_type')
    expect(wrong.body.allowed).toEqual(['application/json'])
    expect(wrong.text).toContain('Content-Type must be application/json.')
  })

  it('are accepted with a content type in any case and with parameters', async () => {
    const answer = await post('/api/v1/datapoint/batch', JSON.stringify({ mints: [mint] }), {
      'Content-Type': 'Application/JSON; charset=UTF-8',
    })
    expect(answer.status, answer.text).toBe(200)
  })

  it('a push accepts NDJSON and msgpack, and no other type', async () => {
    const record = { type: 'token', mint: newMint(), ts: Date.now(), name: 'N', symbol: 'S' }
    const push = (type: string, body: string | Uint8Array) =>
      server.client.request('POST', '/api/v1/ingest', body, { ...bearer(FEED_KEY), 'Content-Type': type })
    for (const type of ['application/x-ndjson', 'application/ndjson', 'application/jsonl'])
      expect((await push(type, JSON.stringify(record))).body).toMatchObject({ accepted: 1 })
    for (const type of ['application/msgpack', 'application/x-msgpack', 'application/vnd.msgpack'])
      expect((await push(type, new Packr({ useRecords: false }).pack([record]))).body).toMatchObject({
        accepted: 1,
      })
    const refused = await push('application/json', JSON.stringify(record))
    expectProblem(refused, 'unsupported_media_type')
    expect(refused.body.allowed).toEqual(Object.keys(pushTypesOf(await get('/openapi.json'))))
  })

  it('that are too large are refused even if no length was announced', async () => {
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    const chunk = 'x'.repeat(16 * 1024)
    socket.write(
      'POST /api/v1/datapoint/batch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
    )
    for (let sent = 0; sent < 6; sent++) socket.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`)
    const [data] = (await once(socket, 'data')) as [Buffer]
    socket.destroy()
    expect(data.toString()).toMatch(/^HTTP\/1\.1 413 /)
  })

  it('are checked for type and size before the key, and for JSON after it', async () => {
    const submitPath = '/api/v1/analysis/submit'
    const plain = { 'Content-Type': 'text/plain' }
    expectProblem(await server.client.request('POST', submitPath, '{', plain), 'unsupported_media_type')
    expectProblem(await server.client.request('POST', submitPath, '{'), 'missing_key')
  })
})

describe('parameters', () => {
  it.each(['market?tab=x', 'market?sort=x', 'market?order=x', 'market?format=x'])(
    '%s is 400 and lists the allowed values',
    async (path) => {
      const answer = await get(`/api/v1/${path}`)
      const name = /\?(\w+)=/.exec(path)![1]
      expectProblem(answer, 'invalid_parameter', `/${name}`)
      expect(answer.body.errors[0].allowed.length).toBeGreaterThan(1)
      expect(answer.body.errors[0].allowed).toContain(answer.body.errors[0].suggestion)
    },
  )

  it.each([
    'market?limit=abc',
    'market?limit=-1',
    'market?offset=-1',
    'market?limit=1.5',
    'market?limit=NaN',
    'analysis?limit=-1',
  ])('%s is 400', async (path) => expectProblem(await get(`/api/v1/${path}`), 'invalid_parameter'))

  it('a query of 10240 characters is accepted, and one of 10241 is 400', async () => {
    expect((await get(`/api/v1/market?x=${'y'.repeat(10_238)}`)).status).toBe(200)
    expectProblem(await get(`/api/v1/market?x=${'y'.repeat(10_239)}`), 'invalid_parameter')
  })

  it('a format that cannot be produced is 406', async () => {
    expectProblem(await get('/api/v1/market', { Accept: 'text/html' }), 'not_acceptable')
    expectProblem(await get(`/api/v1/datapoint?mint=${mint}`, { Accept: 'image/png' }), 'not_acceptable')
    expect((await get('/api/v1/market?format=json', { Accept: 'text/html' })).status).toBe(200)
  })

  it('a mint must be present and be base58 of 32 bytes', async () => {
    for (const wrong of ['x', '0'.repeat(40), '1'.repeat(31), mint.slice(1, -3), '%00'])
      for (const path of ['datapoint', 'ohlc'])
        expectProblem(await get(`/api/v1/${path}?mint=${wrong}`), 'invalid_mint')
    for (const path of ['datapoint', 'ohlc']) {
      expectProblem(await get(`/api/v1/${path}`), 'invalid_parameter', '/mint')
      expectProblem(await get(`/api/v1/${path}?mint=${newMint()}`), 'token_not_found')
    }
  })
})

describe('keys', () => {
  const last = () => (key.endsWith('a') ? 'b' : 'a')

  it('an invalid key is 401 on every read, and never treated as no key', async () => {
    const bad = [`${key.slice(0, -1)}${last()}`, 'ps_x', `ps_${'a'.repeat(48)}`]
    for (const path of READS())
      for (const value of bad)
        for (const headers of [bearer(value), { 'X-API-Key': value }]) {
          const answer = await get(path, headers as Record<string, string>)
          expectProblem(answer, 'invalid_key')
          expect(answer.headers.get('www-authenticate')).toContain('Bearer')
        }
    for (const none of ['Basic dTpw', 'Bearer', 'Bearer '])
      expectProblem(await get('/api/v1/market', { Authorization: none }), 'invalid_key')
  })

  it('an invalid key is 401 on paths that need none, and a valid key of any kind is accepted there', async () => {
    const paths = [
      '/health',
      '/readyz',
      '/metrics',
      '/openapi.json',
      '/llms.txt',
      '/skill.md',
      '/api/v1/analysis/schema',
    ]
    for (const path of paths) {
      expectProblem(await get(path, bearer(`ps_${'a'.repeat(48)}`)), 'invalid_key')
      expectProblem(await get(path, { 'X-API-Key': 'x' }), 'invalid_key')
      for (const good of [key, FEED_KEY, ADMIN_KEY]) expect((await get(path, bearer(good))).status).toBe(200)
    }
    const register = (value: string) => server.client.post('/api/v1/keys/register', { name: 'again' }, value)
    expectProblem(await register('ps_x'), 'invalid_key')
    expect((await register(key)).status).toBe(201)
  })

  it('a key is accepted as a bearer token, in any case of the word, and as X-API-Key', async () => {
    for (const headers of [bearer(key), { Authorization: `bearer ${key}` }, { 'X-API-Key': key }])
      expect((await get('/api/v1/agent/profile', headers as Record<string, string>)).status).toBe(200)
  })

  it('of two keys none is ignored: the same twice is one, and different ones are 401', async () => {
    const profile = (apiKey: string, authorization: string) =>
      get('/api/v1/agent/profile', { Authorization: authorization, 'X-API-Key': apiKey })
    expect((await profile(key, `Bearer ${key}`)).status).toBe(200)
    for (const answer of [await profile('ps_x', `Bearer ${key}`), await profile(key, 'Bearer ps_x')])
      expectProblem(answer, 'invalid_key')
  })

  it('nor of two headers of one name: the same twice is one, different keys are 401, and Idempotency-Keys 400', async () => {
    const answer = async (path: string, ...headers: string[]) => {
      const raw = new RawSocket(server.url)
      const all = ['Host: x', 'Content-Type: application/json', 'Content-Length: 2', ...headers]
      await raw.write(`POST ${path} HTTP/1.1\r\n${all.join('\r\n')}\r\n\r\n{}`)
      const [status] = await raw.answers(1)
      raw.close()
      return status
    }
    const profile = '/api/v1/agent/profile'
    const [good, bad] = [`Bearer ${key}`, 'Bearer ps_x'].map((value) => `Authorization: ${value}`)
    expect(await answer(profile, good, good)).toBe(200)
    for (const two of [
      [good, bad],
      [bad, good],
    ])
      expect(await answer(profile, ...two)).toBe(401)
    expect(await answer(profile, `X-API-Key: ${key}`, 'X-API-Key: ps_x')).toBe(401)
    const first = 'Idempotency-Key: first'
    expect(await answer(profile, good, first, first)).toBe(200)
    expect(await answer(profile, good, first, 'Idempotency-Key: second')).toBe(400)
  })

  it('a key is required for what an agent does', async () => {
    const acts: [string, string, unknown?][] = [
      ['POST', '/api/v1/analysis/submit', submission(mint)],
      ['GET', '/api/v1/agent/profile'],
      ['POST', '/api/v1/agent/profile', {}],
      ['POST', '/api/v1/keys/rotate', {}],
      ['DELETE', '/api/v1/keys/current'],
    ]
    for (const [method, path, body] of acts) {
      const answer = await server.client.request(method, path, body)
      expectProblem(answer, 'missing_key')
      expect(answer.headers.get('www-authenticate')).toContain('Bearer')
    }
  })

  it('a key of one kind is refused where another kind is required', async () => {
    const ndjson = { 'Content-Type': 'application/x-ndjson' }
    for (const value of [key, ADMIN_KEY])
      expectProblem(
        await server.client.request('POST', '/api/v1/ingest', '', { ...ndjson, ...bearer(value) }),
        'invalid_key',
      )
    for (const value of [key, FEED_KEY])
      expectProblem(await get('/api/v1/admin/agents', bearer(value)), 'invalid_key')
    expectProblem(await get('/api/v1/admin/agents'), 'missing_key')
    expectProblem(await get('/api/v1/agent/profile', bearer(FEED_KEY)), 'invalid_key')
    expect((await get('/api/v1/admin/agents', bearer(ADMIN_KEY))).status).toBe(200)
  })
})
