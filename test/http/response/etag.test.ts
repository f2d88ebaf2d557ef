// ETags of all reads over real HTTP: the same ETag gets 304 without a body, and a change makes another one.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listConsoleFiles } from '../../../src/http/docs/site/console-files.ts'
import { versionEtag } from '../../../src/http/response/etag.ts'
import { clockOf } from '../../support/clock.ts'
import { seedToken, submission, submit } from '../../support/submission.ts'
import { ADMIN_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'

it('an answer that was told to be of half a market is another version than that of a whole one', () => {
  const node = { run: () => 'run' }
  expect(versionEtag(node, { warming_up: 'it makes its market' }, '7')).not.toBe(versionEtag(node, {}, '7'))
})

/** Endpoints without an ETag: their answers change all the time or are streams. */
const UNVERSIONED = [
  '/health',
  '/readyz',
  '/metrics',
  '/api/v1/stream',
  '/api/v1/training/export',
  '/api/v1/time',
  '/health/history',
]

/** Files of the lake have strong ETags: lake.test.ts. */
const STRONG = ['/api/v1/lake/files/{id}']

/** A fixed time, as a DataPoint has its age and so changes every second. */
const NOW_MS = Date.now()

let server: TestServer
let mint: string
let key: string
let analysisId: string
let agentId: string

beforeAll(async () => {
  server = await openTestServer({}, { clock: clockOf(() => NOW_MS) })
  key = await server.client.register()
  await change()
  const { body } = await server.client.get('/api/v1/analysis')
  expect(body.totalAnalyses).toBe(1)
  agentId = (await server.client.get(`/api/v1/analysis?mint=${mint}`)).body.data[0].agentId
})
afterAll(() => server.remove())

/** A new token with a trade, and an analysis of it by a new agent. */
async function change(): Promise<void> {
  mint = await seedToken(server.client, NOW_MS)
  const trade = { type: 'trade', mint, ts: NOW_MS, side: 'buy', tokenAmount: 1, priceUsd: 0.001 }
  await server.client.push(trade)
  const answer = await submit(server.client, await server.client.register(), submission(mint))
  expect(answer.status, answer.text).toBe(201)
  analysisId = answer.body.analysisId
}

/** A file of each folder of the console. */
function consoleReads() {
  const paths = listConsoleFiles().map(({ path }) => path)
  const split = paths.map((path) => /^(.+)\/([^/]+)$/.exec(path) ?? []).filter(([path]) => path !== undefined)
  return Object.fromEntries(
    split.map(([, folder, id]) => [`${folder}/{id}`, { id, isConstant: true } as const]),
  )
}

/** All reads with their query and key. `isConstant`: neither a trade nor an analysis changes the answer. */
const READS: Record<string, { query?: () => string; key?: () => string; isConstant?: true; id?: string }> = {
  '/api/v1/market': {},
  '/api/v1/datapoint': { query: () => `?mint=${mint}`, isConstant: true },
  '/api/v1/ohlc': { query: () => `?mint=${mint}`, isConstant: true },
  '/api/v1/analysis': {},
  '/api/v1/analysis/{id}': { isConstant: true },
  '/api/v1/analysis/schema': { isConstant: true },
  '/api/v1/agents/leaderboard': {},
  '/api/v1/agents/record': { query: () => `?agentId=${agentId}`, isConstant: true },
  // Taken once a second, and the clock of this test stands still.
  '/api/v1/market/totals': { isConstant: true },
  '/api/v1/xp': { isConstant: true },
  '/api/v1/agent/profile': { key: () => key, isConstant: true },
  // Nothing is flushed in this test.
  '/api/v1/lake/catalog': { key: () => ADMIN_KEY, isConstant: true },
  '/api/v1/admin/agents': { key: () => ADMIN_KEY },
  '/openapi.json': { isConstant: true },
  '/llms.txt': { isConstant: true },
  '/skill.md': { isConstant: true },
  '/streams.md': { isConstant: true },
  '/api/v1/calibration': { isConstant: true },
  '/': { isConstant: true },
  ...consoleReads(),
  '/docs': { isConstant: true },
  '/docs/page.css': { isConstant: true },
  '/docs/page.js': { isConstant: true },
  '/docs/theme.js': { isConstant: true },
  '/docs/swagger-ui-bundle.js': { isConstant: true },
  '/docs/swagger-ui.css': { isConstant: true },
  '/docs/LICENSE': { isConstant: true },
  '/docs/NOTICE': { isConstant: true },
  '/docs/swagger-ui-bundle.js.LICENSE.txt': { isConstant: true },
  '/favicon.ico': { isConstant: true },
}

it('the table of this test has every read that the API description gives an ETag, which is all but a few', async () => {
  const { paths } = (await server.client.get('/openapi.json')).body
  const reads = Object.keys(paths).filter((path) => 'get' in paths[path])
  const versioned = reads.filter((path) => '304' in paths[path].get.responses)
  expect(versioned.toSorted()).toEqual([...Object.keys(READS), ...STRONG].toSorted())
  expect(reads.filter((path) => !versioned.includes(path)).toSorted()).toEqual(UNVERSIONED.toSorted())
})

describe.each(Object.entries(READS))('%s', (path, { query = () => '', key: keyOf, isConstant, id }) => {
  const get = (headers: Record<string, string> = {}) =>
    server.client.get(path.replace('{id}', id ?? analysisId) + query(), {
      ...(keyOf && { Authorization: `Bearer ${keyOf()}` }),
      ...headers,
    })

  it('answers 304 to its ETag, compressed or not, until it changes', async () => {
    const first = await get()
    expect(first.status, first.text).toBe(200)
    const etag = first.headers.get('etag')!
    expect(etag).toMatch(/^W\/"[^"]+"$/)
    for (const sent of [etag, `"other", ${etag}`, '*']) {
      for (const coding of ['identity', 'gzip']) {
        const again = await get({ 'If-None-Match': sent, 'Accept-Encoding': coding })
        expect([again.status, again.text]).toEqual([304, ''])
        for (const name of ['etag', 'cache-control', 'vary'])
          expect(again.headers.get(name)).toBe(first.headers.get(name))
      }
    }
    expect((await get({ 'If-None-Match': '"other"' })).status).toBe(200)
    expect(first.headers.get('cache-control')).toContain(keyOf === undefined ? '' : 'private')
    if (isConstant) return
    await change()
    const changed = await get({ 'If-None-Match': etag })
    expect(changed.status).toBe(200)
    expect(changed.headers.get('etag')).not.toBe(etag)
  })
})

it.each(UNVERSIONED.slice(0, 3))('%s has no ETag and must not be cached', async (path) => {
  const { headers } = await server.client.get(path)
  expect([headers.get('etag'), headers.get('cache-control')]).toEqual([null, 'no-store'])
})
