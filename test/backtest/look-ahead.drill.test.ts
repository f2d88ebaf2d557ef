// @module-tag drill
// No look-ahead: whatever a program can ask, at many moments, is answered as by a server whose lake ends at that moment. What lies
// behind it is not there to be told.
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { afterAll, expect, test } from 'vitest'
import { allRoutes } from '../../src/http/routes/all-routes.ts'
import type { RouteParts } from '../../src/http/routes/route-parts.ts'
import { serveMcp } from '../../src/mcp/serve.ts'
import { SORTS, TABS } from '../../src/schema/vocabulary.ts'
import { FollowReader } from '../support/follow-reader.ts'
import { StreamReader } from '../support/stream-reader.ts'
import { submission } from '../support/submission.ts'
import type { Answer, Client } from '../support/test-server.ts'
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
  // The shorter lake has ended.
  /"(?:state|stateSinceMs|windowMs)":(?:"[^"]*"|null|\d+)/g,
  /"(?:analysisId|requestId|agentId|runId|key|path|ms|sha256|bytes|nextSince|uptimeMs|files|[a-zA-Z]*Bytes(?:Max)?|folderId|logId)":(?:"[^"]*"|[\d.]+)/g,
  /127\.0\.0\.1:\d+/g,
  /"(?:eventsPerSecond|freeBytes|diskFreeBytes|p50Ms|p99Ms|label)":(?:"[^"]*"|[\d.]+)/g,
  /an_[0-9A-Z]{26}|ag_[0-9A-Z]{26}/g,
]
const withoutOwn = (text: string): string => OWN.reduce((left, pattern) => left.replace(pattern, ''), text)

interface Ask {
  /** Behind the path: a query; or what stands for `{id}`. */
  query?: string
  id?: string
  body?: object
  /** Whose key is sent; by default the agent's, or the researcher's where the route is theirs. */
  key?: 'spare' | 'other'
  /** What of the answer is about the market; all of it unless told. */
  part?(text: string): string
}

interface Known {
  mints: readonly string[]
  analysisId: string
  agentId: string
}

/** The lines of /metrics that count what the market and submissions did. */
const marketMetrics = (text: string): string =>
  text
    .split('\n')
    .filter((line) => /^mintlake_(market|submissions)_/.test(line))
    .join('\n')
/** How many rows each table has: in how many files depends on when it was flushed. */
const tableRows = (text: string): string => {
  const { tables } = JSON.parse(text).data
  return JSON.stringify(tables.map(({ table, rows }: { table: string; rows: number }) => [table, rows]))
}

/** How each route is asked so that it answers. Those that are not here need nothing: they are asked by their path alone. */
const asksOf = ({ mints, analysisId, agentId }: Known): Record<string, readonly Ask[]> => ({
  'GET /api/v1/market': [
    ...TABS.map((tab) => ({ query: `?limit=500&format=ndjson&tab=${tab}` })),
    ...SORTS.map((sort) => ({ query: `?limit=500&format=ndjson&sort=${sort}` })),
    { query: '?limit=500&order=asc&min_volume_24h=1&max_age_ms=600000' },
    { query: `?mints=${mints.slice(0, 5).join()}` },
    { query: '?search=a&fields=compact' },
  ],
  'GET /api/v1/market/totals': [{}, { query: '?tab=new' }],
  'GET /api/v1/datapoint': mints.map((mint) => ({ query: `?mint=${mint}` })),
  'POST /api/v1/datapoint/batch': [{ body: { mints: mints.slice(0, 10) } }],
  'GET /api/v1/ohlc': mints.flatMap((mint) =>
    ['1m', '5m', '1h'].map((tf) => ({ query: `?mint=${mint}&tf=${tf}&limit=1000` })),
  ),
  'POST /api/v1/analysis/submit': mints
    .slice(1, 5)
    .map((mint) => ({ query: '?dryRun=1', body: submission(mint) })),
  'GET /api/v1/analysis': [{ query: `?mint=${mints[0]}` }, { query: '?latest=1' }, { query: '?agentId=me' }],
  'GET /api/v1/analysis/{id}': [{ id: analysisId }],
  'GET /api/v1/agents/record': [{ query: `?agentId=${agentId}` }],
  'GET /api/v1/training/export': [{ part: () => '' }],
  'GET /api/v1/lake/catalog': [{ part: tableRows }],
  'POST /api/v1/query': [{ body: { sql: ROWS_SQL, limit: 10_000 } }],
  'POST /api/v1/session': [{ body: {}, part: () => '' }],
  'DELETE /api/v1/session': [{}],
  'POST /api/v1/keys/register': [{ body: { name: 'spare' } }],
  'POST /api/v1/keys/rotate': [{ key: 'spare' }],
  'POST /api/v1/agent/profile': [{ body: { name: 'other' }, key: 'other' }],
  'DELETE /api/v1/keys/current': [{ key: 'spare' }],
  // Samples of /metrics, at the machine's time.
  'GET /health/history': [{ part: () => '' }],
  'GET /metrics': [{ part: marketMetrics }],
})

