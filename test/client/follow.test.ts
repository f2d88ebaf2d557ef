// Following the market list through disconnects.
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterEach, expect, test, vi } from 'vitest'
import { createClient, type Disconnect, type FollowItem, type MarketItem } from '../../src/client/index.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { whenRecorded } from '../checkpoint/support.ts'
import { atMarketTime, type Handler, problem, ScriptedServer } from '../support/scripted-server.ts'
import { openTestServer, spawnServer } from '../support/test-server.ts'
import { FaultyNetwork } from '../support/upstreams/faulty-network.ts'

const QUICK = { minMs: 1, maxMs: 4 }
const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

const mintOf = (index: number): string => mintOfSymbol(`follow ${index}`)
const tokenOf = (index: number, name = `Token ${index}`) => ({
  type: 'token',
  mint: mintOf(index),
  ts: Date.now(),
  name,
  symbol: 'T',
})

async function scripted(...script: Handler[]): Promise<ScriptedServer> {
  const server = await ScriptedServer.start(...script)
  cleanups.push(() => server.close())
  return server
}

/** Keeps a table as the items say, until one satisfies `isLast`. */
async function keepTable(
  items: AsyncIterable<FollowItem>,
  table: Map<string, MarketItem>,
  isLast: (item: FollowItem) => boolean,
): Promise<FollowItem[]> {
  const seen: FollowItem[] = []
  for await (const item of items) {
    seen.push(item)
    if (item.type === 'row') table.set(item.row.mint, item.row)
    if (item.type === 'left') table.delete(item.mint)
    if (item.type === 'gap') table.clear()
    if (isLast(item)) break
  }
  return seen
}

const isRow =
  (index: number, name: string) =>
  (item: FollowItem): boolean =>
    item.type === 'row' && item.row.mint === mintOf(index) && item.row.name === name

test('connections that are cut in the middle of lines lose no change', { tags: 'drill' }, async () => {
  const server = await openTestServer()
  cleanups.push(() => server.remove())
  const network = await FaultyNetwork.before(Number(new URL(server.url).port))
  cleanups.push(() => network.close())
  const COUNT = 40
  await server.client.push(...Array.from({ length: COUNT }, (_, index) => tokenOf(index)))
  // The first connection is cut within the first rows, later ones after them, and each of them within a line.
  network.faultOf = (connection) => (connection < 12 ? { cutAfterBytes: 3_001 + connection * 2_503 } : {})
  const client = createClient({ baseUrl: `http://127.0.0.1:${network.port}`, backoff: QUICK, retriesMax: 20 })
  const items = client.follow({ limit: COUNT })
  const table = new Map<string, MarketItem>()
  const changing = (async () => {
    for (let round = 1; network.connections.total < 13; round++) {
      const changed = Array.from({ length: 10 }, (_, at) => tokenOf((round + at) % COUNT, `Round ${round}`))
      await server.client.push(...changed)
    }
    await server.client.push(tokenOf(0, 'End'))
  })()
  const seen = await keepTable(items, table, isRow(0, 'End'))
  await changing
  const { data } = await createClient({ baseUrl: server.url }).market({ limit: 500 })
  expect(Object.fromEntries(data.map(({ mint, name }) => [mint, name]))).toEqual(
    Object.fromEntries([...table].map(([mint, { name }]) => [mint, name])),
  )
  // Positions of one call never go back.
  const seqs = seen.flatMap((item) => (item.type === 'row' && item.seq !== null ? [item.seq] : []))
  expect(seqs).toEqual(seqs.toSorted((a, b) => a - b))
})

