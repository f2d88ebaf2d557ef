// Cached answers: for how long they are used, what invalidates them, and how large they may be.
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  CACHED_RESPONSE_BYTES_MAX,
  CACHED_RESPONSES_MAX,
  DEAR_INVALIDATIONS_AT_ONCE,
  RESPONSE_CACHE_BYTES_MAX,
  RESPONSE_KEPT_MS_MIN,
} from '../../../src/http/limits.ts'
import { ResponseCache } from '../../../src/http/response/response-cache.ts'
import type { Route } from '../../../src/http/route.ts'
import { newMint, seedToken, submission, submit } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

const AGE_MS = 500
const FRESH = { 'Cache-Control': 'no-cache' }
const PLAIN = { 'Accept-Encoding': 'identity' }

let server: TestServer
beforeAll(async () => {
  // None is evicted by what the tests push.
  server = await openTestServer({ 'page-age-ms': `${AGE_MS}`, 'tokens-max': '5000' })
})
afterAll(() => server.remove())

async function submitFor(mint: string): Promise<void> {
  const answer = await submit(server.client, await server.client.register(), submission(mint))
  expect(answer.status, answer.text).toBe(201)
}

/** Pushes tokens with a description of the given length. */
async function fill(rows: number, characters: number): Promise<void> {
  const description = 'd'.repeat(characters)
  const ts = Date.now()
  const tokens = Array.from({ length: rows }, () => newMint())
  await server.client.push(
    ...tokens.map((mint) => ({ type: 'token', mint, ts, name: 'N', symbol: 'S', description })),
  )
}

describe('a cached answer', () => {
  it('is not used once a submission that changes it was acknowledged', async () => {
    const mint = await seedToken(server.client, Date.now())
    const row = async () =>
      (await server.client.get('/api/v1/market')).body.data.find(
        (found: { mint: string }) => found.mint === mint,
      )
    while ((await row()) === undefined) await pause(10)
    for (let count = 0; count < 3; count++) {
      expect(await row()).toMatchObject({ analysis_count: count })
      await submitFor(mint)
    }
    expect(await row()).toMatchObject({ analysis_count: 3 })
  })

  it('is used on after a submission for a token that it does not show, and not after one for a token that it shows', async () => {
    const [hidden, shown] = [
      await seedToken(server.client, Date.now()),
      await seedToken(server.client, Date.now()),
    ]
    const page = (headers = {}) =>
      server.client.get('/api/v1/market?sort=created_timestamp&limit=1&format=ndjson', headers)
    while (!(await page()).text.includes(shown)) await pause(10)
    const madeAtMs = performance.now()
    const first = await page()
    await submitFor(hidden)
    const again = await page()
    expect(again.text).toBe(first.text)
    if (performance.now() - madeAtMs < AGE_MS)
      expect(again.headers.get('x-list-version')).toBe(first.headers.get('x-list-version'))
    expect(Number((await page(FRESH)).headers.get('x-list-version'))).toBeGreaterThan(
      Number(first.headers.get('x-list-version')),
    )
    await submitFor(shown)
    expect(JSON.parse((await page()).text)).toMatchObject({ mint: shown, analysis_count: 1 })
  })

  it('has at most 1 MiB; larger answers are made for each request', async () => {
    const hidden = await seedToken(server.client, Date.now() - 1_000)
    await fill(1_500, 900)
    for (const [limit, isCached] of [
      [500, true],
      [1_500, false],
    ] as const) {
      const path = `/api/v1/market?format=ndjson&sort=created_timestamp&limit=${limit}`
      const madeAtMs = performance.now()
      const first = await server.client.get(path, PLAIN)
      expect(first.text.length > 1_048_576).toBe(!isCached)
      // Not on the page, so that a cached one is still what would be made but for its position.
      await submitFor(hidden)
      const again = await server.client.get(path, PLAIN)
      const [before, after] = [first, again].map(({ headers }) => headers.get('x-list-version'))
      if (performance.now() - madeAtMs < AGE_MS || !isCached) expect(before === after, path).toBe(isCached)
    }
  })

  it('reaches a reader that pauses for a while in full', async () => {
    const path = '/api/v1/market?format=ndjson&limit=500'
    // This connection reads nothing until others have been answered, with the same bytes or newer ones.
    const { text } = await server.client.get(path, FRESH)
    const socket = connect(server.port, '127.0.0.1')
    socket.pause()
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    for (let count = 0; count < 5; count++)
      expect((await server.client.get(path, FRESH)).text === text).toBe(true)
    const chunks: Buffer[] = []
    for await (const chunk of socket.resume()) {
      chunks.push(chunk as Buffer)
      if (Buffer.concat(chunks).toString().endsWith(text.slice(-100))) break
    }
    const answer = Buffer.concat(chunks).toString()
    expect(answer.slice(answer.indexOf('\r\n\r\n') + 4) === text).toBe(true)
  })
})

