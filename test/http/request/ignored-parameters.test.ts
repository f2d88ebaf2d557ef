// Query parameters that a route does not know: told on every answer, and nothing is told otherwise. What a route declares as its
// query is what it reads.
import { unpack } from 'msgpackr'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Context, Query } from '../../../src/http/context.ts'
import { singleNode } from '../../../src/http/node.ts'
import { Cursors } from '../../../src/http/response/cursors.ts'
import type { Route } from '../../../src/http/route.ts'
import { allRoutes } from '../../../src/http/routes/all-routes.ts'
import type { RouteParts } from '../../../src/http/routes/route-parts.ts'
import { Broadcaster } from '../../../src/http/stream/broadcaster.ts'
import { Market } from '../../../src/market/market.ts'
import { IGNORED_NAME_CHARACTERS_MAX, IGNORED_NAMES_MAX } from '../../../src/schema/api/parts.ts'
import { expectProblem, seedToken, submission } from '../../support/submission.ts'
import { ADMIN_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'

const HEADER = 'x-ignored-parameters'
let server: TestServer
let mint: string
let key: string
beforeAll(async () => {
  server = await openTestServer({ 'page-age-ms': '500' })
  mint = await seedToken(server.client, Date.now())
  key = await server.client.register()
})
afterAll(() => server.remove())
const get = (path: string, headers?: Record<string, string>) => server.client.get(path, headers)

describe('an unknown parameter', () => {
  it.each([
    ['/api/v1/market', 'tab=all'],
    ['/api/v1/market', 'limit=9999&search=seed'],
    ['/api/v1/datapoint', 'mint={mint}'],
    ['/api/v1/ohlc', 'mint={mint}&limit=9999'],
    ['/api/v1/analysis', 'limit=5'],
    ['/api/v1/analysis', 'limit=500'],
    ['/api/v1/agents/leaderboard', 'limit=5'],
    ['/api/v1/xp', ''],
    ['/health', ''],
    ['/readyz', ''],
  ])('is told by %s?%s, which answers the same as without', async (path, query) => {
    const known = `${path}?${query.replace('{mint}', mint)}`
    let [plain, told] = [await get(known), await get(`${known}&limt=1&sørt=x`)]
    // A second may begin between the two.
    while (plain.body.data?.snapshotAt !== told.body.data?.snapshotAt)
      [plain, told] = [await get(known), await get(`${known}&limt=1&sørt=x`)]
    expect(plain.headers.has(HEADER)).toBe(false)
    expect(plain.body.meta ?? {}).not.toHaveProperty('ignored')
    expect(told.status).toBe(200)
    expect(told.headers.get(HEADER)).toBe('limt, s%C3%B8rt')
    expect(told.body.meta).toEqual({ ...plain.body.meta, ignored: ['limt', 'sørt'] })
    expect(told.body.data).toEqual(plain.body.data)
    expect(told.headers.get('access-control-expose-headers')).toContain('X-Ignored-Parameters')
  })

  it('is told in every format of a list and of bars', async () => {
    for (const path of [`/api/v1/market?limit=1`, `/api/v1/ohlc?mint=${mint}`]) {
      for (const format of ['ndjson', 'arrow'])
        expect((await get(`${path}&format=${format}&x=1`)).headers.get(HEADER)).toBe('x')
      const response = await fetch(`${server.url}${path}&format=msgpack&x=1&ü=2`)
      expect(response.headers.get(HEADER)).toBe('x, %C3%BC')
      expect(unpack(Buffer.from(await response.arrayBuffer())).meta.ignored).toEqual(['x', 'ü'])
    }
  })

  it('is told by documents in the header alone', async () => {
    for (const path of ['/openapi.json', '/skill.md', '/metrics', '/api/v1/analysis/schema']) {
      const [plain, told] = [await get(path), await get(`${path}?v=2`)]
      expect(told.headers.get(HEADER), path).toBe('v')
      if (path !== '/metrics') expect(told.text).toBe(plain.text)
    }
  })

  it('is told by errors, writes and 304, too', async () => {
    const wrong = await get('/api/v1/market?limit=x&limt=1')
    expectProblem(wrong, 'invalid_parameter', '/limit')
    expect([wrong.headers.get(HEADER), wrong.body.meta]).toEqual(['limt', { ignored: ['limt'] }])
    const unauthorised = await get('/api/v1/agent/profile?x=1')
    expectProblem(unauthorised, 'missing_key')
    expect(unauthorised.headers.get(HEADER)).toBe('x')
    for (const path of ['/api/v1/agent/profile', '/api/v1/analysis/submit', '/api/v1/datapoint/batch']) {
      const body = path.endsWith('batch') ? { mints: [mint] } : submission(mint)
      const told = await server.client.post(`${path}?x=1`, path.endsWith('profile') ? {} : body, key)
      expect(told.status, told.text).toBeLessThan(300)
      expect([told.headers.get(HEADER), told.body.meta.ignored]).toEqual(['x', ['x']])
    }
    const first = await get('/api/v1/market?x=1')
    const current = await get('/api/v1/market?x=1', { 'If-None-Match': first.headers.get('etag')! })
    expect([current.status, current.text, current.headers.get(HEADER)]).toEqual([304, '', 'x'])
    const admin = await get('/api/v1/admin/agents?x=1', { Authorization: `Bearer ${ADMIN_KEY}` })
    expect(admin.body.meta.ignored).toEqual(['x'])
  })

  it('is told by a cached answer, and by none for another query', async () => {
    for (const query of ['limit=1&x=1', 'limit=1', 'limit=1&x=1', 'limit=1&y=1', 'limit=1']) {
      const { headers, body } = await get(`/api/v1/market?${query}`)
      const name = /[xy]/.exec(query)?.[0] ?? null
      expect([headers.get(HEADER), body.meta.ignored ?? null]).toEqual([name, name && [name]])
    }
  })

  it('has a bounded name that is safe in a header', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `n${index}`)
    const many = await get(`/health?${names.map((name) => `${name}=1`).join('&')}`)
    expect(many.body.meta.ignored).toEqual(names.slice(0, IGNORED_NAMES_MAX))
    expect(many.headers.get(HEADER)).toBe(names.slice(0, IGNORED_NAMES_MAX).join(', '))
    const long = await get(`/health?${'a'.repeat(500)}=1`)
    expect(long.body.meta.ignored).toEqual(['a'.repeat(IGNORED_NAME_CHARACTERS_MAX)])
    const pairs = `${'b'.repeat(IGNORED_NAME_CHARACTERS_MAX - 1)}🚀`
    expect((await get(`/health?${encodeURIComponent(pairs)}`)).status).toBe(200)
    const hostile = await get(
      '/health?a%0D%0ASet-Cookie:%20b=1&c,d&100%25&%00&filter[x]=1&=1&%FF=2&a=1&a=2&__proto__=1',
    )
    expect(hostile.headers.get('set-cookie')).toBeNull()
    expect(hostile.headers.get(HEADER)).toBe(
      'a%0D%0ASet-Cookie:%20b, c%2Cd, 100%25, %00, filter[x], %EF%BF%BD, a, __proto__',
    )
    expect(hostile.body.meta.ignored.slice(0, 2)).toEqual(['a\r\nSet-Cookie: b', 'c,d'])
  })
})