test('resumes after kill and restart of the server, and tells of the gap', { tags: 'drill' }, async () => {
  const first = await spawnServer()
  await first.client.push(tokenOf(1), tokenOf(2))
  // The port may be taken by the time of the restart, so the address stays by name only.
  let { url } = first.client
  const baseUrl = 'http://server.invalid'
  const toServer: typeof fetch = (input, init) => fetch(`${input}`.replace(baseUrl, url), init)
  const client = createClient({ baseUrl, fetch: toServer, backoff: { minMs: 20, maxMs: 100 } })
  const disconnects: Disconnect[] = []
  const items = client.follow({}, { onDisconnect: (disconnect) => void disconnects.push(disconnect) })
  const table = new Map<string, MarketItem>()
  await keepTable(noReturn(items), table, () => table.size === 2)
  await first.client.push(tokenOf(2, 'Changed'))
  await keepTable(noReturn(items), table, isRow(2, 'Changed'))
  await whenRecorded(first)
  await first.kill()
  const second = await spawnServer({}, first.dataDir)
  cleanups.push(() => second.terminate())
  url = second.client.url
  await second.client.push(tokenOf(3, 'After'))
  // Where it connects after the push, the new token may be the first of the three rows.
  const seen = await keepTable(items, table, () => table.size === 3)
  expect(seen.filter(({ type }) => type === 'gap')).toEqual([{ type: 'gap', reason: 'resync' }])
  expect(disconnects[0].error?.code).toBe('network_error')
  const page = await client.market({ limit: 500 })
  expect([...table.keys()].toSorted()).toEqual(page.data.map(({ mint }) => mint).toSorted())
})

/** Items that a `break` does not end. */
const noReturn = (items: AsyncGenerator<FollowItem>): AsyncIterable<FollowItem> => ({
  [Symbol.asyncIterator]: () => ({ next: () => items.next() }),
})

/** Answers with these lines and keeps the stream open. */
const lines =
  (...sent: (object | string)[]): Handler =>
  (res) => {
    res.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
    for (const line of sent) res.write(typeof line === 'string' ? line : `${JSON.stringify(line)}\n`)
  }
const linesThenEnd =
  (...sent: object[]): Handler =>
  (res, req) => {
    lines(...sent)(res, req)
    res.end()
  }
const sinceOf = ({ requests }: ScriptedServer): (string | null)[] =>
  requests.map(({ url }) => new URLSearchParams(url.split('?')[1]).get('since'))

test('goes on at the last position, whichever line had it', async () => {
  const server = await scripted(
    linesThenEnd({ mint: 'a' }, { event: 'heartbeat', seq: 5, ts: 1 }),
    linesThenEnd({ mint: 'b', seq: 7 }),
    linesThenEnd({ event: 'left', mint: 'a', seq: 9 }),
    linesThenEnd({ event: 'news', of: 'a later version' }, { event: 'bye', reason: 'max_age', seq: 11 }),
    lines({ mint: 'c', seq: 12 }),
  )
  const reasons: (string | null)[] = []
  const client = createClient({ baseUrl: server.url, backoff: QUICK })
  const items = client.follow({}, { onDisconnect: ({ reason }) => void reasons.push(reason) })
  const seen = await keepTable(items, new Map(), (item) => item.type === 'row' && item.row.mint === 'c')
  expect(seen).toEqual([
    { type: 'row', row: { mint: 'a' }, seq: null },
    { type: 'row', row: { mint: 'b' }, seq: 7 },
    { type: 'left', mint: 'a', seq: 9 },
    { type: 'row', row: { mint: 'c' }, seq: 12 },
  ])
  expect(sinceOf(server)).toEqual([null, '5', '7', '9', '11'])
  expect(reasons).toEqual([null, null, null, 'max_age'])
})

test('a stream that an overloaded server ends comes back when the server says', async () => {
  const server = await scripted(
    linesThenEnd(
      { event: 'heartbeat', seq: 5, ts: 1 },
      { event: 'bye', reason: 'overloaded', seq: 5, retryAfterMs: 120 },
    ),
    linesThenEnd({ mint: 'b', seq: 7 }),
    lines({ mint: 'c', seq: 8 }),
  )
  const waits: number[] = []
  const client = createClient({ baseUrl: server.url, backoff: QUICK })
  const items = client.follow({}, { onDisconnect: ({ retryInMs }) => void waits.push(retryInMs) })
  await keepTable(items, new Map(), (item) => item.type === 'row' && item.row.mint === 'c')
  expect(waits[0]).toBe(120)
  expect(waits[1], 'only then').toBeLessThan(120)
})

