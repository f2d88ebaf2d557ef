// @module-tag drill
// Requests that another node carries out over the real bus: clients see what they would see of the writer itself.
import { randomBytes } from 'node:crypto'
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { OPEN_ANSWERS_MAX } from '../../../src/cluster/proxy/limits.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { NOON_MS, submission as rowsOf } from '../../store/support.ts'
import { expectProblem, seedToken, submission, submit } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'
import { hasNats, type Nats, skipped, startNats, startProxy } from '../support.ts'
import { answering } from './answering.ts'
import { ADMIN_KEY, FEED_KEY, type Forwarder, startForwarder, startTarget, type Target } from './support.ts'

let nats: Nats
let app: TestServer
let target: Target
let node: Forwarder

const SUBMIT = '/api/v1/analysis/submit'
/** What proves nothing, since the secret is not known to clients. */
const FORGED = { 'X-Mintlake-Relay': 'writer guessed' }
/** What the writer does when a submission is stored and its answer is made. */
let onAnswered = async () => {}

beforeAll(async () => {
  if (!hasNats) return
  nats = await startNats()
  // What it does for others by itself has another name: here tests choose how that is done.
  app = await openTestServer(
    {
      role: 'writer',
      bus: nats.url,
      'bus-name': 'app',
      'trusted-proxies': '127.0.0.1',
      'tokens-max': '5000',
    },
    { startServer: answering(() => onAnswered()) },
  )
  target = await startTarget(nats.url, { busName: 'app' })
  node = await startForwarder(nats.url)
}, 30_000)

afterAll(async () => {
  await node?.close()
  await target?.close()
  await app?.remove()
  await nats?.remove()
})

afterEach(() => {
  onAnswered = async () => {}
})

describe.skipIf(!hasNats)(`requests that the writer carries out${skipped}`, () => {
  it('pass on status, headers and bytes as they were', async () => {
    const key = await node.client.register('from another node')
    const paths = [
      '/api/v1/agent/profile',
      '/api/v1/agents/leaderboard',
      '/api/v1/analysis?limit=3&nonsense=1',
    ]
    for (const path of [...paths, '/api/v1/agent/profile?x=%F0%9F%98%80', '/api/v1/analysis/an_none']) {
      const headers = { Authorization: `Bearer ${key}`, 'X-Request-Id': 'asked-with:this' }
      const [direct, passed] = await Promise.all([
        app.client.get(path, headers),
        node.client.get(path, headers),
      ])
      // The standing has times in it, and its version is made of its bytes.
      const unequal = ['date', ...(path.includes('profile') ? ['etag'] : [])]
      const shown = ({ headers: all }: typeof direct) =>
        [...all].filter(([name]) => !unequal.includes(name)).sort()
      expect(passed.status).toBe(direct.status)
      const withoutTimes = (text: string) => text.replace(/"resetAt":\d+/, '')
      expect(withoutTimes(passed.text)).toBe(withoutTimes(direct.text))
      expect(shown(passed)).toEqual(shown(direct))
    }
  })

  it('are authorized by the writer', async () => {
    expectProblem(await node.client.get('/api/v1/agent/profile'), 'missing_key')
    expectProblem(
      await node.client.get('/api/v1/agent/profile', { Authorization: 'Bearer no' }),
      'invalid_key',
    )
    expectProblem(
      await node.client.get('/api/v1/agent/profile', { Authorization: 'Basic no' }),
      'invalid_key',
    )
    expect(
      (await node.client.get('/api/v1/admin/agents', { Authorization: `Bearer ${ADMIN_KEY}` })).status,
    ).toBe(200)
  })

  it('show the writer a key that was used, and a refusal does not count as shown', async () => {
    const key = await node.client.register('used elsewhere')
    await node.passingOn.showKey(key)
    await expect(node.passingOn.showKey(`${key}x`)).rejects.toThrow('the writer answered 401')
  })

  it('answer conditional, compressed and HEAD requests as the writer does', async () => {
    const path = '/api/v1/agents/leaderboard'
    const etag = (await node.client.get(path)).headers.get('etag')!
    expect((await node.client.get(path, { 'If-None-Match': etag })).status).toBe(304)
    const head = await fetch(node.url + path, { method: 'HEAD', headers: { 'Accept-Encoding': 'identity' } })
    const direct = await fetch(app.url + path, { method: 'HEAD', headers: { 'Accept-Encoding': 'identity' } })
    expect(head.headers.get('content-length')).toBe(direct.headers.get('content-length'))
  })

  it('carry large bodies', async () => {
    const mint = await seedToken(app.client, Date.now())
    const line = `${JSON.stringify({ type: 'trade', mint, ts: Date.now(), priceUsd: 1, amountUsd: 1, side: 'buy' })}\n`
    const lines = line.repeat(Math.ceil((3 * 1024 * 1024) / line.length))
    const answer = await node.client.request('POST', '/api/v1/ingest', lines, {
      'Content-Type': 'application/x-ndjson',
      Authorization: `Bearer ${FEED_KEY}`,
    })
    expect(answer.status, answer.text.slice(0, 300)).toBe(200)
    expect(answer.body.accepted + answer.body.rejected).toBe(lines.length / line.length)
    expect([app.http.inFlight(), app.http.bodyBytes()]).toEqual([0, 0])
  })

  it('tell what a node must have applied, where something was changed', async () => {
    node.positions.length = 0
    const key = await node.client.register()
    await node.client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })
    expect(node.positions).toEqual([{ eventNo: expect.any(Number), accounts: expect.any(Number) }])
    expect(node.positions[0]!.accounts).toBeGreaterThan(0)
  })

  it('go to the next writer once its run has begun, although the one before still answers', {
    timeout: 20_000,
  }, async () => {
    const next = await openTestServer({ role: 'writer', bus: nats.url, 'bus-name': 'next' })
    let runId = 'before'
    const told = await startForwarder(nats.url, { stream: { silentMs: () => 0, runId: () => runId } })
    const isAt = async (server: TestServer) => {
      const key = await told.client.register()
      const headers = { Authorization: `Bearer ${key}` }
      expect((await server.client.get('/api/v1/agent/profile', headers)).status).toBe(200)
    }
    await isAt(app)
    await target.close()
    target = await startTarget(nats.url, { busName: 'next' })
    await isAt(app)
    runId = 'next'
    await isAt(next)
    await target.close()
    target = await startTarget(nats.url, { busName: 'app' })
    await told.close()
    await next.remove()
  })

  it('are carried out, all of 1000 at once', async () => {
    const key = await node.client.register()
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) =>
        fetch(`${node.url}/api/v1/agent/profile`, {
          headers: { Authorization: `Bearer ${key}`, 'X-Request-Id': `r${index}` },
        }),
      ),
    )
    const ids = new Set<string | null>()
    for (const answer of answers) {
      expect(answer.status).toBe(200)
      await answer.arrayBuffer()
      ids.add(answer.headers.get('x-request-id'))
    }
    expect(ids.size).toBe(1_000)
    expect([app.http.inFlight(), app.http.bodyBytes()]).toEqual([0, 0])
  }, 30_000)
})

