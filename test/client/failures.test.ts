// What the client does when servers and networks fail.
import { afterEach, describe, expect, test } from 'vitest'
import { type ClientOptions, createClient, MintlakeError, type Submission } from '../../src/client/index.ts'
import {
  answer,
  atMarketTime,
  breakOff,
  type Handler,
  hang,
  problem,
  ScriptedServer,
} from '../support/scripted-server.ts'
import { SUMMARY } from '../support/submission.ts'

const QUICK = { minMs: 1, maxMs: 4 }
const EMPTY_PAGE = answer(200, { ok: true, data: [], meta: { nextCursor: null } })
const WARMING_UP = problem(503, 'warming_up')
const SUBMISSION: Submission = {
  mint: 'So11111111111111111111111111111111111111112',
  sentiment: 'neutral',
  score: 50,
  summary: SUMMARY,
  quant: {
    riskLevel: 'medium',
    riskFactors: ['bonding_curve_risk'],
    buyPressure: 55,
    volatilityScore: 40,
    liquidityDepth: 'moderate',
    holderConcentration: 'moderate',
    trendDirection: 'up',
    volumeProfile: 'rising',
  },
}

let server: ScriptedServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

async function clientOf(script: Handler[], options: Partial<ClientOptions> = {}) {
  server = await ScriptedServer.start(...script)
  const client = createClient({ baseUrl: server.url, backoff: QUICK, ...options })
  return { client, requests: server.requests }
}

async function errorOf(call: Promise<unknown>): Promise<MintlakeError> {
  const error = await call.then(
    () => null,
    (reason: unknown) => reason,
  )
  if (error instanceof MintlakeError) return error
  throw new Error(`not refused: ${error}`)
}

describe('a read', () => {
  test.each([
    ['503', WARMING_UP],
    ['a connection that breaks off', breakOff],
    ['a proxy without its server', (res) => void res.writeHead(502).end('<h1>Bad gateway</h1>')],
  ] satisfies [string, Handler][])('is sent again after %s', async (_, failure) => {
    const { client, requests } = await clientOf([failure, failure, EMPTY_PAGE])
    expect((await client.market()).data).toEqual([])
    expect(requests).toHaveLength(3)
  })

  test('fails after its last retry, with what the server said', async () => {
    const { client, requests } = await clientOf([WARMING_UP], { retriesMax: 2 })
    expect(await errorOf(client.market())).toMatchObject({
      name: 'MintlakeError',
      code: 'warming_up',
      message: 'It is warming_up.',
      status: 503,
      requestId: 'r1',
    })
    expect(requests).toHaveLength(3)
  })

  test('of a server that hangs is cut at the time limit', async () => {
    const { client, requests } = await clientOf([hang], { timeoutMs: 500, retriesMax: 1 })
    expect(await errorOf(client.datapoint('x'))).toMatchObject({ code: 'timeout', status: null })
    expect(requests).toHaveLength(2)
  })

  test('of a server that hangs within the body is cut as well', async () => {
    const { client } = await clientOf([(res) => void res.writeHead(200).write('{"ok":')], {
      timeoutMs: 30,
      retriesMax: 0,
    })
    expect((await errorOf(client.market())).code).toBe('timeout')
  })

  test('whose body waits for ever although fetch was aborted is cut as well', async () => {
    const endless = async () => new Response(new ReadableStream({}))
    const client = createClient({
      baseUrl: 'http://127.0.0.1:9',
      fetch: endless,
      timeoutMs: 30,
      retriesMax: 0,
    })
    expect((await errorOf(client.market())).code).toBe('timeout')
  })

  test('that is refused is not sent again, and its error has every fault with its suggestion', async () => {
    const errors = [{ pointer: '/tab', code: 'invalid_parameter', message: 'no', suggestion: 'live' }]
    const { client, requests } = await clientOf([problem(400, 'invalid_parameter', { errors })])
    expect(await errorOf(client.market())).toMatchObject({ code: 'invalid_parameter', errors })
    expect(requests).toHaveLength(1)
  })

  test('of something else than Mintlake says so', async () => {
    const { client } = await clientOf([(res) => void res.end('<h1>It works!</h1>')])
    expect((await errorOf(client.market())).code).toBe('invalid_response')
  })

  test('with a code of a later version keeps it', async () => {
    const { client } = await clientOf([problem(400, 'not_yet_known')])
    const error = await errorOf(client.market())
    expect([error.code, error.problem?.code]).toEqual(['unknown_error', 'not_yet_known'])
  })

  test('follows no redirect, so that the key goes nowhere else', async () => {
    const { client, requests } = await clientOf(
      [(res) => void res.writeHead(302, { Location: '/elsewhere' }).end()],
      { key: 'ps_secret', retriesMax: 0 },
    )
    expect((await errorOf(client.market())).code).toBe('network_error')
    expect(requests.map(({ url }) => url)).toEqual(['/api/v1/market'])
  })

  test('with an empty key is one without a key', async () => {
    const { client, requests } = await clientOf([EMPTY_PAGE], { key: '' })
    await client.market()
    expect(requests[0].headers).not.toHaveProperty('authorization')
  })

  test('of an answer without an end is cut at its maximum', async () => {
    const megabyte = Buffer.alloc(1024 * 1024, ' ')
    const pour: Handler = (res) => {
      const more = (): void => {
        while (!res.destroyed && res.write(megabyte));
      }
      res.on('drain', more)
      more()
    }
    const { client } = await clientOf([pour])
    expect((await errorOf(client.market())).code).toBe('response_too_large')
  })

  test('goes below the path of the base URL', async () => {
    const { requests } = await clientOf([EMPTY_PAGE])
    await createClient({ baseUrl: `${server?.url}/lake/` }).market({ maxAnalyses: 2, search: 'a b&c' })
    expect(requests[0].url).toBe('/lake/api/v1/market?search=a+b%26c&max_analyses=2')
  })
})