/** Asked in other ways below, or of this package and not of any market. */
const isAskedElsewhere = ({ path }: { path: string }): boolean =>
  ['/api/v1/stream', '/api/v1/lake/files/{id}'].includes(path) || path.startsWith('/console/')

/** The first lines of a stream over HTTP. */
async function streamed(url: string, query: string, linesMax: number): Promise<string> {
  const reader = new FollowReader(`${url}/api/v1/market?format=ndjson&${query}`)
  const lines: unknown[] = []
  while (lines.length < linesMax) lines.push(await reader.next())
  reader.close()
  return withoutOwn(JSON.stringify(lines))
}

/** What a WebSocket gets that subscribes to something: that it has, and what there is. */
async function subscribed(url: string, subscription: object): Promise<string> {
  const reader = new StreamReader(`${url.replace('http', 'ws')}/api/v1/stream`)
  await reader.send(subscription)
  const messages = [await reader.next(), await reader.next()]
  reader.close()
  return withoutOwn(JSON.stringify(messages))
}

/** What a language model is answered by the MCP server. */
async function askModel(url: string, key: string, mints: readonly string[]): Promise<string> {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()]
  const served = serveMcp(
    { baseUrl: url, key, dataDir: null, areText: false },
    { stdin, stdout, onError: () => {}, onInterrupt: () => () => {} },
  )
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]()
  let id = 0
  const ask = async (method: string, params: object): Promise<string> => {
    stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params })}\n`)
    return (await lines.next()).value
  }
  const clientInfo = { name: 'test', version: '1' }
  await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo })
  stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`)
  const { tools } = JSON.parse(await ask('tools/list', {})).result
  const answers: string[] = []
  for (const { name, annotations } of tools) {
    if (annotations?.readOnlyHint !== true) continue
    for (const mint of mints) answers.push(name, await ask('tools/call', { name, arguments: { mint } }))
  }
  stdin.end()
  await served
  expect(answers.length).toBeGreaterThan(3 * mints.length)
  return withoutOwn(answers.join('\n'))
}

