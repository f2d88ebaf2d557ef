// What a request may mean otherwise than it is taken: months, seconds, compressed bodies, names that end a line.
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { expectProblem, newMint, seedToken } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

let server: TestServer
let mint: string
beforeAll(async () => {
  server = await openTestServer()
  mint = await seedToken(server.client, Date.now())
})
afterAll(() => server.remove())

it('a timeframe of months is refused with those that there are; other cases are folded', async () => {
  const bars = (tf: string) => server.client.get(`/api/v1/ohlc?mint=${mint}&tf=${tf}`)
  for (const tf of ['1M', '5M', '15M']) {
    const answer = await bars(tf)
    expectProblem(answer, 'invalid_parameter', '/tf')
    expect(answer.body.errors[0].allowed).toContain('1m')
    expect(answer.body.errors[0].suggestion).toBeUndefined()
  }
  for (const tf of ['1H', '4H', '1D', '15S']) expect((await bars(tf)).body.meta.tf).toBe(tf.toLowerCase())
})

it('a time in seconds or microseconds is refused with a hint', async () => {
  for (const name of ['from', 'to'])
    for (const [factor, hint] of [
      [0.001, /looks like seconds: send Unix milliseconds, 1000 times/],
      [1_000, /looks like microseconds: send Unix milliseconds, a thousandth/],
    ] as const) {
      const answer = await server.client.get(
        `/api/v1/ohlc?mint=${mint}&${name}=${Math.floor(Date.now() * factor)}`,
      )
      expectProblem(answer, 'invalid_parameter', `/${name}`)
      expect(answer.body.error).toMatch(hint)
    }
  for (const time of ['0', `${Date.now()}`, `${Number.MAX_SAFE_INTEGER}`])
    expect((await server.client.get(`/api/v1/ohlc?mint=${mint}&to=${time}`)).status).toBe(200)
})

it('a body in an encoding that is not spoken is 415 everywhere', async () => {
  const key = await server.client.register()
  const paths = [
    'analysis/submit',
    'ingest',
    'datapoint/batch',
    'keys/register',
    'keys/rotate',
    'agent/profile',
  ]
  for (const path of paths)
    for (const encoding of ['gzip', 'identity, br', 'zstd']) {
      const response = await fetch(`${server.url}/api/v1/${path}`, {
        method: 'POST',
        headers: {
          'Content-Type': path === 'ingest' ? 'application/x-ndjson' : 'application/json',
          'Content-Encoding': encoding,
          Authorization: `Bearer ${key}`,
        },
        body: gzipSync('{}'),
      })
      expect(response.status, path).toBe(415)
      expect(await response.json()).toMatchObject({ code: 'unsupported_media_type', allowed: ['identity'] })
      expect(response.headers.get('accept-encoding')).toBe('identity')
    }
  const plain = { 'Content-Encoding': 'identity' }
  expect((await server.client.post('/api/v1/datapoint/batch', { mints: [mint] }, '', plain)).status).toBe(200)
})

it('characters at which readers split lines are escaped, in JSON and NDJSON alike', async () => {
  const name = 'a\u0085b\u2028c\u2029d'
  const odd = newMint()
  await server.client.push({
    type: 'token',
    mint: odd,
    ts: Date.now(),
    name,
    symbol: 'ODD',
    description: name,
  })
  const text = async (path: string) => (await server.client.get(path)).text
  const lines = (await text(`/api/v1/market?format=ndjson&search=${odd}`)).split(/[\n\u0085\u2028\u2029]/)
  expect(lines).toHaveLength(2)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ mint: odd, name, description: name })
  expect(await text(`/api/v1/market?search=${odd}`)).toContain(`[${lines[0]}]`)
  const datapoint = await text(`/api/v1/datapoint?mint=${odd}`)
  expect(datapoint).not.toMatch(/[\u0085\u2028\u2029]/)
  expect(JSON.parse(datapoint).data.name).toBe(name)
})
