// Reads over real HTTP (market list, DataPoint, bars) with their parameters, formats and versions; and pushes.
import { tableFromIPC } from 'apache-arrow'
import { Packr, unpack } from 'msgpackr'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dataPointSchema } from '../../../src/schema/datapoint.ts'
import { marketItemSchema } from '../../../src/schema/market-item.ts'
import { SORTS, type Sort, TABS } from '../../../src/schema/vocabulary.ts'
import { expectProblem, newMint } from '../../support/submission.ts'
import { checkedFetch, FEED_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'

const MINUTE_MS = 60_000
let server: TestServer
const mints = Array.from({ length: 12 }, newMint)
const nowMs = Date.now()
/** The start of a minute some minutes ago. */
const DAY_MS = 86_400_000
const baseMs = nowMs - (nowMs % MINUTE_MS) - 10 * MINUTE_MS

beforeAll(async () => {
  server = await openTestServer()
  await server.client.push({ type: 'solPrice', ts: baseMs, usd: 100 })
  for (const [index, mint] of mints.entries()) {
    const ts = baseMs + index
    await server.client.push(
      {
        type: 'token',
        mint,
        ts,
        name: `Token ${index}`,
        symbol: `T${index}`,
        totalSupply: 1e9,
        description: 'line\nbreak "quoted" é🚀',
      },
      {
        type: 'trade',
        mint,
        ts,
        side: 'buy',
        tokenAmount: 1_000 * (index + 1),
        priceUsd: 4.5e-9 * (index + 1),
        solAmount: 0.5,
        tx: `tx${index}`,
        wallet: 'w',
      },
    )
  }
  await server.client.push(
    { type: 'live', mint: mints[3], ts: nowMs, isLive: true, viewerCount: 9 },
    { type: 'graduated', mint: mints[4], ts: nowMs },
  )
})
afterAll(() => server.remove())

/** Figures that no token of this market has. */
const UNKNOWN_HERE = new Set<Sort>([
  'change_5m',
  'change_1h',
  'change_6h',
  'change_24h',
  'liquidity',
  'holders',
])

const get = (path: string, headers?: Record<string, string>) => server.client.get(path, headers)
const bytes = async (path: string) => Buffer.from(await (await checkedFetch(server.url + path)).arrayBuffer())

describe('the market list', () => {
  it('has all fields of the contract, and the same bytes for a row in JSON and NDJSON', async () => {
    const json = await get('/api/v1/market?limit=5')
    const ndjson = await get('/api/v1/market?limit=5&format=ndjson')
    expect(ndjson.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
    expect(ndjson.headers.get('x-result-count')).toBe('5')
    expect(ndjson.text.endsWith('}\n')).toBe(true)
    const lines = ndjson.text.split('\n').slice(0, -1)
    expect(lines).toHaveLength(5)
    expect(json.text.startsWith(`{"ok":true,"data":[${lines.join(',')}],"meta":{`)).toBe(true)
    for (const line of lines)
      expect(Object.keys(JSON.parse(line))).toEqual(Object.keys(marketItemSchema.shape))
    expect(() => marketItemSchema.array().parse(json.body.data)).not.toThrow()
    expect(json.body.meta).toMatchObject({
      tab: 'all',
      sort: 'hot',
      order: 'desc',
      limit: 5,
      offset: 0,
      total: 12,
    })
  })

  it('answers every tab, sort and order, in upper or lower case', async () => {
    for (const tab of TABS) {
      for (const sort of SORTS) {
        const down = (await get(`/api/v1/market?tab=${tab}&sort=${sort}&order=DESC&limit=500`)).body.data.map(
          ({ mint }: { mint: string }) => mint,
        )
        const up = (
          await get(`/api/v1/market?tab=${tab.toUpperCase()}&sort=${sort}&order=Asc&limit=500`)
        ).body.data.map(({ mint }: { mint: string }) => mint)
        // What is known is in the opposite order; here all is known of all tokens, or nothing. The change of five minutes becomes known
        // with the end of a quarter of a minute.
        const expected = UNKNOWN_HERE.has(sort) ? [down] : [down.toReversed()]
        if (sort === 'change_5m') expected.push(down.toReversed())
        expect(expected, sort).toContainEqual(up)
        expect(down.length).toBe({ all: 12, new: 12, live: 1, graduated: 1 }[tab])
      }
    }
    const hot = (await get('/api/v1/market?sort=hot')).body.data
    expect(hot.map(({ hot_score }: { hot_score: number }) => hot_score)).toEqual(
      hot.map(({ hot_score }: { hot_score: number }) => hot_score).toSorted((a: number, b: number) => b - a),
    )
    expect((await get('/api/v1/market?tab=new')).body.meta.sort).toBe('created_timestamp')
  })

  it('clamps a limit that is too large and says so, and refuses one that is not a number', async () => {
    const clamped = await get('/api/v1/market?limit=9999')
    expect(clamped.body.meta).toMatchObject({ limit: 500, clamped: { limit: 500 } })
    for (const [name, value] of [
      ['limit', 'x'],
      ['limit', '-1'],
      ['limit', '0'],
      ['offset', '-1'],
      ['offset', '1.5'],
      ['limit', '1e3'],
    ]) {
      expectProblem(await get(`/api/v1/market?${name}=${value}`), 'invalid_parameter', `/${name}`)
    }
    const unknown = await get('/api/v1/market?tab=grduated')
    expectProblem(unknown, 'invalid_parameter', '/tab')
    expect(unknown.body.errors[0]).toMatchObject({ allowed: [...TABS], suggestion: 'graduated' })
  })

  it('is empty past its end', async () => {
    const ndjson = await get('/api/v1/market?offset=1000&format=ndjson')
    expect([ndjson.status, ndjson.text, ndjson.headers.get('x-result-count')]).toEqual([200, '', '0'])
    expect((await get('/api/v1/market?offset=1000')).body).toMatchObject({ ok: true, data: [] })
  })

  it('chooses its format by the parameter, else by Accept, else JSON', async () => {
    const accept = 'application/x-ndjson'
    expect((await get('/api/v1/market', { Accept: accept })).headers.get('content-type')).toContain(
      'x-ndjson',
    )
    expect(
      (await get('/api/v1/market?format=json', { Accept: accept })).headers.get('content-type'),
    ).toContain('application/json')
    expect(
      (await get('/api/v1/market', { Accept: 'text/html, */*;q=0.1' })).headers.get('content-type'),
    ).toContain('application/json')
    expectProblem(await get('/api/v1/market', { Accept: 'text/html' }), 'not_acceptable')
    expectProblem(await get('/api/v1/market?format=xml'), 'invalid_parameter', '/format')
  })

  it('has the same data as msgpack and as Arrow', async () => {
    const { data } = (await get('/api/v1/market?limit=4')).body
    expect(unpack(await bytes('/api/v1/market?limit=4&format=msgpack')).data).toEqual(data)
    const table = tableFromIPC(await bytes('/api/v1/market?limit=4&format=arrow'))
    expect(table.schema.fields.map(({ name }) => name)).toEqual(Object.keys(marketItemSchema.shape))
    expect(table.toArray().map((row) => row.toJSON())).toEqual(
      data.map((item: object) => expect.objectContaining({ mint: (item as { mint: string }).mint })),
    )
    expect(table.getChild('priceUsd')?.get(0)).toBe(data[0].priceUsd)
    expect(table.getChild('holder_count')?.get(0)).toBeNull()
  })

  it('is compressed on request, and decompresses to the same bytes', async () => {
    const plain = await bytes('/api/v1/market?format=ndjson')
    for (const coding of ['gzip', 'br']) {
      const response = await checkedFetch(`${server.url}/api/v1/market?format=ndjson`, {
        headers: { 'Accept-Encoding': coding },
      })
      expect(response.headers.get('content-encoding')).toBe(coding)
      expect(Buffer.from(await response.arrayBuffer()).equals(plain)).toBe(true)
    }
  })

  it('has an ETag that stays the same until something changes', async () => {
    const first = await get('/api/v1/market?format=ndjson&limit=3')
    const etag = first.headers.get('etag')!
    expect(etag).toMatch(/^W\//)
    const again = await get('/api/v1/market?format=ndjson&limit=3', { 'If-None-Match': etag })
    expect([again.status, again.text]).toEqual([304, ''])
    await server.client.push({ type: 'patch', mint: mints[0], ts: nowMs, fields: { holderCount: 7 } })
    const changed = await get('/api/v1/market?format=ndjson&limit=3', { 'If-None-Match': etag })
    expect(changed.status).toBe(200)
    expect(changed.headers.get('x-list-version')).not.toBe(first.headers.get('x-list-version'))
    await server.client.push({ type: 'patch', mint: mints[0], ts: nowMs, fields: { holderCount: null } })
  })

  it('has one version for all pages of a cursor, while each first page is current', async () => {
    const versions = new Set<string | null>()
    for (let round = 0; round < 20; round++) {
      await server.client.push({
        type: 'patch',
        mint: mints[0],
        ts: Date.now(),
        fields: { holderCount: round },
      })
      const first = await get('/api/v1/market?limit=5&sort=market_cap')
      versions.add(first.headers.get('x-list-version'))
      const pages = [first.body.data]
      for (let cursor = first.body.meta.nextCursor; cursor !== null; ) {
        const { data, meta } = (await get(`/api/v1/market?limit=5&cursor=${cursor}`)).body
        pages.push(data)
        cursor = meta.nextCursor
      }
      const rows = pages.flat()
      expect(rows.map(({ mint }) => mint).toSorted()).toEqual(mints.toSorted())
      expect(rows.find(({ mint }) => mint === mints[0]).holder_count).toBe(round)
    }
    expect(versions.size).toBe(20)
    await server.client.push({ type: 'patch', mint: mints[0], ts: Date.now(), fields: { holderCount: null } })
  })

  it('has every row once over all pages of a cursor, whatever is traded meanwhile', async () => {
    const seen: string[] = []
    let path = '/api/v1/market?limit=5'
    for (;;) {
      const { data, meta } = (await get(path)).body
      seen.push(...data.map(({ mint }: { mint: string }) => mint))
      const busiest = mints[seen.length % mints.length]
      await server.client.push({
        type: 'trade',
        mint: busiest,
        ts: Date.now(),
        side: 'buy',
        tokenAmount: 1e9,
        priceUsd: 1e-3,
      })
      if (meta.nextCursor === null) break
      path = `/api/v1/market?limit=5&cursor=${meta.nextCursor}`
    }
    expect(seen.toSorted()).toEqual(mints.toSorted())
    const packed = unpack(await bytes('/api/v1/market?limit=5&format=msgpack')).meta
    expect((await get(`/api/v1/market?limit=50&cursor=${packed.nextCursor}`)).body.data).toHaveLength(7)
    const ndjson = await get('/api/v1/market?limit=5&format=ndjson&cursor=')
    expect(
      (
        await get(`/api/v1/market?limit=50&format=ndjson&cursor=${ndjson.headers.get('x-next-cursor')}`)
      ).text.split('\n'),
    ).toHaveLength(8)
    expectProblem(await get('/api/v1/market?cursor=nonsense'), 'invalid_parameter', '/cursor')
    const foreign = Buffer.from(`${'0'.repeat(22)}.0.5.`).toString('base64url')
    expectProblem(await get(`/api/v1/market?cursor=${foreign}`), 'cursor_expired')
  })
})

describe('a DataPoint', () => {
  it('has every field of the contract, null where unknown', async () => {
    const { body, headers } = await get(`/api/v1/datapoint?mint=${mints[3]}`)
    expect(Object.keys(body.data).toSorted()).toEqual(Object.keys(dataPointSchema.shape).toSorted())
    expect(() => dataPointSchema.strict().parse(body.data)).not.toThrow()
    expect(body.data).toMatchObject({
      mint: mints[3],
      isLive: true,
      isCurrentlyLive: true,
      streamSource: 'pumpfun',
      viewerCount: 9,
      holderCount: null,
      has_mint_authority: null,
      tradeCount: 1,
    })
    expect(Math.abs(body.data.snapshotAt - Date.now())).toBeLessThan(5_000)
    expect(body.data.recentTrades[0]).toMatchObject({
      tx: 'tx3',
      type: 'buy',
      sol: 0.5,
      wallet: 'w',
      timestamp: baseMs + 3,
    })
    expect(headers.get('cache-control')).toBe('public, max-age=1')
    expect(headers.get('etag')).toMatch(/^W\//)
  })

  it('is refused for an unknown or malformed mint', async () => {
    expectProblem(await get(`/api/v1/datapoint?mint=${newMint()}`), 'token_not_found')
    expectProblem(await get('/api/v1/datapoint?mint=xyz'), 'invalid_mint', '/mint')
    expectProblem(await get('/api/v1/datapoint'), 'invalid_parameter', '/mint')
  })

  it('can be requested in batches of one to ten', async () => {
    const unknown = newMint()
    const { body } = await server.client.post('/api/v1/datapoint/batch', {
      mints: [mints[0], unknown, mints[1]],
    })
    expect(body.data.map(({ mint }: { mint: string }) => mint)).toEqual([mints[0], mints[1]])
    expect(body.meta.notFound).toEqual([unknown])
    for (const wrong of [[], Array.from({ length: 11 }, newMint), 'x', undefined]) {
      expectProblem(
        await server.client.post('/api/v1/datapoint/batch', { mints: wrong }),
        'validation_failed',
        '/mints',
      )
    }
    expectProblem(
      await server.client.post('/api/v1/datapoint/batch', { mints: [mints[0], 'x'] }),
      'invalid_mint',
      '/mints/1',
    )
  })
})

describe('bars', () => {
  const mint = newMint()
  const trade = (minute: number, priceUsd: number, more: object = {}) => ({
    type: 'trade',
    mint,
    ts: baseMs + minute * MINUTE_MS,
    side: 'buy',
    tokenAmount: 2,
    priceUsd,
    ...more,
  })
  beforeAll(() =>
    server.client.push(
      trade(0, 1),
      trade(0, 3, { ts: baseMs + 1 }),
      trade(0, 2, { ts: baseMs + 2 }),
      trade(3, 4),
      trade(4, 5, { ts: baseMs + 4 * MINUTE_MS + 5_000 }),
    ),
  )

  it('are in ascending order with the open one last, and have the values of their trades', async () => {
    const { data, meta } = (await get(`/api/v1/ohlc?mint=${mint}&tf=1m`)).body
    expect(data).toEqual([
      { t: baseMs, o: 1, h: 3, l: 1, c: 2, v: 12, n: 3, closed: true },
      { t: baseMs + 3 * MINUTE_MS, o: 4, h: 4, l: 4, c: 4, v: 8, n: 1, closed: true },
      { t: baseMs + 4 * MINUTE_MS, o: 5, h: 5, l: 5, c: 5, v: 10, n: 1, closed: false },
    ])
    expect(meta).toEqual({ mint, tf: '1m', limit: 100, fill: 'none', gaps: 2 })
  })

  it('obey limit, from, to, fill, shape and format', async () => {
    const bars = async (query: string) => (await get(`/api/v1/ohlc?mint=${mint}&${query}`)).body
    expect((await bars('limit=1')).data.map(({ c }: { c: number }) => c)).toEqual([5])
    expect((await bars(`from=${baseMs + 1}`)).data).toHaveLength(2)
    expect((await bars(`to=${baseMs}`)).data).toHaveLength(1)
    expect((await bars('fill=prev')).data.map(({ c, n }: { c: number; n: number }) => [c, n])).toEqual([
      [2, 3],
      [2, 0],
      [2, 0],
      [4, 1],
      [5, 1],
    ])
    expect(Object.keys((await bars('shape=long')).data[0])).toEqual([
      'timestamp',
      'open',
      'high',
      'low',
      'close',
      'volume',
      'trades',
      'closed',
    ])
    expect((await bars('limit=5000')).meta).toMatchObject({ limit: 1000, clamped: { limit: 1000 } })
    // Around midnight UTC the minutes belong to two days.
    const days = [0, 4].map((minute) => Math.floor((baseMs + minute * MINUTE_MS) / DAY_MS))
    expect((await bars('tf=1d')).data).toHaveLength(new Set(days).size)
    const ndjson = await get(`/api/v1/ohlc?mint=${mint}&format=ndjson`)
    expect(ndjson.text.split('\n')).toHaveLength(4)
    expect(unpack(await bytes(`/api/v1/ohlc?mint=${mint}&format=msgpack`)).data).toHaveLength(3)
    const table = tableFromIPC(await bytes(`/api/v1/ohlc?mint=${mint}&format=arrow`))
    expect([...(table.getChild('c') ?? [])]).toEqual([2, 4, 5])
    expectProblem(await get(`/api/v1/ohlc?mint=${mint}&tf=2m`), 'invalid_parameter', '/tf')
    expectProblem(await get(`/api/v1/ohlc?mint=${mint}&from=yesterday`), 'invalid_parameter', '/from')
  })

  it('are the same rows in JSON and NDJSON, and equal what JSON.stringify writes', async () => {
    for (const query of ['', '&limit=2', '&fill=prev', '&shape=long', '&shape=long&fill=prev', '&to=1']) {
      const json = await get(`/api/v1/ohlc?mint=${mint}${query}`)
      const lines = await get(`/api/v1/ohlc?mint=${mint}${query}&format=ndjson`)
      expect(json.text).toBe(JSON.stringify(json.body))
      expect(lines.text).toBe(json.body.data.map((bar: object) => `${JSON.stringify(bar)}\n`).join(''))
      for (const { headers } of [json, lines])
        expect(headers.get('x-result-count')).toBe(`${json.body.data.length}`)
    }
  })

  it('have an ETag that stays the same until a trade', async () => {
    for (const format of ['json', 'ndjson', 'msgpack', 'arrow']) {
      const path = `/api/v1/ohlc?mint=${mint}&format=${format}`
      const etag = (await get(path)).headers.get('etag')!
      expect((await get(path, { 'If-None-Match': etag })).status).toBe(304)
      await server.client.push(trade(4, 5, { ts: baseMs + 4 * MINUTE_MS + 6_000, tokenAmount: 1e-6 }))
      expect((await get(path, { 'If-None-Match': etag })).status).toBe(200)
    }
  })

  it('are an empty list for a known mint without trades, and an error for an unknown one', async () => {
    const quiet = newMint()
    await server.client.push({ type: 'token', mint: quiet, ts: nowMs, name: 'Quiet', symbol: 'Q' })
    expect((await get(`/api/v1/ohlc?mint=${quiet}`)).body.data).toEqual([])
    expectProblem(await get(`/api/v1/ohlc?mint=${newMint()}`), 'token_not_found')
  })
})

describe('a push', () => {
  const push = (body: string | Uint8Array, type = 'application/x-ndjson', key = FEED_KEY) =>
    server.client.request('POST', '/api/v1/ingest', body, {
      'Content-Type': type,
      Authorization: `Bearer ${key}`,
    })

  it('accepts the neighbours of a bad record, and reports what is wrong with it', async () => {
    const good = { type: 'token', mint: newMint(), ts: nowMs, name: 'Good', symbol: 'G' }
    const { body } = await push(
      `${JSON.stringify(good)}\nnot json\n${JSON.stringify({ ...good, mint: 'bad' })}\n${JSON.stringify({ ...good, type: 'trade' })}\n`,
    )
    expect(body).toMatchObject({ ok: true, accepted: 1, rejected: 3 })
    expect(body.errors.map(({ index, code }: { index: number; code: string }) => [index, code])).toEqual([
      [1, 'invalid_json'],
      [2, 'invalid_mint'],
      [3, expect.any(String)],
    ])
    expect((await get(`/api/v1/datapoint?mint=${good.mint}`)).body.data.name).toBe('Good')
  })

  it('can be msgpack: an array, or records one after another', async () => {
    const packr = new Packr({ useRecords: false })
    const record = (name: string) => ({ type: 'token', mint: newMint(), ts: nowMs, name, symbol: 'M' })
    const [one, two, three] = ['one', 'two', 'three'].map(record)
    expect((await push(packr.pack([one, two]), 'application/msgpack')).body).toMatchObject({
      accepted: 2,
      rejected: 0,
    })
    expect(
      (await push(Buffer.concat([packr.pack(three), packr.pack(one)]), 'application/msgpack')).body,
    ).toMatchObject({ accepted: 2 })
    expect((await get(`/api/v1/datapoint?mint=${three.mint}`)).body.data.name).toBe('three')
  })

  it('requires the feed key', async () => {
    expectProblem(await push('{}', 'application/x-ndjson', 'wrong'), 'invalid_key')
    expectProblem(await push('{}', 'text/csv'), 'unsupported_media_type')
  })
})
