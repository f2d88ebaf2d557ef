// search= and max_analyses= of the market list over real HTTP: formats, cursors, versions, bounds and streams.
import { tableFromIPC } from 'apache-arrow'
import { unpack } from 'msgpackr'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SORTS, TABS } from '../../../src/schema/vocabulary.ts'
import { clockOf } from '../../support/clock.ts'
import { expectProblem, newMint, seedToken, submission, submit } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

interface Row {
  mint: string
  name: string
  analysis_count: number
}

let server: TestServer
const NARWHALS = Array.from({ length: 9 }, newMint)
const OTTERS = Array.from({ length: 3 }, newMint)

beforeAll(async () => {
  server = await openTestServer()
  const ts = Date.now()
  const token = (mint: string, name: string) => ({
    type: 'token',
    mint,
    ts,
    name,
    symbol: 'TEST',
    totalSupply: 1e9,
  })
  await server.client.push(
    ...NARWHALS.map((mint, index) => token(mint, `Soggy Narwhal ${index}`)),
    ...OTTERS.map((mint, index) => token(mint, `Cosmic Otter ${index}`)),
    ...[...NARWHALS, ...OTTERS].map((mint, index) => trade(mint, index + 1)),
    ...[...NARWHALS, ...OTTERS].map((mint) => ({ type: 'live', mint, ts, isLive: true })),
    { type: 'graduated', mint: NARWHALS[0], ts },
  )
})
afterAll(() => server.remove())

const trade = (mint: string, priceUsd: number) => ({
  type: 'trade',
  mint,
  ts: Date.now(),
  side: 'buy',
  tokenAmount: 1_000,
  priceUsd,
})
const get = (query: string, headers?: Record<string, string>) =>
  server.client.get(`/api/v1/market?${query}`, headers)
const bytes = async (query: string) =>
  Buffer.from(await (await fetch(`${server.url}/api/v1/market?${query}`)).arrayBuffer())
const mintsOf = (rows: readonly Row[]) => rows.map(({ mint }) => mint)
const listed = async (query: string): Promise<string[]> =>
  mintsOf((await get(`limit=500&${query}`)).body.data)

describe('a search', () => {
  it('leaves the matching tokens in the order of every tab and sort', async () => {
    for (const tab of TABS)
      for (const sort of SORTS)
        for (const order of ['desc', 'asc']) {
          const query = `tab=${tab}&sort=${sort}&order=${order}`
          const expected = (await listed(query)).filter((mint) => NARWHALS.includes(mint))
          expect(await listed(`${query}&search=NARWhal`), query).toEqual(expected)
          expect(expected.length).toBe(tab === 'graduated' ? 1 : 9)
        }
  })

  it('finds words of the name, the symbol and the mint’s beginning, and tells how many', async () => {
    const { body } = await get('search=soggy%20nar&limit=2&offset=1')
    expect(body.meta).toMatchObject({ search: 'soggy nar', limit: 2, offset: 1, count: 2, total: 9 })
    expect(body.meta).not.toHaveProperty('maxAnalyses')
    expect(await listed('search=test')).toHaveLength(12)
    expect(await listed(`search=${OTTERS[1].slice(0, 12).toLowerCase()}`)).toEqual([OTTERS[1]])
    expect((await get('search=%F0%9F%9A%80')).body.meta).toMatchObject({ search: '🚀', total: 0 })
    const none = await get('search=walrus')
    expect(none.body).toMatchObject({ ok: true, data: [], meta: { total: 0, nextCursor: null } })
  })

  it('is the same in every format', async () => {
    const { data, meta } = (await get('search=otter&max_analyses=5')).body
    expect(data).toHaveLength(3)
    expect(meta).toMatchObject({ search: 'otter', maxAnalyses: 5, total: 3 })
    const ndjson = await get('search=otter&max_analyses=5&format=ndjson')
    expect(ndjson.text).toBe(data.map((row: Row) => `${JSON.stringify(row)}\n`).join(''))
    expect(ndjson.headers.get('x-result-count')).toBe('3')
    const packed = unpack(await bytes('search=otter&max_analyses=5&format=msgpack'))
    expect(packed).toEqual({ ok: true, data, meta })
    const table = tableFromIPC(await bytes('search=otter&max_analyses=5&format=arrow'))
    expect([...table.getChild('mint')!]).toEqual(mintsOf(data))
  })

  it('has 1 to 64 characters with a word among them; empty means none', async () => {
    expect((await get('search=&max_analyses=')).body.meta).toMatchObject({ total: 12 })
    expect((await get('search=')).body.meta).not.toHaveProperty('search')
    expect((await get(`search=${'a'.repeat(64)}`)).body.meta.total).toBe(0)
    for (const wrong of ['a'.repeat(65), '%20', '...'])
      expectProblem(await get(`search=${wrong}`), 'invalid_parameter', '/search')
    for (const wrong of ['-1', '1.5', 'none', '1e3'])
      expectProblem(await get(`max_analyses=${wrong}`), 'invalid_parameter', '/max_analyses')
  })

  it('counts the rows that it sends', async () => {
    const limited = await openTestServer({ 'read-limit-anonymous': '2' }, { tuning: { rowsPerRead: 5 } })
    try {
      await limited.client.push(...[1, 2, 3].map((price) => trade(newMint(), price)))
      const read = (query: string) => limited.client.get(`/api/v1/market?${query}`)
      expect((await read('search=zzzz&limit=500')).body.meta.total).toBe(0)
      expect((await read('max_analyses=0')).body.data).toHaveLength(3)
      expect((await read('max_analyses=0')).status).toBe(429)
    } finally {
      await limited.remove()
    }
  })
})