const response = (bytes = 1, isUnchanged?: () => boolean, isNewest?: () => boolean) => ({
  route: {} as Route,
  head: Buffer.alloc(0),
  bytesBeforeId: 0,
  body: Buffer.alloc(bytes),
  rows: 0,
  isUnchanged,
  isNewest,
})

it('a cached answer is found for as long as it may be reused, and after a write only if that has left it as it was, never after a push', () => {
  const step = fc.record({
    waitMs: fc.integer({ min: 0, max: 30 }),
    key: fc.constantFrom('a', 'b', 'c'),
    does: fc.constantFrom(
      'find',
      'add',
      'add, and tells of changes',
      'write',
      'write that changes it',
      'push',
    ),
    path: fc.constantFrom('/page', '/other', null),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const cache = new ResponseCache(20)
      interface Known {
        added: ReturnType<typeof response>
        untilMs: number
        isWritten: boolean
        isPushed: boolean
        isChanged: boolean
      }
      const expected = new Map<string, Known>()
      let nowMs = 1_000
      let pushes = 0
      for (const { waitMs, key, does, path } of steps) {
        nowMs += waitMs
        if (does.startsWith('add')) {
          const nothing = { isWritten: false, isPushed: false, isChanged: false }
          const known: Known = { added: response(), untilMs: nowMs + 20, ...nothing }
          if (does !== 'add') known.added = response(1, () => !known.isChanged)
          cache.add('/page', key, known.added, nowMs, cache.writes)
          expected.set(key, known)
        } else if (does.startsWith('write')) {
          const known = expected.get(key)
          if (known !== undefined && does !== 'write') known.isChanged = true
          if (path !== '/other') for (const written of expected.values()) written.isWritten = true
          cache.invalidate(path === null ? {} : { changes: [path] }, nowMs)
        } else if (does === 'push' && pushes++ < DEAR_INVALIDATIONS_AT_ONCE) {
          if (path === '/page') for (const written of expected.values()) written.isPushed = true
          cache.invalidate({ changes: [], changesDear: path === null ? [] : [path] }, nowMs)
        }
        const known = expected.get(key)
        const isValid =
          known !== undefined &&
          nowMs < known.untilMs &&
          !known.isPushed &&
          (!known.isWritten || known.added.isUnchanged?.() === true)
        const found = cache.find('/page', key, nowMs)
        expect(found === (isValid ? known.added : undefined)).toBe(true)
        // What was found to be unchanged counts as made after the write.
        if (found !== undefined && known !== undefined) known.isWritten = false
      }
    }),
  )
})

it('an answer that is the newest is found whatever its age, and no longer once it is not', () => {
  const cache = new ResponseCache(0)
  let isNewest = true
  cache.add('/page', 'plain', response(), 0, 0)
  cache.add(
    '/page',
    'tells',
    response(1, undefined, () => isNewest),
    0,
    0,
  )
  const found = (key: string, nowMs: number) => cache.find('/page', key, nowMs) !== undefined
  expect([found('plain', 0), found('tells', 0), found('tells', RESPONSE_KEPT_MS_MIN - 1)]).toEqual([
    false,
    true,
    true,
  ])
  isNewest = false
  expect(found('tells', 1)).toBe(false)
  isNewest = true
  expect(found('tells', RESPONSE_KEPT_MS_MIN)).toBe(false)
})

it('a full cache drops the answers that it was given first', () => {
  for (const [answers, bytes] of [
    [CACHED_RESPONSES_MAX, 1],
    [RESPONSE_CACHE_BYTES_MAX / CACHED_RESPONSE_BYTES_MAX, CACHED_RESPONSE_BYTES_MAX],
  ]) {
    const cache = new ResponseCache(20)
    const answer = response(bytes)
    const isFound = (index: number) => cache.find('/page', `${index}`, 0) !== undefined
    for (let index = 0; index < 2 * answers; index++) cache.add('/page', `${index}`, answer, 0, 0)
    expect([0, answers, 2 * answers - 1].map(isFound)).toEqual([true, true, true])
    cache.add('/page', `${2 * answers}`, answer, 0, 0)
    expect([0, answers - 1, answers, 2 * answers].map(isFound)).toEqual([false, false, true, true])
  }
})

it('an answer begun before a write was acknowledged is not cached after it', async () => {
  const answer = response()
  for (const [changed, isKept] of [
    [['/page'], false],
    [undefined, false],
    [['/other'], true],
    [[], true],
  ] as const) {
    const cache = new ResponseCache(20)
    const { writes } = cache
    cache.invalidate({ ...(changed && { changes: changed }) }, 0)
    cache.add('/page', '', answer, 0, writes)
    expect(cache.find('/page', '', 0) !== undefined).toBe(isKept)
    expect(cache.find('/page', '', 20)).toBeUndefined()
  }
})