describe.skipIf(!hasNats)(`submissions that the writer evaluates${skipped}`, () => {
  it('are stored once, also with a key of their own', async () => {
    const key = await node.client.register()
    const mint = await seedToken(app.client, Date.now())
    const made = await submit(node.client, key, submission(mint), { 'Idempotency-Key': 'mine' })
    expect(made.status, made.text).toBe(201)
    const again = await submit(node.client, key, submission(mint), { 'Idempotency-Key': 'mine' })
    expect(again.body).toEqual(made.body)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
  })

  it('get an Idempotency-Key that the agent does not see; a dry run gets none', async () => {
    const key = await node.client.register()
    const mint = await seedToken(app.client, Date.now())
    const dry = await node.client.post(`${SUBMIT}?dryRun=1`, submission(mint), key)
    expect(dry.body).toMatchObject({ ok: true, dryRun: true })
    const made = await submit(node.client, key, submission(mint))
    expect(made.status, made.text).toBe(201)
    expect([...made.headers.keys()].filter((name) => name.startsWith('idempotency'))).toEqual([])
    expect(
      (await app.client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })).body.standing,
    ).toMatchObject({ analyses: 1 })
  })

  it('are 503 at once without a writer, and nothing was stored', async () => {
    await target.close()
    const lonely = await startForwarder(nats.url)
    const startedAtMs = performance.now()
    const answer = await submit(lonely.client, 'a key', submission('x'))
    expect(performance.now() - startedAtMs).toBeLessThan(1_000)
    expectProblem(answer, 'store_unavailable')
    expect(answer.headers.get('retry-after')).toBe('2')
    expect(answer.body).not.toHaveProperty('mayBeStored')
    const dry = await lonely.client.post(`${SUBMIT}?dryRun=1`, submission('x'), 'a key')
    expect(dry.body).toMatchObject({ code: 'store_unavailable', dryRun: true })
    target = await startTarget(nats.url, { busName: 'app' })
    await lonely.close()
  })

  it('are sent again where the answer was lost, and stored once', {
    tags: 'drill',
    timeout: 20_000,
  }, async () => {
    const key = await node.client.register()
    const mint = await seedToken(app.client, Date.now())
    // Takes the request, and loses the answer.
    let asked = 0
    onAnswered = () => (asked++ === 0 ? new Promise(() => {}) : Promise.resolve())
    const answer = await submit(node.client, key, submission(mint))
    expect(answer.status, answer.text).toBe(201)
    expect(answer.headers.get('idempotency-replayed')).toBeNull()
    expect(asked).toBe(2)
    expect(
      (await app.client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })).body.standing,
    ).toMatchObject({ analyses: 1 })
  })
})

