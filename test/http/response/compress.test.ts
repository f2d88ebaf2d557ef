// Compressed answers: how often they are compressed, which of them are cached, and what a client receives.
import { hash, randomBytes } from 'node:crypto'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { bodyBytes, type Context, type HttpAnswer } from '../../../src/http/context.ts'
import { COMPRESSIONS_AT_ONCE, COMPRESSIONS_WAITING_MAX } from '../../../src/http/limits.ts'
import { singleNode } from '../../../src/http/node.ts'
import { ChunkedBody } from '../../../src/http/response/chunked-body.ts'
import { CODINGS, type Coding, CompressionCache } from '../../../src/http/response/compress.ts'
import { Cursors } from '../../../src/http/response/cursors.ts'
import { barRoute } from '../../../src/http/routes/bars.ts'
import { marketRoutes } from '../../../src/http/routes/market.ts'
import { Broadcaster } from '../../../src/http/stream/broadcaster.ts'
import { Market } from '../../../src/market/market.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { Health } from '../../../src/server/health.ts'
import { openTestServer } from '../../support/test-server.ts'

const START_MS = 1_772_000_000_000
const OPEN = { gzip: gunzipSync, br: brotliDecompressSync }

/** A compression cache that counts how often each coding compresses. */
function counted(bytesMax?: number) {
  const made = { gzip: 0, br: 0 }
  const counting = (coding: Coding) => (body: Buffer) => {
    made[coding]++
    return CODINGS[coding](body)
  }
  return {
    made,
    compressionCache: new CompressionCache({ gzip: counting('gzip'), br: counting('br') }, bytesMax),
  }
}

/** As it comes to be compressed: with its version. */
const textAnswer = (text: string): HttpAnswer => ({
  status: 200,
  body: Buffer.from(text),
  headers: { ETag: `W/"${hash('sha1', text)}"` },
})
const bodyOf = async (answer: HttpAnswer | Promise<HttpAnswer>) => (await answer).body as Buffer

describe('pages of a market', () => {
  const market = new Market({ tokensMax: 100 })
  let nowMs = START_MS
  const trade = (token: number) => {
    nowMs += 500
    const values = { side: 'buy', tokenAmount: 1_000 / (token + 1), priceUsd: 0.1 / (token + 3) } as const
    market.apply({ type: 'trade', mint: mintOfSymbol(`T${token}`), ts: nowMs, ...values }, nowMs)
  }
  const broadcaster = new Broadcaster(market)
  const node = singleNode()
  const cursors = new Cursors({ market, run: node.run })
  const routes = [...marketRoutes({ market, node, broadcaster, cursors }), barRoute({ market, node })]

  const ask = (path: string, query: string) => {
    const { handle } = routes.find((route) => route.path === path)!
    const headers = { accept: '', ifNoneMatch: '' }
    return handle({
      query: new URLSearchParams(query),
      notes: {},
      headers,
    } as unknown as Context) as HttpAnswer
  }

  beforeAll(() => {
    for (let index = 0; index < 2_000; index++) trade(index % 50)
  })

  const mint = mintOfSymbol('T7')
  it.each([
    ['/api/v1/market', ''],
    ['/api/v1/market', 'format=ndjson'],
    ['/api/v1/market', 'format=msgpack'],
    ['/api/v1/market', 'format=arrow'],
    ['/api/v1/datapoint', `mint=${mint}`],
    ['/api/v1/ohlc', `mint=${mint}&tf=15s`],
    ['/api/v1/ohlc', `mint=${mint}&tf=15s&format=ndjson`],
    ['/api/v1/ohlc', `mint=${mint}&tf=15s&format=msgpack`],
    ['/api/v1/ohlc', `mint=${mint}&tf=15s&format=arrow`],
  ])('%s?%s is compressed once for each version and coding for all clients', async (path, query) => {
    const { compressionCache, made } = counted()
    for (let version = 1; version <= 3; version++) {
      trade(7)
      for (const coding of ['gzip', 'br'] as const) {
        const asked = () => compressionCache.encode(ask(path, query), coding, `${path}?${query}`)
        const answers = await Promise.all([asked(), asked(), asked()])
        answers.push(await asked())
        const plain = await bodyOf(ask(path, query))
        for (const { body, headers } of answers) {
          expect(headers!['Content-Encoding']).toBe(coding)
          expect(OPEN[coding](body as Buffer).equals(plain)).toBe(true)
        }
        expect(made[coding]).toBe(version)
      }
    }
  })
})

