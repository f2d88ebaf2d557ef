// @module-tag drill
// No look-ahead: whatever a program can ask, at many moments, is answered as by a server whose lake ends at that moment. What lies
// behind it is not there to be told.
import { afterAll, expect, test } from 'vitest'
import type { AllRouteDeps } from '../../src/http/routes/all-routes.ts'
import { allRoutes } from '../../src/http/routes/all-routes.ts'
import { submission } from '../support/submission.ts'
import { MINUTE_MS, openStepped, recordLake, removeFolder, START_MS, type Stepped } from './support.ts'

const MINUTES = [1, 3]
const WHOLE = 5

const servers: Stepped[] = []
afterAll(async () => {
  for (const server of servers) await server.close()
  removeFolder()
})

async function open(lake: string): Promise<Stepped> {
  const server = await openStepped(lake)
  servers.push(server)
  return server
}

/** What is about this process and this machine, and not about the market. */
const OWN = [
  // How much of the recording is played: its length is known from the start, and tells nothing of the market.
  /"(percent|etaMs)":[^,}]*/g,
  // The shorter lake has ended.
  /"(?:state|stateSinceMs|windowMs)":(?:"[^"]*"|null|\d+)/g,
  /"(?:analysisId|requestId|agentId|runId|key|path|ms|sha256|bytes|nextSince|uptimeMs|[a-zA-Z]*Bytes(?:Max)?|logId)":(?:"[^"]*"|[\d.]+)/g,
  /127\.0\.0\.1:\d+/g,
  /"(?:eventsPerSecond|freeBytes|diskFreeBytes|p50Ms|p99Ms|label)":(?:"[^"]*"|[\d.]+)/g,
  /an_[0-9A-Z]{26}|ag_[0-9A-Z]{26}/g,
]
const withoutOwn = (text: string): string => OWN.reduce((left, pattern) => left.replace(pattern, ''), text)

/** Paths of every route that reads, with what they need. */
function pathsOf(mints: readonly string[], analysisId: string): string[] {
  const routes = allRoutes({} as AllRouteDeps).filter(({ method }) => method === 'GET')
  const queries: Record<string, string[]> = {
    '/api/v1/market': ['tab', 'sort'].flatMap((name) =>
      (name === 'tab' ? ['all', 'new', 'live', 'graduated'] : ['hot', 'market_cap', 'created_timestamp']).map(
        (word) => `?limit=500&format=ndjson&${name}=${word}`,
      ),
    ),
    '/api/v1/datapoint': mints.map((mint) => `?mint=${mint}`),
    '/api/v1/ohlc': mints.flatMap((mint) =>
      ['1m', '5m', '1h'].map((tf) => `?mint=${mint}&tf=${tf}&limit=1000`),
    ),
    '/api/v1/analysis': ['', `?mint=${mints[0]}`],
    '/api/v1/export/training': ['?format=arrow'],
  }
  return routes.flatMap(({ path }) => {
    if (path.endsWith('{id}')) return path.includes('analysis') ? [path.replace('{id}', analysisId)] : []
    // Of this process alone, and streams: they are asked below.
    if (['/metrics', '/health/history', '/api/v1/stream'].includes(path) || path.startsWith('/api/v1/admin'))
      return []
    return (queries[path] ?? ['']).map((query) => path + query)
  })
}

/** The first lines of a stream, until a while nothing comes. */
async function streamed(url: string): Promise<string> {
  const gone = new AbortController()
  const response = await fetch(`${url}/api/v1/market?format=ndjson&follow=1&limit=20`, {
    signal: gone.signal,
  })
  const reader = response.body!.getReader()
  let text = ''
  while (text.split('\n').length <= 20) text += Buffer.from((await reader.read()).value ?? []).toString()
  gone.abort()
  return text.split('\n').slice(0, 20).join('\n')
}

/** Every row of the lake, but for what is random in it or of this process. */
const ROWS_SQL = `SELECT * FROM (${[
  ['training', ', analysis_id, agent_id'],
  ['outcomes', ', analysis_id'],
  ['xp_ledger', ', analysis_id, agent_id, entry_id'],
  ['bars', ''],
  ['tokens', ''],
]
  .map(
    ([table, own]) =>
      `SELECT '${table}' AS source, to_json(row) AS row FROM (SELECT * EXCLUDE (${`${table === 'xp_ledger' ? '' : ', known_at'}${own}`.slice(2)}) FROM ${table}) AS row`,
  )
  .concat("SELECT 'events', to_json({n: (SELECT count(*) FROM trades) + (SELECT count(*) FROM events)})")
  .join(' UNION ALL ')}) ORDER BY ALL`

/** Everything that can be asked, by what was asked. */
async function askAll({ app, client, driver }: Stepped, key: string, mints: readonly string[], id: string) {
  await driver.flush()
  const answers = new Map<string, string>()
  const auth = { Authorization: `Bearer ${key}` }
  for (const path of pathsOf(mints, id)) {
    const { headers, status, text } = await client.get(path, auth)
    expect(headers.get('x-market-time'), path).toBe(`${driver.marketMs}`)
    answers.set(path.replace(id, 'ID'), `${status} ${withoutOwn(text)}`)
  }
  const { text: rows } = await client.post('/api/v1/query', { sql: ROWS_SQL, limit: 10_000 }, key)
  expect(rows.length).toBeGreaterThan(1_000)
  answers.set('query', withoutOwn(rows))
  const batch = await client.post('/api/v1/datapoint/batch', { mints: mints.slice(0, 10) }, key)
  answers.set('batch', withoutOwn(batch.text))
  answers.set('stream', withoutOwn(await streamed(app.url)))
  const { files = [] } = (await client.get('/api/v1/lake/files', auth)).body?.data ?? {}
  for (const { name } of files as { name: string }[]) {
    const { headers } = await client.get(`/api/v1/lake/files/${name}`, auth)
    expect(Date.parse(headers.get('last-modified') ?? ''), name).toBeLessThanOrEqual(driver.marketMs)
  }
  return answers
}

test('every answer at a moment is that of a market of which nothing later was recorded', async () => {
  const whole = await open(await recordLake(WHOLE))
  const key = (await whole.app.agents.register({ name: 'reader', type: 'researcher' }, true)).key
  const { body } = await whole.client.get('/api/v1/market?limit=12')
  const mints: string[] = body.data.map(({ mint }: { mint: string }) => mint)
  const lastId = new Map<Stepped, string>()
  for (const minutes of MINUTES) {
    const cut = await open(await recordLake(minutes))
    const cutKey = (await cut.app.agents.register({ name: 'reader', type: 'researcher' }, true)).key
    const untilMs = START_MS + minutes * MINUTE_MS
    for (const [server, own] of [
      [whole, key],
      [cut, cutKey],
    ] as const) {
      // Both were analysed alike, each minute once.
      let analysisId = lastId.get(server) ?? ''
      while (server.driver.marketMs < untilMs) {
        const { body: receipt } = await server.client.post(
          '/api/v1/analysis/submit',
          submission(mints[0]),
          own,
        )
        analysisId = receipt.analysisId
        await server.driver.stepTo(server.driver.marketMs + MINUTE_MS)
      }
      lastId.set(server, analysisId)
    }
    expect(whole.driver.marketMs).toBe(cut.driver.marketMs)
    const expected = await askAll(cut, cutKey, mints, lastId.get(cut) ?? '')
    const found = await askAll(whole, key, mints, lastId.get(whole) ?? '')
    expect(expected.size).toBeGreaterThan(60)
    for (const [asked, answer] of expected) expect(found.get(asked), asked).toBe(answer)
  }
}, 240_000)