describe.skipIf(!hasNats)(`a node that the network cuts off${skipped}`, () => {
  it('has a submission stored once, when the network is back in time', {
    tags: 'drill',
    timeout: 30_000,
  }, async () => {
    const proxy = await startProxy(app.port)
    const far = await startForwarder(nats.url, { writerUrl: proxy.url.replace('nats:', 'http:') })
    const key = await far.client.register()
    const mint = await seedToken(app.client, Date.now())
    const slow = new Promise<void>((resolve) => setTimeout(resolve, 300))
    // The network swallows everything while the writer works on it.
    let asked = 0
    onAnswered = async () => {
      if (asked++ > 0) return
      proxy.swallow()
      await slow
    }
    const answered = submit(far.client, key, submission(mint))
    await vi.waitFor(() => expect(asked).toBe(1), 5_000)
    await new Promise((resolve) => setTimeout(resolve, 4_000))
    proxy.heal()
    const answer = await answered
    expect(answer.status, answer.text).toBe(201)
    expect(
      (await app.client.get('/api/v1/agent/profile', { Authorization: `Bearer ${key}` })).body.standing,
    ).toMatchObject({ analyses: 1 })
    await far.close()
    await proxy.close()
  })
})

/** The code of the answer to a registration that pretends that a node has passed it on. */
async function forged(url: string, address: string): Promise<string> {
  const headers = { ...FORGED, 'X-Forwarded-For': address, 'Content-Type': 'application/json' }
  const answer = await fetch(`${url}/api/v1/keys/register`, { method: 'POST', headers, body: '{"name":"x"}' })
  return ((await answer.json()) as { code: string }).code
}

describe.skipIf(!hasNats)(`limits of requests that are passed on${skipped}`, () => {
  it('are those of the client’s own address and key', { timeout: 20_000 }, async () => {
    const limited = await openTestServer({
      role: 'writer',
      bus: nats.url,
      'bus-name': 'limited',
      'register-limit': '2',
      'read-limit-keyed': '3',
    })
    await target.close()
    target = await startTarget(nats.url, { busName: 'limited' })
    const node = await startForwarder(nats.url)
    const from = (address: string, more = {}) => ({ 'X-Forwarded-For': address, ...more })
    const register = (headers: Record<string, string>) =>
      node.client.post('/api/v1/keys/register', { name: 'x' }, '', headers)
    const made = await register(from('1.2.3.4'))
    expect((await register(from('1.2.3.4'))).status).toBe(201)
    expectProblem(await register(from('1.2.3.4')), 'register_rate_limited')
    // What is forged does not get past the node that the client has asked.
    expect(await forged(node.url, '1.2.3.4')).toBe('invalid_parameter')
    expect((await register(from('2001:db8::1'))).status).toBe(201)
    expect((await register(from('2001:db8::2'))).status).toBe(201)
    expectProblem(await register(from('2001:db8::3')), 'register_rate_limited')
    // The writer believes nobody who does not know its secret.
    const direct = (headers: Record<string, string>) =>
      limited.client.post('/api/v1/keys/register', { name: 'x' }, '', headers)
    expect(await forged(limited.url, '5.6.7.8')).toBe('invalid_parameter')
    for (const address of ['5.6.7.8', '5.6.7.9', '5.6.7.10'])
      expect((await direct(from(address))).status).toBe(address === '5.6.7.10' ? 429 : 201)
    const read = (address: string) =>
      node.client.get('/api/v1/xp', from(address, { Authorization: `Bearer ${made.body.data.key}` }))
    const remaining = []
    for (const address of ['1.1.1.1', '2.2.2.2', '3.3.3.3'])
      remaining.push((await read(address)).headers.get('x-ratelimit-remaining'))
    expect(remaining).toEqual(['2', '1', '0'])
    expectProblem(await read('4.4.4.4'), 'read_rate_limited')
    await node.close()
    await target.close()
    await limited.remove()
    target = await startTarget(nats.url, { busName: 'app' })
  })
})

