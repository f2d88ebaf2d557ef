// Documents for programs and language models, and the endpoints for state and metrics.
import { rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { startApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config/config.ts'
import { dataPointSchema } from '../../../src/schema/datapoint.ts'
import { marketItemSchema } from '../../../src/schema/market-item.ts'
import { RISK_FACTORS } from '../../../src/schema/vocabulary.ts'
import { expectProblem, newMint } from '../../support/submission.ts'
import { Client, openTestServer, type TestServer, temporaryFolder } from '../../support/test-server.ts'

let server: TestServer
beforeAll(async () => {
  server = await openTestServer()
})
afterAll(() => server.remove())
const get = (path: string) => server.client.get(path)

describe('/openapi.json', () => {
  it('is OpenAPI 3.1, and each of its operations is a route that answers', async () => {
    const { body, headers } = await get('/openapi.json')
    expect(headers.get('content-type')).toContain('application/json')
    expect(body.openapi).toMatch(/^3\.1\./)
    expect(body.info).toMatchObject({ title: expect.any(String), version: expect.any(String) })
    const operations = Object.entries(body.paths as Record<string, Record<string, { responses: object }>>)
    expect(operations.length).toBeGreaterThan(15)
    for (const [path, methods] of operations)
      for (const [method, operation] of Object.entries(methods)) {
        if (method === 'parameters') continue
        expect(Object.keys(operation.responses).length, `${method} ${path}`).toBeGreaterThan(0)
        const answer = await server.client.request('OPTIONS', path.replace('{id}', 'an_x'))
        expect(answer.status, path).toBe(204)
        expect(answer.headers.get('allow')).toContain(method.toUpperCase())
      }
  })

  it('lists every path of the contract', async () => {
    const { paths } = (await get('/openapi.json')).body
    for (const path of [
      '/api/v1/market',
      '/api/v1/datapoint',
      '/api/v1/datapoint/batch',
      '/api/v1/ohlc',
      '/api/v1/analysis/submit',
      '/api/v1/analysis',
      '/api/v1/analysis/{id}',
      '/api/v1/analysis/schema',
      '/api/v1/agents/leaderboard',
      '/api/v1/agent/profile',
      '/api/v1/keys/register',
      '/api/v1/keys/rotate',
      '/api/v1/keys/current',
      '/api/v1/ingest',
      '/api/v1/xp',
      '/health',
      '/readyz',
      '/metrics',
      '/openapi.json',
      '/llms.txt',
      '/skill.md',
    ])
      expect(Object.keys(paths)).toContain(path)
  })

  it('describes the responses, parameters and authentication of operations', async () => {
    const { paths, components } = (await get('/openapi.json')).body
    for (const path of ['/api/v1/keys/register', '/api/v1/keys/rotate', '/api/v1/analysis/submit'])
      expect(Object.keys(paths[path].post.responses)).toContain('201')
    const namesOf = (operation: { parameters: { name: string }[] }) =>
      operation.parameters.map(({ name }) => name)
    expect(namesOf(paths['/api/v1/analysis/submit'].post)).toContain('Idempotency-Key')
    for (const path of ['/api/v1/analysis', '/api/v1/agents/leaderboard'])
      expect(namesOf(paths[path].get)).toContain('limit')
    expect(Object.keys(components.securitySchemes)).toEqual(['bearer', 'apiKey'])
  })

  it('names every field of a row and of a DataPoint, and all of its references resolve', async () => {
    const { body, text } = await get('/openapi.json')
    for (const field of [...Object.keys(dataPointSchema.shape), ...Object.keys(marketItemSchema.shape)])
      expect(text, field).toContain(`"${field}"`)
    for (const [, pointer] of text.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      const found = pointer.split('/').reduce((at, name) => at?.[name.replaceAll('~1', '/')], body)
      expect(found, pointer).toBeDefined()
    }
  })
})

describe('the documents for agents', () => {
  it('/llms.txt and /skill.md explain how to take part', async () => {
    const llms = await get('/llms.txt')
    expect(llms.headers.get('content-type')).toMatch(/^text\/plain/)
    for (const path of ['/api/v1/market', '/api/v1/analysis/submit', '/skill.md', '/openapi.json'])
      expect(llms.text).toContain(path)
    const skill = await get('/skill.md')
    expect(skill.headers.get('content-type')).toMatch(/^text\/markdown/)
    for (const factor of RISK_FACTORS) expect(skill.text).toContain(factor)
    expect(llms.text + skill.text).not.toContain('/admin/')
  })

  it('the schema of a submission is JSON Schema with all risk factors and the bounds of the server', async () => {
    const { body } = await get('/api/v1/analysis/schema')
    expect(body.ok).toBe(true)
    expect([...body.data.required].sort()).toEqual(['mint', 'quant', 'score', 'sentiment', 'summary'])
    const { quant } = body.data.properties
    expect(quant.required).toHaveLength(8)
    expect(RISK_FACTORS).toHaveLength(35)
    for (const factor of RISK_FACTORS) expect(JSON.stringify(quant)).toContain(`"${factor}"`)
    expect(() => z.fromJSONSchema(body.data)).not.toThrow()
    const { mint, summary, score, snapshot } = body.data.properties
    expect(mint).toMatchObject({ minLength: 32, maxLength: 44, pattern: '^[1-9A-HJ-NP-Za-km-z]{32,44}$' })
    expect(summary).toMatchObject({ minLength: 50, maxLength: 2000 })
    expect(score).toMatchObject({ minimum: 0, maximum: 100 })
    expect(quant.properties.riskFactors).toMatchObject({ minItems: 1, maxItems: 8 })
    expect(JSON.stringify(snapshot)).toContain(
      '"top10HolderPct":{"anyOf":[{"type":"number","minimum":0,"maximum":100}',
    )
  })
})

describe('a server’s endpoints', () => {
  it('/health reports a ready server without simulated data, and /readyz is ready', async () => {
    const health = await get('/health')
    expect(health.status).toBe(200)
    expect(health.body).toMatchObject({ ok: true, status: 'ready', simulated: false, pushIngest: true })
    expect((await get('/readyz')).body).toMatchObject({ ok: true, ready: true })
  })

  it('/health reports simulated data from the simulator', async () => {
    const simulated = await openTestServer({
      feed: 'simulator',
      simulator: 'tokens=20,trades-per-second=20',
    })
    try {
      expect((await simulated.client.get('/health')).body.simulated).toBe(true)
      expect((await simulated.client.get('/api/v1/market')).body.meta.total).toBeGreaterThan(0)
    } finally {
      await simulated.remove()
    }
  })

  it('/metrics uses base units, and has no mint or key in any label', async () => {
    const mint = newMint()
    const key = await server.client.register()
    await server.client.push({ type: 'token', mint, ts: Date.now(), name: 'Metric', symbol: 'MET' })
    await server.client.get(`/api/v1/datapoint?mint=${mint}`, { Authorization: `Bearer ${key}` })
    await get('/api/v1/analysis/an_secret')
    await get('/nothing/at/all')
    const { text, headers, status } = await get('/metrics')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toMatch(/^text\/plain/)
    expect(text).toMatch(/^mintlake_market_tokens 1$/m)
    expect(text).toMatch(/^# TYPE \w+_seconds histogram$/m)
    for (const secret of [mint, key, 'an_secret', 'nothing/at/all']) expect(text).not.toContain(secret)
    const counters = [...text.matchAll(/^# TYPE (mintlake\w+) counter$/gm)].map(([, name]) => name)
    for (const name of counters) expect(name).toMatch(/_total$/)
  })

  it('those for feeds and operators do not exist without a feed key and an admin key', async () => {
    const dataDir = temporaryFolder()
    const flags = ['--port', '0', '--feed', 'none', '--log-level', 'warn', '--data-dir', dataDir]
    const bare = await startApp(readConfig(flags, {}))
    try {
      const client = new Client(bare.url)
      const headers = { 'Content-Type': 'application/x-ndjson', Authorization: 'Bearer x' }
      expectProblem(await client.request('POST', '/api/v1/ingest', '', headers), 'not_found')
      expectProblem(await client.get('/api/v1/admin/agents', { 'X-API-Key': '' }), 'not_found')
    } finally {
      await bare.stop()
      rmSync(dataDir, { recursive: true, force: true })
    }
  })
})
