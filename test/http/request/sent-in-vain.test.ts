// Parameters that a route knows and that have no effect beside another, or of which a second value is not read: each is told, as unknown
// ones are. Lists of words may be sent one by one.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FollowReader } from '../../support/follow-reader.ts'
import { StreamReader } from '../../support/stream-reader.ts'
import { seedToken } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

const HEADER = 'x-ignored-parameters'
let server: TestServer
let mints: string[]
beforeAll(async () => {
  server = await openTestServer()
  mints = [await seedToken(server.client, Date.now()), await seedToken(server.client, Date.now())]
})
afterAll(() => server.remove())

/** The names that an answer tells, in its header and in its `meta`. */
async function told(path: string): Promise<string | null> {
  const { status, headers, body } = await server.client.get(path)
  expect(status).toBe(200)
  const name = headers.get(HEADER)
  expect(body.meta?.ignored?.join(', ') ?? null).toBe(name)
  return name
}

describe('a parameter that has no effect is told', () => {
  it('since, where nothing is followed', async () => {
    expect(await told('/api/v1/market?since=7')).toBe('since')
    expect(await told('/api/v1/market?since=')).toBeNull()
    expect(await told('/api/v1/market?since=7&nonsense=1')).toBe('nonsense, since')
  })

  it('what a cursor says itself, on pages and on 304', async () => {
    const first = await server.client.get('/api/v1/market?limit=1')
    const cursor = `/api/v1/market?limit=1&fields=symbol&cursor=${first.body.meta.nextCursor}`
    expect(await told(cursor)).toBeNull()
    const more = '&tab=live&sort=price&offset=1&min_price=5&max_analyses=2&since=3'
    const page = await server.client.get(cursor + more)
    const names = ['tab', 'sort', 'offset', 'max_analyses', 'min_price', 'since']
    expect(page.body.meta.ignored.toSorted()).toEqual(names.toSorted())
    const etag = page.headers.get('etag')!
    const current = await server.client.get(cursor + more, { 'If-None-Match': etag })
    expect([current.status, current.headers.get(HEADER)]).toEqual([304, page.headers.get(HEADER)])
    const lines = await server.client.get(`${cursor}&order=asc&format=ndjson`)
    expect(lines.headers.get(HEADER)).toBe('order')
  })

  it('a cursor where there are no pages', async () => {
    expect(await told('/api/v1/analysis?cursor=x')).toBe('cursor')
    for (const follow of ['1', 'window']) {
      const stream = new FollowReader(`${server.url}/api/v1/market?format=ndjson&follow=${follow}&cursor=x`)
      await stream.next()
      expect(stream.headers.get(HEADER), follow).toBe('cursor')
      stream.close()
    }
  })

  it('in a message on a WebSocket too, and a limit above its maximum', async () => {
    const socket = new StreamReader(`${server.url.replace('http', 'ws')}/api/v1/stream`)
    const mint = mints[0]
    try {
      await socket.send({ op: 'subscribe', topic: 'ohlc', mint, limit: 5_000, fields: 'o', channel: 'x' })
      const answer = { event: 'subscribed', clamped: { limit: 1_000 }, ignored: ['fields', 'channel'] }
      expect(await socket.next()).toMatchObject(answer)
      await socket.next()
      await socket.send({ op: 'subscribe', topic: 'token', mint, id: '1' })
      expect(await socket.next()).toEqual({ event: 'subscribed', id: '1', channel: `token:${mint}` })
    } finally {
      socket.close()
    }
  })
})

describe('a parameter that is sent several times', () => {
  it('is told where the values differ: the first counts', async () => {
    expect(await told('/api/v1/market?limit=1&limit=2')).toBe('limit')
    expect(await told('/api/v1/market?limit=1&limit=1')).toBeNull()
    expect(await told(`/api/v1/datapoint?mint=${mints[0]}&mint=${mints[1]}`)).toBe('mint')
  })

  it('is a list, if it may be one', async () => {
    const query = `mints=${mints[0]}&mints=${mints[1]}&fields=symbol&fields=priceUsd`
    const { headers, body } = await server.client.get(`/api/v1/market?${query}`)
    expect(headers.get(HEADER)).toBeNull()
    expect(body.meta).toMatchObject({ mints: 2, total: 2, fields: ['mint', 'symbol', 'priceUsd'] })
  })
})