/** Every row of the lake, but for what is random in it or of this process. */
const ROWS_SQL = `SELECT * FROM (${[
  ['training', ', analysis_id, agent_id'],
  ['labelled', ', analysis_id, agent_id'],
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

/** An agent, which submits, and a researcher, who reads the lake. */
const registerReaders = async ({ app }: Stepped) => ({
  agent: await app.agents.register({ name: 'reader' }),
  lab: await app.agents.register({ name: 'lab', type: 'researcher' }, true),
})
type Readers = Awaited<ReturnType<typeof registerReaders>>

/** Everything that can be asked, by what was asked. */
async function askAll({ app, client, driver }: Stepped, readers: Readers, known: Known) {
  await driver.flush()
  const { mints } = known
  const answers = new Map<string, string>()
  const asks = asksOf(known)
  // New ones each time: what they change is not asked for later.
  const [reader, lab] = [readers.agent.key, readers.lab.key]
  const keys = { reader, lab, other: (await app.agents.register({ name: 'other' })).key, spare: '' }
  const routes = allRoutes({} as RouteParts)
  for (const route of routes) {
    const { method, path, access } = route
    const name = `${method} ${path}`
    // Nobody has a key of the operator here: of these routes a program gets nothing.
    const isOperators = access === 'admin' || access === 'feed'
    if (isAskedElsewhere(route)) continue
    const usual = access === 'researcher' ? 'lab' : 'reader'
    for (const { query = '', id = '', body, key: whose = usual, part } of asks[name] ?? [{}]) {
      const headers = { Authorization: `Bearer ${keys[whose]}` }
      const sent = body ?? (method === 'POST' && isOperators ? {} : undefined)
      const answer = await client.request(method, path.replace('{id}', id) + query, sent, headers)
      const asked = name + query.replace(known.agentId, 'AGENT')
      expect(answer.headers.get('x-market-time'), asked).toBe(`${driver.marketMs}`)
      if (isOperators) expect(answer.status, asked).toBeGreaterThanOrEqual(400)
      // A route that is not asked in the way that it needs tells nothing: `asksOf` has to know it.
      else expect(answer.status, `${asked} ${answer.text}`).toBeLessThan(300)
      if (name === 'POST /api/v1/keys/register') keys.spare = answer.body.data.key
      answers.set(
        `${asked}${JSON.stringify(body?.['mint' as never] ?? '')}`,
        `${answer.status} ${(part ?? withoutOwn)(answer.text)}`,
      )
      if (path === '/api/v1/lake/catalog') await checkFiles(client, lab, answer, driver.marketMs)
    }
  }
  expect(
    Object.keys(asks).filter((name) => !routes.some(({ method, path }) => name === `${method} ${path}`)),
  ).toEqual([])
  answers.set('follow', await streamed(app.url, 'follow=1&limit=20', 20))
  answers.set('window', await streamed(app.url, 'follow=window&sort=volume_1h&limit=20', 20))
  answers.set(
    'window of mints',
    await streamed(app.url, `follow=window&mints=${mints.slice(0, 5).join()}`, 5),
  )
  for (const subscription of [
    { topic: 'window', sort: 'hot', limit: 10 },
    { topic: 'token', mint: mints[0] },
    { topic: 'ohlc', mint: mints[0], tf: '1m' },
  ])
    answers.set(
      `stream of ${subscription.topic}`,
      await subscribed(app.url, { op: 'subscribe', ...subscription }),
    )
  answers.set('mcp', await askModel(app.url, lab, mints.slice(0, 3)))
  return answers
}

/** Every file of the lake says that it was written when the market was there. */
async function checkFiles(client: Client, key: string, catalog: Answer, marketMs: number): Promise<void> {
  const paths: string[] = catalog.body.data.tables.flatMap(({ files }: { files: { path: string }[] }) =>
    files.map(({ path }) => path),
  )
  expect(paths.length).toBeGreaterThan(1)
  for (const path of paths) {
    const { headers, status } = await client.get(path, { Authorization: `Bearer ${key}` })
    expect(status, path).toBe(200)
    expect(headers.get('x-market-time'), path).toBe(`${marketMs}`)
    expect(Date.parse(headers.get('last-modified') ?? ''), path).toBeLessThanOrEqual(marketMs)
  }
}

test('every answer at a moment is that of a market of which nothing later was recorded', async () => {
  const whole = await open(await recordLake(WHOLE))
  const readers = await registerReaders(whole)
  const { body } = await whole.client.get('/api/v1/market?limit=6')
  const mints: string[] = body.data.map(({ mint }: { mint: string }) => mint)
  const lastId = new Map<Stepped, string>()
  for (const minutes of MINUTES) {
    const cut = await open(await recordLake(minutes))
    const cutReaders = await registerReaders(cut)
    const untilMs = START_MS + minutes * MINUTE_MS
    for (const [server, own] of [
      [whole, readers.agent.key],
      [cut, cutReaders.agent.key],
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
    const knownOf = (server: Stepped, { agentId }: { agentId: string }): Known => ({
      ...{ mints, agentId, analysisId: lastId.get(server) ?? '' },
    })
    const expected = await askAll(cut, cutReaders, knownOf(cut, cutReaders.agent))
    const found = await askAll(whole, readers, knownOf(whole, readers.agent))
    expect(expected.size).toBeGreaterThan(60)
    const differing = [...expected].filter(([asked, answer]) => found.get(asked) !== answer)
    expect(differing.map(([asked, answer]) => ({ asked, answer, found: found.get(asked) }))).toEqual([])
  }
}, 240_000)