describe('an AbortSignal', () => {
  test('ends a request, with its reason', async () => {
    const { client } = await clientOf([hang])
    const controller = new AbortController()
    const call = client.market({}, { signal: controller.signal })
    controller.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
  })

  test('ends the wait for a retry', async () => {
    const { client } = await clientOf([problem(503, 'overloaded', { retryAfterMs: 20_000 })])
    const signal = AbortSignal.timeout(50)
    await expect(client.market({}, { signal })).rejects.toMatchObject({ name: 'TimeoutError' })
  })

  test('that is aborted already sends nothing', async () => {
    const { client, requests } = await clientOf([EMPTY_PAGE])
    await expect(client.market({}, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: 'AbortError',
    })
    expect(requests).toEqual([])
  })
})

describe('a rate limit', () => {
  const limited = problem(429, 'read_rate_limited', { retryAfterMs: 40, limit: 30 })

  test('rejects at once unless told to wait', async () => {
    const { client, requests } = await clientOf([limited, EMPTY_PAGE])
    expect(await errorOf(client.market())).toMatchObject({ code: 'read_rate_limited', retryAfterMs: 40 })
    expect(requests).toHaveLength(1)
  })

  test('is waited out when told', async () => {
    const { client, requests } = await clientOf([limited, limited, EMPTY_PAGE])
    await client.market({}, { waitForLimits: true })
    expect(requests).toHaveLength(3)
  })

  test('is waited out for no longer than allowed', async () => {
    const { client, requests } = await clientOf([limited], { waitForLimits: true, limitWaitMsMax: 100 })
    expect((await errorOf(client.market())).code).toBe('read_rate_limited')
    expect(requests.length).toBeLessThan(4)
  })

  test('that says as much as is allowed is waited out', async () => {
    const { client } = await clientOf([limited, EMPTY_PAGE], { waitForLimits: true, limitWaitMsMax: 40 })
    expect((await client.market()).data).toEqual([])
  })

  test('of a replay whose market does not wait is waited out by the clock, as the server counts it', async () => {
    const replayed = { 'X-Market-Time': '5000' }
    const refusal = { ok: false, error: 'No.', code: 'read_rate_limited', retryAfterMs: 40 }
    const { client, requests } = await clientOf(
      [answer(429, refusal, replayed), answer(200, { ok: true, data: [] }, replayed)],
      { waitForLimits: true },
    )
    await client.market()
    await client.sleep(1)
    expect(requests.map(({ url }) => url)).toEqual(['/api/v1/market', '/api/v1/market'])
  })

  test('that says 0 is waited out for no longer than allowed', async () => {
    const backoff = { minMs: 40, maxMs: 40 }
    const options = { waitForLimits: true, limitWaitMsMax: 100, backoff }
    const { client, requests } = await clientOf(
      [problem(429, 'read_rate_limited', { retryAfterMs: 0 })],
      options,
    )
    expect((await errorOf(client.market())).code).toBe('read_rate_limited')
    // Each wait is of 10 to 20 ms.
    expect(requests.length).toBeLessThan(12)
  })

  test('is read from Retry-After where the body has none', async () => {
    const { client } = await clientOf([
      answer(429, { ok: false, error: 'No.', code: 'read_rate_limited' }, { 'Retry-After': '7' }),
    ])
    expect((await errorOf(client.market())).retryAfterMs).toBe(7_000)
  })
})