describe('a page of more than a mebibyte', () => {
  const market = new Market({ tokensMax: 3_000 })
  const description = 'said at some length '.repeat(30)
  const node = singleNode()
  const cursors = new Cursors({ market, run: node.run })
  const routes = marketRoutes({ market, node, broadcaster: new Broadcaster(market), cursors })
  const change = (token: number) => {
    const words = { name: `T${token}`, symbol: 'T', description }
    market.apply({ type: 'token', mint: mintOfSymbol(`T${token}`), ts: START_MS, ...words }, START_MS)
  }
  const page = () => {
    const query = new URLSearchParams('format=ndjson&limit=3000')
    const headers = { accept: '', ifNoneMatch: '' }
    const context = { query, notes: {}, headers, ip: () => '', admitRows: () => {} }
    return routes[0].handle(context as unknown as Context)
  }
  const coded = (answers: HttpAnswer[]) => answers.map(({ headers }) => headers!['Content-Encoding'])
  beforeAll(() => {
    for (let token = 0; token < 2_500; token++) change(token)
  })

  it.each(['br', 'gzip'] as const)('is compressed with %s once for all clients', async (coding) => {
    const compressionCache = new CompressionCache()
    const plain = bodyBytes((await page()).body)
    expect(plain.length).toBeGreaterThan(1_048_576)
    const asked = async () => compressionCache.encode(await page(), coding, 'page')
    const answers = await Promise.all([asked(), asked(), asked()])
    answers.push(await asked())
    expect(coded(answers)).toEqual([coding, coding, coding, coding])
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1)
    expect(OPEN[coding](answers[0].body as Buffer).equals(plain)).toBe(true)
  })

  it('is sent uncompressed, in chunks, while another version or coding of it is being compressed', async () => {
    const compressionCache = new CompressionCache()
    const first = compressionCache.encode(await page(), 'br', 'page') as Promise<HttpAnswer>
    const plain: HttpAnswer[] = []
    for (let version = 0; version < 3; version++) {
      plain.push(await compressionCache.encode(await page(), 'gzip', 'page'))
      change(version)
      plain.push(await compressionCache.encode(await page(), 'br', 'page'))
    }
    expect(coded(plain)).toEqual(plain.map(() => undefined))
    for (const { body } of plain) expect(body).toBeInstanceOf(ChunkedBody)
    expect((await first).headers!['Content-Encoding']).toBe('br')
    expect((await compressionCache.encode(await page(), 'gzip', 'page')).headers!['Content-Encoding']).toBe(
      'gzip',
    )
  })
})

it('only a few bodies are compressed at once, some wait, and the rest is sent uncompressed', async () => {
  let underWay = 0
  let most = 0
  const finish: (() => void)[] = []
  const gzip = async (body: Buffer) => {
    most = Math.max(most, ++underWay)
    await new Promise<void>((resolve) => finish.push(resolve))
    underWay--
    return body.subarray(1)
  }
  const compressionCache = new CompressionCache({ gzip, br: gzip })
  const asked = Array.from({ length: 100 }, (_, page) =>
    compressionCache.encode(textAnswer(`${page} `.repeat(1_000)), 'gzip', `${page}`),
  )
  let isOver = false
  const answers = Promise.all(asked).finally(() => {
    isOver = true
  })
  while (!isOver) {
    finish.splice(0).forEach((act) => void act())
    await new Promise((resolve) => setImmediate(resolve))
  }
  const compressed = (await answers).filter(({ headers }) => 'Content-Encoding' in headers!)
  expect(most).toBe(COMPRESSIONS_AT_ONCE)
  expect(compressed).toHaveLength(COMPRESSIONS_AT_ONCE + COMPRESSIONS_WAITING_MAX)
})

describe('the cache of compressed bodies', () => {
  it('stays under its maximum of bytes by dropping the body that was requested longest ago', async () => {
    const { compressionCache, made } = counted(10_000)
    const ask = (page: number) =>
      bodyOf(compressionCache.encode(textAnswer(`${page} `.repeat(1_500)), 'gzip', `${page}`))
    for (let page = 0; page < 6; page++) {
      await ask(page)
      expect(compressionCache.bytes).toBeLessThanOrEqual(10_000)
    }
    expect(made.gzip).toBe(6)
    await ask(5)
    expect(made.gzip).toBe(6)
    await ask(0)
    expect(made.gzip).toBe(7)
  })

  it('does not keep answers meant for one client', async () => {
    const { compressionCache, made } = counted()
    for (let times = 0; times < 2; times++)
      await compressionCache.encode(textAnswer('mine '.repeat(1_000)), 'gzip', null)
    expect([made.gzip, compressionCache.bytes]).toEqual([2, 0])
  })

  it('does not keep a failure: the next request is compressed', async () => {
    let fails = true
    const gzip = (body: Buffer) => (fails ? Promise.reject(new Error('no memory')) : CODINGS.gzip(body))
    const compressionCache = new CompressionCache({ gzip, br: gzip })
    const text = 'page '.repeat(1_000)
    await expect(compressionCache.encode(textAnswer(text), 'gzip', 'a')).rejects.toThrow('no memory')
    fails = false
    expect(gunzipSync(await bodyOf(compressionCache.encode(textAnswer(text), 'gzip', 'a'))).toString()).toBe(
      text,
    )
  })

  it('sends the plain body when compression makes it larger', async () => {
    const body = randomBytes(2_000)
    const answer = await new CompressionCache().encode({ status: 200, body }, 'gzip', 'a')
    expect(answer.body).toBe(body)
    expect(answer.headers).not.toHaveProperty('Content-Encoding')
  })
})

it('of a market that is not whole yet each answer says how far it is now, though its rows are the same', async () => {
  const server = await openTestServer()
  onTestFinished(() => server.remove())
  const tokens = Array.from({ length: 10 }, (_, at) => ({ mint: mintOfSymbol(`W${at}`), ts: Date.now() }))
  await server.client.push(...tokens.map((token) => ({ type: 'token', ...token, name: 'N', symbol: 'S' })))
  const warmingUp = vi.spyOn(Health.prototype, 'warmingUp')
  onTestFinished(() => warmingUp.mockRestore())
  for (const told of ['half of it', 'nearly all', null]) {
    warmingUp.mockReturnValue(told)
    const sent = { 'Accept-Encoding': 'gzip', 'Cache-Control': 'no-cache' }
    const { body, headers } = await server.client.get('/api/v1/market', sent)
    expect(headers.get('content-encoding')).toBe('gzip')
    expect([body.meta.warming_up ?? null, headers.get('x-warming-up')]).toEqual([told, told])
  }
})