describe('the pages of a search', () => {
  it('neither repeat nor skip a token, whatever is traded, renamed or analysed meanwhile', async () => {
    for (const format of ['json', 'ndjson']) {
      const key = await server.client.register()
      const expected = await listed('search=narwhal&max_analyses=0')
      const seen: string[] = []
      let query = `search=narwhal&max_analyses=0&limit=2&format=${format}&cursor=`
      for (;;) {
        const { body, text, headers } = await get(query)
        const rows: Row[] =
          body?.data ??
          text
            .split('\n')
            .slice(0, -1)
            .map((line) => JSON.parse(line))
        seen.push(...mintsOf(rows))
        if (body !== null)
          expect(body.meta).toMatchObject({ search: 'narwhal', maxAnalyses: 0, total: expected.length })
        const next = headers.get('x-next-cursor')
        if (next === null) break
        const last = expected[expected.length - 1]
        if (seen.length === 2) expect((await submit(server.client, key, submission(last))).status).toBe(201)
        await server.client.push(
          trade(expected[seen.length % expected.length], 50),
          { type: 'patch', mint: expected[3], ts: Date.now(), fields: { name: 'Renamed' } },
          { type: 'token', mint: newMint(), ts: Date.now(), name: 'Narwhal', symbol: 'LATE' },
        )
        query = `limit=2&format=${format}&cursor=${next}`
      }
      expect(seen).toEqual(expected)
    }
  })

  it.each(['max_age_ms=86400000&limit=1', 'min_age_ms=0&limit=1&format=ndjson&cursor='])(
    'of a list that changes with time have an ETag of their cursor: %s',
    async (query) => {
      const first = await get(query)
      const cursor = first.headers.get('x-next-cursor')!
      // The market stands still, and once time has gone on a page is of another list, whose cursor is valid for longer.
      await expect
        .poll(async () => (await get(query)).headers.get('x-next-cursor'), { timeout: 10_000 })
        .not.toBe(cursor)
      expect((await get(query, { 'If-None-Match': first.headers.get('etag')! })).status).toBe(200)
    },
  )

  it('have an ETag that changes with their rows and with what they find', async () => {
    const mint = await seedToken(server.client, Date.now())
    const key = await server.client.register()
    for (const query of [
      'search=seed',
      'search=seed&max_analyses=0&format=ndjson',
      'max_analyses=0&limit=1',
    ]) {
      const first = await get(query)
      const ifNoneMatch = { 'If-None-Match': first.headers.get('etag')! }
      expect((await get(query, ifNoneMatch)).status, query).toBe(304)
      await server.client.push({ type: 'patch', mint, ts: Date.now(), fields: { holderCount: 7 } })
      expect((await get(query, ifNoneMatch)).status, query).toBe(200)
    }
    const before = await get('search=seed&max_analyses=0')
    expect(mintsOf(before.body.data)).toEqual([mint])
    await server.client.push({ type: 'patch', mint, ts: Date.now(), fields: { holderCount: 200 } })
    expect((await submit(server.client, key, submission(mint))).status).toBe(201)
    const after = await get('search=seed&max_analyses=0', { 'If-None-Match': before.headers.get('etag')! })
    expect([after.status, after.body.data, after.body.meta.total]).toEqual([200, [], 0])
    expect((await get('search=seed&max_analyses=1')).body.data).toMatchObject([{ mint, analysis_count: 1 }])
  })
})