describe('a submission', () => {
  const accepted = answer(201, { ok: true, analysisId: 'an_1' })

  test('is sent again under the same key and with the same body', async () => {
    const stillAnswering = problem(409, 'idempotency_in_flight', { retryAfterMs: 1 })
    const mayBeStored = problem(503, 'store_unavailable', { mayBeStored: true })
    const { client, requests } = await clientOf([breakOff, stillAnswering, mayBeStored, accepted])
    expect((await client.submit(SUBMISSION)).analysisId).toBe('an_1')
    expect(requests).toHaveLength(4)
    const keys = requests.map(({ headers }) => headers['idempotency-key'])
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/)
    expect(new Set(keys).size).toBe(1)
    expect(new Set(requests.map(({ body }) => body)).size).toBe(1)
  })

  test('has a key of its own, or the one that it is given', async () => {
    const { client, requests } = await clientOf([accepted])
    await client.submit(SUBMISSION)
    await client.submit(SUBMISSION)
    await client.submit(SUBMISSION, { idempotencyKey: 'mine' })
    const keys = requests.map(({ headers }) => headers['idempotency-key'])
    expect(new Set(keys).size).toBe(3)
    expect(keys[2]).toBe('mine')
  })

  test('as a dry run says so and has no key', async () => {
    const { client, requests } = await clientOf([answer(200, { ok: true, dryRun: true, xpEarned: 50 })])
    expect((await client.submit(SUBMISSION, { dryRun: true })).dryRun).toBe(true)
    expect(requests[0].url).toBe('/api/v1/analysis/submit?dryRun=1')
    expect(requests[0].headers).not.toHaveProperty('idempotency-key')
  })
})

test('what cannot be sent is a TypeError at once', async () => {
  const { client, requests } = await clientOf([EMPTY_PAGE])
  const unsendable = createClient({ baseUrl: `${server?.url}`, key: 'ключ' })
  await expect(unsendable.market()).rejects.toBeInstanceOf(TypeError)
  await expect(unsendable.follow().next()).rejects.toBeInstanceOf(TypeError)
  const score: unknown = 1n
  await expect(client.submit({ ...SUBMISSION, score: score as number })).rejects.toBeInstanceOf(TypeError)
  expect(requests).toEqual([])
})

describe('a registration', () => {
  test('is sent again where it was refused', async () => {
    const { client, requests } = await clientOf([
      WARMING_UP,
      answer(201, { ok: true, data: { key: 'ps_1' } }),
    ])
    expect((await client.register({ name: 'a' })).key).toBe('ps_1')
    expect(requests).toHaveLength(2)
  })

  test.each([
    ['its answer was lost', breakOff],
    ['it may have been stored', problem(503, 'store_unavailable', { mayBeStored: true })],
  ] satisfies [string, Handler][])('is not sent again where %s', async (_, failure) => {
    const { client, requests } = await clientOf([failure])
    await errorOf(client.register({ name: 'a' }))
    expect(requests).toHaveLength(1)
  })
})

describe('a sleep', () => {
  const live = answer(200, { ok: true, data: { marketTime: 1_000 } })

  test('of a server that is live goes on while that is away, and asks nothing', async () => {
    const { client, requests } = await clientOf([live, breakOff])
    await client.now()
    await client.sleep(1)
    expect(requests).toHaveLength(1)
  })

  test.each([
    ['is away', breakOff],
    ['does not answer', hang],
  ])(
    'follows the clock, and is no longer, where nothing is known of the server, which %s',
    async (_, handler) => {
      const { client, requests } = await clientOf([handler], { backoff: { minMs: 10_000, maxMs: 10_000 } })
      const beganAtMs = performance.now()
      await client.sleep(50)
      expect(performance.now() - beganAtMs).toBeLessThan(4_000)
      expect(requests).toHaveLength(1)
    },
  )

  test('counts from the time at which it is called, whatever a stream has brought meanwhile', async () => {
    const market = atMarketTime(1_000)
    const { client, requests } = await clientOf([
      (res) => void res.writeHead(200, market).end('{"mint":"a"}\n'),
      answer(200, { ok: true, data: { marketTime: 300_000 } }, atMarketTime(300_000)),
      answer(200, { ok: true, data: { marketTime: 360_000 } }, atMarketTime(360_000)),
    ])
    await client.follow().next()
    await client.sleep(60_000)
    expect(requests.at(-1)?.url).toBe('/api/v1/time?until=360000')
  })

  test('asks again where an error said nothing of the time', async () => {
    const { client } = await clientOf([
      (res) => void res.writeHead(502).end(),
      answer(200, { ok: true, data: { marketTime: 1_000 } }, atMarketTime(1_000)),
      answer(200, { ok: true, data: { marketTime: 9_000 } }, atMarketTime(9_000)),
    ])
    await client.sleep(8_000)
    expect(server?.requests.at(-1)?.url).toBe('/api/v1/time?until=9000')
  })

  test('ends with its signal, also while the server is away', async () => {
    const { client } = await clientOf([hang])
    const controller = new AbortController()
    const sleeping = client.sleep(60_000, { signal: controller.signal })
    controller.abort('enough')
    await expect(sleeping).rejects.toBe('enough')
  })
})