test.each([
  ['a replay whose market does not wait', { 'X-Market-Time': '5000' }],
  ['a backtest that cannot be asked for the time', atMarketTime(5_000)],
])('a stream of %s goes on after its end', async (_, headers) => {
  const opened: string[] = []
  const server = await scripted((res, req) => {
    if (req.url?.startsWith('/api/v1/time')) return void res.destroy()
    opened.push(`${req.url}`)
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
    linesThenEnd({ mint: 'a', seq: opened.length }, { event: 'bye', reason: 'max_age' })(res, req)
  })
  const client = createClient({ baseUrl: server.url, backoff: QUICK })
  const isSecond = (item: FollowItem) => item.type === 'row' && item.seq === 2
  expect(await keepTable(client.follow(), new Map(), isSecond)).toHaveLength(2)
})

test('a stream that is cut within its first rows begins again and says that changes may be missing', async () => {
  const server = await scripted(linesThenEnd({ mint: 'a' }), lines({ mint: 'b' }))
  const items = createClient({ baseUrl: server.url, backoff: QUICK }).follow()
  const seen = await keepTable(items, new Map(), (item) => item.type === 'row' && item.row.mint === 'b')
  expect(seen[1]).toEqual({ type: 'gap', reason: 'restart' })
  expect(sinceOf(server)).toEqual([null, null])
})

test('a resync that is cut is asked for again', async () => {
  const server = await scripted(
    linesThenEnd({ event: 'resync' }, { mint: 'a' }),
    lines({ event: 'resync' }, { mint: 'a' }, { event: 'heartbeat', seq: 50, ts: 1 }, { mint: 'z', seq: 51 }),
  )
  const items = createClient({ baseUrl: server.url, backoff: QUICK }).follow({ since: 3 })
  const seen = await keepTable(items, new Map(), (item) => item.type === 'row' && item.row.mint === 'z')
  expect(sinceOf(server)).toEqual(['3', '3'])
  expect(seen.filter(({ type }) => type === 'gap')).toHaveLength(2)
})

test.each([
  ['no byte', lines({ mint: 'a', seq: 1 })],
  ['one byte now and then', drip],
] satisfies [string, Handler][])('a stream that sends %s is cut and resumed', async (_, handler) => {
  const server = await scripted(handler, lines({ mint: 'b', seq: 2 }))
  const codes: unknown[] = []
  const options = { silenceMsMax: 60, onDisconnect: ({ error }: Disconnect) => void codes.push(error?.code) }
  const items = createClient({ baseUrl: server.url, backoff: QUICK }).follow({}, options)
  await keepTable(items, new Map(), (item) => item.type === 'row' && item.row.mint === 'b')
  expect(codes).toEqual(['timeout'])
})

/** A row, and then blanks for ever. */
function drip(res: ServerResponse, req: IncomingMessage): void {
  lines({ mint: 'a', seq: 1 })(res, req)
  const timer = setInterval(() => res.write(' '), 5)
  res.on('close', () => clearInterval(timer))
}

test('a slow line that is complete in time is read', async () => {
  const text = Buffer.from(`${JSON.stringify({ mint: 'ü€😀', seq: 1 })}\n`)
  const server = await scripted((res) => {
    let at = 0
    const timer = setInterval(() => {
      if (at < text.length) res.write(text.subarray(at, ++at))
      else clearInterval(timer)
    }, 1)
  })
  const [item] = await keepTable(createClient({ baseUrl: server.url }).follow(), new Map(), () => true)
  expect(item).toEqual({ type: 'row', row: { mint: 'ü€😀' }, seq: 1 })
})

test('a line without an end takes no more memory than a line may', async () => {
  let written = 0
  const chunk = 'x'.repeat(64 * 1024)
  const pour: Handler = (res) => {
    const more = (): void => {
      do written += chunk.length
      while (!res.destroyed && res.write(chunk))
    }
    res.on('drain', more)
    more()
  }
  const server = await scripted(pour)
  const items = createClient({ baseUrl: server.url }).follow({}, { lineCharactersMax: 1024 * 1024 })
  await expect(items.next()).rejects.toMatchObject({ code: 'response_too_large' })
  // What the sockets hold comes on top.
  expect(written).toBeLessThan(16 * 1024 * 1024)
})

