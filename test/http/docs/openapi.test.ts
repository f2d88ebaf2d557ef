// The API description: its form, its examples, and that it is what a running server tells.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { apiDocument, Conformance, type Exchange } from '../../support/conformance/conformance.ts'
import { newMint } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

const ROOT = new URL('../../..', import.meta.url).pathname
const REDOCLY = join(ROOT, 'node_modules/@redocly/cli/bin/cli.js')
const LINT_MS_MAX = 50_000

// biome-ignore lint/suspicious/noExplicitAny: a JSON document
type Json = any
let server: TestServer
let document: Json
beforeAll(async () => {
  server = await openTestServer()
  document = (await server.client.get('/openapi.json')).body
})
afterAll(() => server.remove())

interface Operation {
  name: string
  method: string
  path: string
  operation: Json
}
const operations = (): Operation[] =>
  Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, operation]) => ({
      name: `${method} ${path}`,
      method,
      path,
      operation,
    })),
  )

describe('/openapi.json', () => {
  it('is the description to which the tests hold every answer', () => {
    expect(document).toEqual(apiDocument())
  })

  it('has no error and no warning under the linter, without the network', {
    tags: 'drill',
    timeout: LINT_MS_MAX + 10_000,
  }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'mintlake-lint-'))
    const lint = async (name: string, text: string) => {
      const file = join(folder, name)
      writeFileSync(file, text)
      const args = [REDOCLY, 'lint', file, '--config', join(ROOT, '.redocly.yaml'), '--format=json']
      // No figures of use are sent, and nobody is asked for a newer version.
      const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
      return promisify(execFile)(process.execPath, args, { env, timeout: LINT_MS_MAX }).then(
        ({ stdout }) => JSON.parse(stdout).totals,
        ({ stdout }) => JSON.parse(stdout).totals,
      )
    }
    try {
      expect(await lint('openapi.json', JSON.stringify(document))).toMatchObject({ errors: 0, warnings: 0 })
      const { security: _, ...rest } = document.paths['/api/v1/market'].get
      const broken = { ...document, paths: { '/api/v1/market': { get: rest } } }
      expect((await lint('broken.json', JSON.stringify(broken))).errors).toBeGreaterThan(0)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it('gives each operation a unique name, a tag, security, a success and its errors', () => {
    const tags = document.tags.map(({ name }: { name: string }) => name)
    const names = operations().map(({ operation }) => operation.operationId)
    expect(new Set(names).size).toBe(names.length)
    for (const { name, operation } of operations()) {
      expect(operation.operationId, name).toMatch(/^[a-zA-Z]\w+$/)
      expect(tags, name).toContain(operation.tags[0])
      expect(Array.isArray(operation.security), name).toBe(true)
      expect(
        Object.keys(operation.responses).some((status) => status < '400'),
        name,
      ).toBe(true)
      for (const [status, { content, 'x-codes': codes }] of Object.entries<Json>(operation.responses)) {
        if (status < '400') continue
        expect(Object.keys(content), `${name} ${status}`).toEqual(['application/problem+json'])
        expect(codes.length, `${name} ${status}`).toBeGreaterThan(0)
      }
    }
    expect(document.servers).toMatchObject([{ url: '/' }])
  })

  it('describes every body, and gives every JSON body an example that its schema allows', () => {
    const conformance = new Conformance(document)
    const resolve = (schema: Json): Json =>
      schema.$ref ? document.components.schemas[schema.$ref.split('/').at(-1)] : schema
    for (const { name, method, path, operation } of operations()) {
      const at = `#/paths/${path.replaceAll('/', '~1')}/${method}`
      const bodies: [string, Json][] = Object.entries<Json>(operation.responses)
        .filter(([status]) => status < '400')
        .map(([status, { content }]) => [`${at}/responses/${status}/content`, content])
      if (operation.requestBody) bodies.push([`${at}/requestBody/content`, operation.requestBody.content])
      for (const [pointer, content] of bodies) {
        const schema = content?.['application/json']?.schema
        if (schema === undefined || path === '/openapi.json') continue
        const [example] = resolve(schema).examples ?? []
        expect(example, `${name}: an example`).toBeDefined()
        expect(conformance.valueFaults(`${pointer}/application~1json/schema`, example), name).toEqual([])
      }
    }
    for (const [name, { examples = [] }] of Object.entries<Json>(document.components.schemas))
      for (const example of examples as Json[])
        expect(conformance.valueFaults(`#/components/schemas/${name}`, example), name).toEqual([])
  })

  it('names units as x-unit', () => {
    const { DataPoint, MarketItem } = document.components.schemas
    expect(DataPoint.properties.priceUsd['x-unit']).toBe('USD')
    expect(MarketItem.properties.created_timestamp['x-unit']).toBe('Unix ms')
    const isKept = (key: string, value: unknown) => (key.startsWith('example') ? undefined : value)
    expect(JSON.stringify(document, isKept)).not.toContain('"unit":"')
  })
})

describe('the check of answers', () => {
  /** An answer of the server, as the tests' client sees it. */
  async function exchangeOf(path: string): Promise<Exchange> {
    const response = await fetch(server.url + path)
    const { status, headers } = response
    return { method: 'GET', path, status, headers, body: Buffer.from(await response.arrayBuffer()) }
  }
  const falsified = (change: (copy: Json) => void): Conformance => {
    const copy = structuredClone(document)
    change(copy)
    return new Conformance(copy)
  }

  it('finds what a falsified description lacks or demands', async () => {
    const mint = newMint()
    await server.client.push({ type: 'token', mint, ts: Date.now(), name: 'N', symbol: 'S' })
    const page = await exchangeOf('/api/v1/market')
    expect(new Conformance(document).faults(page)).toEqual([])
    const cases: [string, (copy: Json) => void][] = [
      ['the path is not described', ({ paths }) => delete paths['/api/v1/market']],
      ['the method is not described', ({ paths }) => delete paths['/api/v1/market'].get],
      ['status 200 is not described', ({ paths }) => delete paths['/api/v1/market'].get.responses['200']],
      [
        'the media type',
        ({ paths }) => delete paths['/api/v1/market'].get.responses['200'].content['application/json'],
      ],
      [
        'the header etag is not described',
        ({ paths }) => delete paths['/api/v1/market'].get.responses['200'].headers.ETag,
      ],
      [
        'must NOT have additional properties',
        ({ components }) => delete components.schemas.MarketItem.properties.hot_score,
      ],
      [
        'must be string',
        ({ components }) => (components.schemas.MarketItem.properties.hot_score = { type: 'string' }),
      ],
      [
        'must have required property',
        ({ components }) => components.schemas.MarketItem.required.push('colour'),
      ],
    ]
    for (const [told, change] of cases)
      expect(falsified(change).faults(page).join('\n'), told).toContain(told)
  })

  it('finds an undescribed code of an error, header and line', async () => {
    const error = await exchangeOf('/api/v1/market?limit=x')
    expect(new Conformance(document).faults(error)).toEqual([])
    const withoutCode = falsified(({ paths }) => {
      paths['/api/v1/market'].get.responses['400']['x-codes'] = ['invalid_json']
    })
    expect(withoutCode.faults(error)).toEqual(['the code invalid_parameter is not described'])
    const lines = await exchangeOf('/api/v1/market?format=ndjson')
    const withoutField = falsified(({ components }) => delete components.schemas.StreamRow.properties.symbol)
    expect(new Conformance(document).faults(lines)).toEqual([])
    expect(withoutField.faults(lines).length).toBeGreaterThan(0)
  })
})