/** Notes the names that are read. */
class RecordingQuery implements Query {
  readonly names = new Set<string>()
  readonly #values: URLSearchParams

  constructor(text: string) {
    this.#values = new URLSearchParams(text)
  }

  get(name: string): string | null {
    this.names.add(name)
    return this.#values.get(name)
  }
}

/** Every route over an empty market. What routes need beyond that is missing: by then they have read their query. */
function emptyRoutes(): Route[] {
  const market = new Market({ tokensMax: 8 })
  const node = singleNode()
  const cursors = new Cursors({ market, run: node.run })
  const deps = { market, node, broadcaster: new Broadcaster(market), cursors, settings: {} }
  return allRoutes(deps as unknown as RouteParts)
}

/** The names that the route reads of a query. */
async function readNames(route: Route, text: string): Promise<ReadonlySet<string>> {
  const query = new RecordingQuery(text)
  const headers = { accept: '', ifNoneMatch: '', idempotencyKey: '', contentType: '' }
  const context = { query, notes: {}, headers, id: 'x', body: Buffer.alloc(0), caller: {}, ip: () => '::1' }
  try {
    await route.handle(context as unknown as Context & { caller: never })
  } catch {
    // An error of what is missing; the names have been read.
  }
  return query.names
}

it.each(emptyRoutes().map((route) => [`${route.method} ${route.path}`, route] as const))(
  '%s reads the parameters that it declares, and no others',
  async (_, route) => {
    const declared = Object.keys(route.docs?.query?.shape ?? {})
    const read = new Set<string>()
    for (const text of ['', `mint=${mint}`, 'follow=1', 'cursor=x', `mint=${mint}&cursor=`])
      for (const name of await readNames(route, text)) read.add(name)
    expect([...read].toSorted()).toEqual(declared.toSorted())
  },
)