describe.skipIf(!hasNats)(`large answers of the writer${skipped}`, () => {
  let researcher: string
  let path: string

  beforeAll(async () => {
    const { body } = await app.client.post(
      '/api/v1/admin/keys',
      { name: 'Lab', type: 'researcher' },
      ADMIN_KEY,
    )
    researcher = body.data.key
    for (let commit = 0; commit < 8; commit++) {
      const rows = Array.from({ length: 500 }, (_, index) =>
        rowsOf(`an_${commit * 500 + index}`, {
          submitted_at: NOON_MS + index,
          summary: randomBytes(3_000).toString('base64'),
        }),
      )
      await app.store.commit(rows.flat())
    }
    await app.store.flushLake()
    const catalog = await node.client.get('/api/v1/lake/catalog?table=training', {
      Authorization: `Bearer ${researcher}`,
    })
    path = catalog.body.data.tables[0].files[0].path
  }, 60_000)

  const headers = () => ({ Authorization: `Bearer ${researcher}` })

  it('arrive whole, and in ranges', { timeout: 30_000 }, async () => {
    const direct = Buffer.from(await (await fetch(app.url + path, { headers: headers() })).arrayBuffer())
    const passed = await fetch(node.url + path, { headers: headers() })
    expect(passed.headers.get('content-length')).toBe(`${direct.length}`)
    expect(Buffer.from(await passed.arrayBuffer()).equals(direct)).toBe(true)
    const part = await fetch(node.url + path, { headers: { ...headers(), Range: 'bytes=1000000-2999999' } })
    expect([part.status, part.headers.get('content-range')]).toEqual([
      206,
      `bytes 1000000-2999999/${direct.length}`,
    ])
    expect(Buffer.from(await part.arrayBuffer()).equals(direct.subarray(1_000_000, 3_000_000))).toBe(true)
    const exported = await fetch(`${node.url}/api/v1/training/export?limit=4000`, { headers: headers() })
    expect((await exported.arrayBuffer()).byteLength).toBeGreaterThan(5_000_000)
    await vi.waitFor(() => expect(app.downloads.running).toBe(0), { timeout: 5_000 })
  })

  /** Begins a download and reads nothing of it. */
  const open = (asked: string) =>
    new Promise<{ sent: ClientRequest; response: IncomingMessage }>((resolve, reject) => {
      const sent = httpRequest(node.url + asked, { headers: headers() })
      sent.on('response', (response) => {
        response.pause()
        response.on('error', () => undefined)
        resolve({ sent, response })
      })
      sent.on('error', reject)
      sent.end()
    })

  it('end at the writer when their client vanishes', async () => {
    const { sent } = await open(path)
    await vi.waitFor(() => expect(app.downloads.running).toBe(1), { timeout: 5_000 })
    sent.destroy()
    await vi.waitFor(() => expect(app.downloads.running).toBe(0), { timeout: 5_000 })
  })

  it('are bounded: further ones are 503, and small answers go on', {
    tags: 'drill',
    timeout: 30_000,
  }, async () => {
    const tokens = Array.from({ length: 5_000 }, (_, index) => ({
      ...{
        type: 'token',
        mint: mintOfSymbol(`large ${index}`),
        ts: Date.now(),
        name: 'large',
        symbol: 'L',
      },
      description: 'd'.repeat(500),
    }))
    await app.client.push(...tokens)
    const path = '/api/v1/market?format=ndjson&limit=5000'
    const all = await Promise.all(
      Array.from({ length: OPEN_ANSWERS_MAX + 6 }, async () => {
        const sent = await open(path)
        return sent
      }),
    )
    const statuses = all.map(({ response }) => response.statusCode)
    expect(Map.groupBy(statuses, (status) => status).get(503)?.length).toBe(6)
    expect((await node.client.get('/api/v1/xp')).status).toBe(200)
    for (const { sent } of all) sent.destroy()
    await vi.waitFor(async () => {
      const again = await open(path)
      again.sent.destroy()
      expect(again.response.statusCode).toBe(200)
    }, 5_000)
  })
})