test.each([
  ['break', null],
  ['abort', new Error('enough')],
])('%s closes the connection', async (_, reason) => {
  let closed: Promise<unknown> = Promise.resolve()
  const server = await scripted((res, req) => {
    closed = once(res, 'close')
    lines({ mint: 'a', seq: 1 })(res, req)
  })
  const controller = new AbortController()
  const items = createClient({ baseUrl: server.url }).follow({}, { signal: controller.signal })
  const reading = keepTable(items, new Map(), () => {
    if (reason === null) return true
    controller.abort(reason)
    return false
  })
  if (reason === null) await reading
  else await expect(reading).rejects.toBe(reason)
  await closed
  expect(server.requests).toHaveLength(1)
})

test('a server that is away is noticed at the first connection, and waited for later on', async () => {
  const server = await scripted(problem(503, 'warming_up'))
  const client = createClient({ baseUrl: server.url, backoff: QUICK, retriesMax: 2 })
  await expect(client.follow().next()).rejects.toMatchObject({ code: 'warming_up' })
  expect(server.requests).toHaveLength(3)

  const away = problem(503, 'draining')
  const later = await scripted(
    linesThenEnd({ mint: 'a', seq: 1 }),
    ...[away, away, away, away],
    lines({ mint: 'b', seq: 2 }),
  )
  const items = createClient({ baseUrl: later.url, backoff: QUICK, retriesMax: 2 }).follow()
  await keepTable(items, new Map(), (item) => item.type === 'row' && item.row.mint === 'b')
  expect(later.requests).toHaveLength(6)
})

test.each([
  ['lines', '<html>\n<h1>It works!</h1>\n</html>\n'],
  ['one line', '<html><h1>It works!</h1></html>'],
  ['nothing', ''],
])(
  'an address that is not Mintlake’s is noticed at the first connection: it answers 200 with %s',
  async (_, page) => {
    const server = await scripted((res) => void res.end(page))
    const client = createClient({ baseUrl: server.url, backoff: QUICK })
    for (const items of [client.follow(), client.followWindow()])
      await expect(items.next()).rejects.toMatchObject({ code: 'invalid_response' })
    expect(server.requests).toHaveLength(2)
  },
)

test('tries again within two seconds during the first half minute, and later with growing waits', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  cleanups.push(async () => void vi.useRealTimers())
  const controller = new AbortController()
  const tries: { atMs: number; retryInMs: number }[] = []
  let connections = 0
  const request = (async () => {
    if (connections++ > 0) throw new TypeError('fetch failed')
    return new Response('{"mint":"a","seq":1}\n')
  }) as typeof fetch
  const items = createClient({ baseUrl: 'http://away.invalid', fetch: request }).follow(
    {},
    {
      signal: controller.signal,
      onDisconnect: ({ retryInMs }) => void tries.push({ atMs: performance.now(), retryInMs }),
    },
  )
  await items.next()
  const next = items.next().catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(120_000)
  controller.abort('enough')
  expect(await next).toBe('enough')
  const [{ atMs: brokeOffAtMs }] = tries
  const isFirstHalfMinute = ({ atMs }: { atMs: number }) => atMs - brokeOffAtMs < 30_000
  const [prompt, later] = [tries.filter(isFirstHalfMinute), tries.filter((each) => !isFirstHalfMinute(each))]
  expect(prompt.length).toBeGreaterThanOrEqual(15)
  for (const { retryInMs } of prompt) expect(retryInMs).toBeLessThanOrEqual(2_000)
  expect(later.length).toBeGreaterThan(5)
  for (const { retryInMs } of later) expect(retryInMs).toBeGreaterThan(4_000)
})

test('a refusal that would be repeated ends the stream', async () => {
  const server = await scripted(linesThenEnd({ mint: 'a', seq: 1 }), problem(401, 'revoked_key'))
  const items = createClient({ baseUrl: server.url, backoff: QUICK }).follow()
  await expect(keepTable(items, new Map(), () => false)).rejects.toMatchObject({ code: 'revoked_key' })
})

test('a line that is longer than allowed ends the stream: it would come again', async () => {
  const long = { mint: 'b', name: 'b'.repeat(1_000), seq: 2 }
  const server = await scripted(lines({ mint: 'a', seq: 1 }, long), lines(long))
  const items = createClient({ baseUrl: server.url, backoff: QUICK }).follow({}, { lineCharactersMax: 500 })
  await expect(keepTable(items, new Map(), () => false)).rejects.toMatchObject({ code: 'response_too_large' })
})