it('a stream ignores both, and says so', async () => {
  const abort = new AbortController()
  const path = '/api/v1/market?follow=1&format=ndjson&search=otter&max_analyses=bad&limt=3&limit=500'
  const response = await fetch(server.url + path, { signal: abort.signal })
  expect(response.headers.get('x-ignored-parameters')).toBe('limt, search, max_analyses')
  const { value } = await response.body!.getReader().read()
  const rows = Buffer.from(value!).toString().split('\n')
  expect(rows.filter((row) => row.includes('Narwhal')).length).toBeGreaterThan(0)
  abort.abort()
})

it('a search with more rows than are encoded in one turn has all of them', async () => {
  const crowd = Array.from({ length: 600 }, newMint)
  const ts = Date.now()
  await server.client.push(
    ...crowd.map((mint, index) => ({ type: 'token', mint, ts, name: `Crowd ${index}`, symbol: 'C' })),
  )
  const { text, headers } = await get('search=crowd&format=ndjson&limit=1000&order=asc')
  expect(
    mintsOf(
      text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ),
  ).toEqual(crowd.toSorted().toReversed())
  expect(headers.get('x-result-count')).toBe('600')
})

it('a first page is sorted and filtered by what its rows are, also right after time alone has changed that', async () => {
  // The window of five minutes begins anew at each quarter of a minute.
  const moveMs = 1_800_000_000_000
  let nowMs = moveMs - 360_000
  const timed = await openTestServer({}, { clock: clockOf(() => nowMs) })
  try {
    const [steady, ...fallen] = Array.from({ length: 3 }, newMint) as [string, string, string]
    const push = (mints: readonly string[], fields: object) =>
      timed.client.push(...mints.map((mint) => ({ mint, ts: nowMs, ...fields })))
    const buy = (mints: readonly string[], priceUsd: number) =>
      push(mints, { type: 'trade', side: 'buy', tokenAmount: 1, priceUsd })
    const first = async (query: string) => {
      const { data, meta } = (await timed.client.get(`/api/v1/market?limit=1&fields=change_5m&${query}`)).body
      return [meta.total, data[0]?.change_5m]
    }
    const all = () => Promise.all(['sort=change_5m', 'min_change_5m=500', 'max_age_ms=360000'].map(first))
    await push([steady, ...fallen], { type: 'token', name: 'N', symbol: 'S' })
    await buy([steady, ...fallen], 1)
    nowMs = moveMs - 299_500
    await buy(fallen, 10)
    nowMs = moveMs - 3_000
    await buy([steady], 2)
    await buy(fallen, 10.5)
    nowMs = moveMs - 100
    timed.market.advanceTo(nowMs)
    expect(await all()).toEqual([
      [3, 950],
      [2, 950],
      [3, 950],
    ])
    nowMs = moveMs + 100
    timed.market.advanceTo(nowMs)
    expect(await all()).toEqual([
      [3, 100],
      [0, undefined],
      [0, undefined],
    ])
  } finally {
    await timed.remove()
  }
})
