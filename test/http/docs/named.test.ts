// Everything that the documents for agents name exists: addresses, parameters, fields, codes and limits.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SETTINGS_BY_PATH } from '../../../src/config/settings.ts'
import { EXAMPLE_MINT, exampleOf } from '../../../src/schema/example.ts'
import { submissionSchema } from '../../../src/schema/submission.ts'
import { apiDocument } from '../../support/conformance/conformance.ts'
import { submit } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

// biome-ignore lint/suspicious/noExplicitAny: a JSON document
type Json = any
const document: Json = apiDocument()

/** Limits that no other test uses, so that a number in a document is one that this server was told. */
const LIMITS = {
  'submit-limits': 'rate=7,cooldown-ms=42000,strikes=4,suspensions=6',
  'read-limit-anonymous': '113',
  'read-limit-keyed': '557',
  'register-limit': '19',
}
let server: TestServer
beforeAll(async () => {
  server = await openTestServer(LIMITS)
})
afterAll(() => server.remove())
const PATHS = ['/skill.md', '/llms.txt', '/streams.md'] as const
const read = async (path: string): Promise<string> => (await server.client.get(path)).text

/** Every name that a client may meet: fields, parameters, headers, codes and other words of the description. */
function knownNames(): Set<string> {
  const names = new Set<string>(Object.values(SETTINGS_BY_PATH).map(({ flag }) => `--${flag}`))
  const collect = (node: Json, key = ''): void => {
    if (Array.isArray(node)) {
      for (const entry of node) {
        if (typeof entry === 'string' && (key === 'enum' || key === 'x-codes' || key === 'protocols'))
          names.add(entry)
        collect(entry)
      }
    } else if (typeof node === 'object' && node !== null) {
      for (const [name, value] of Object.entries<Json>(node)) {
        if (key === 'properties' || key === 'headers' || key === 'schemas') names.add(name)
        if ((name === 'name' || name === 'const') && typeof value === 'string') names.add(value)
        collect(value, name)
      }
    }
  }
  collect(document)
  // Headers of requests that OpenAPI describes as security, and names that stand for values.
  for (const name of ['Authorization', 'Accept', 'Content-Type', 'MINT', 'SEQ', 'null', 'data.key'])
    names.add(name)
  return names
}
const known = knownNames()

/** Addresses of a text with the method before them, if one is there. */
function addressFaults(text: string, base: string): string[] {
  const faults: string[] = []
  const pattern = new RegExp(
    `(?:\\b(GET|POST|DELETE) )?(?:${base.replaceAll('.', '\\.')})?(/(?:api/v1/[\\w/{}]+|docs|[a-z]+\\.(?:json|md|txt|ico)))(\\?[^\\s\`)]*)?`,
    'g',
  )
  for (const [, method = '', path, query = ''] of text.matchAll(pattern)) {
    const operations = document.paths[path]
    const operation =
      method === '' ? Object.values<Json>(operations ?? {})[0] : operations?.[method.toLowerCase()]
    if (operation === undefined) {
      faults.push(`there is no ${method} ${path}`)
      continue
    }
    const parameters = operation.parameters.map(({ name }: { name: string }) => name)
    for (const name of new URLSearchParams(query).keys())
      if (!parameters.includes(name)) faults.push(`${path} has no parameter ${name}`)
  }
  return faults
}

/** Words in code spans that look like names. */
function nameFaults(text: string): string[] {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, '')
  return [...prose.matchAll(/`([^`\n]+)`/g)]
    .map(([, span]) => span.replace(/^\?/, '').replace(/=(\w*)$/, ''))
    .filter((span) => /^-{0,2}[A-Za-z_][\w.-]*$/.test(span))
    .filter((span) => !known.has(span) && !span.split('.').every((part) => known.has(part)))
    .map((span) => `nothing is called ${span}`)
}

/** Rows of the table of limits that differ from the limits of this server. */
function limitFaults(text: string): string[] {
  const { Submission, Quant } = document.components.schemas
  const { summary } = Submission.properties
  const { riskFactors } = Quant.properties
  const mints =
    document.paths['/api/v1/datapoint/batch'].post.requestBody.content['application/json'].schema.properties
      .mints
  const expected: Readonly<Record<string, RegExp>> = {
    'Submissions of an agent': /^7 in 60 s/,
    'Submissions of an agent on one mint': /^1 in 42 s$/,
    'Rejected submissions': /^4 in 24 hours/,
    'Reads without a key, by address': /^113 in 60 s/,
    'Reads with a key': /^557 in 60 s/,
    'Rows of market lists': /^10000 in 60 s/,
    'Registrations of an address': /^19 in an hour$/,
    'Body of a request': /^65536 bytes$/,
    'Query string': /^10240 characters$/,
    '`summary`': new RegExp(`^${summary.minLength} to ${summary.maxLength} `),
    '`riskFactors`': new RegExp(`^${riskFactors.minItems} to ${riskFactors.maxItems}$`),
    '`limit` of the market list': /^500;/,
    '`limit` of bars': /^1000$/,
    '`limit` of leaderboards': /^200$/,
    '`mints` of a batch': new RegExp(`^${mints.maxItems}$`),
    'Subscriptions of a WebSocket': /^100$/,
    'Different windows of a client': /^100$/,
    'Streams at once, of all clients': /^10000$/,
  }
  const table = text.split('## Limits')[1]?.split('\n## ')[0] ?? ''
  const rows = [...table.matchAll(/^\| (.+?) \| (.+?) \|$/gm)].filter(
    ([, name]) => !/^(Limit|---)$/.test(name),
  )
  const faults = rows
    .filter(([, name, value]) => !(expected[name]?.test(value) ?? false))
    .map(([, name, value]) => `${name} is not ${value}`)
  return rows.length === Object.keys(expected).length ? faults : [...faults, 'a limit is missing']
}

describe('what the documents name exists', () => {
  it.each(PATHS)('%s: every address with its parameters', async (path) => {
    const text = await read(path)
    expect(text).toContain(server.url)
    expect(addressFaults(text, server.url)).toEqual([])
  })

  it.each(PATHS)('%s: every field, code and word', async (path) => {
    expect(nameFaults(await read(path))).toEqual([])
  })

  it('/skill.md: every limit, as this server holds it', async () => {
    expect(limitFaults(await read('/skill.md'))).toEqual([])
    const key = await server.client.register()
    const policyOf = async (path: string, headers: Record<string, string> = {}) =>
      (await server.client.get(path, headers)).headers.get('ratelimit-policy')
    expect(await policyOf('/api/v1/xp')).toBe('"read";q=113;w=60')
    expect(await policyOf('/api/v1/xp', { Authorization: `Bearer ${key}` })).toBe('"read";q=557;w=60')
    const submitted = await submit(server.client, key, {})
    expect(submitted.headers.get('ratelimit-policy')).toBe('"submit";q=7;w=60')
    const registered = await server.client.post('/api/v1/keys/register', { name: 'another' })
    expect(registered.headers.get('ratelimit-policy')).toBe('"register";q=19;w=3600')
    for (const [path, limit] of [
      ['/api/v1/market?limit=99999', 500],
      ['/api/v1/analysis?limit=99999', 200],
    ] as const)
      expect((await server.client.get(path)).body.meta.clamped).toEqual({ limit })
    expect((await server.client.post('/api/v1/keys/register', 'x'.repeat(65_537))).status).toBe(413)
    expect((await server.client.get(`/api/v1/xp?x=${'y'.repeat(10_239)}`)).status).toBe(400)
  })

  it('a falsified document fails', async () => {
    const text = await read('/skill.md')
    expect(addressFaults(text.replaceAll('/datapoint?', '/snapshot?'), server.url)).toEqual([
      'there is no GET /api/v1/snapshot',
    ])
    expect(addressFaults(text.replace('tf=1m', 'timeframe=1m'), server.url)).toEqual([
      '/api/v1/ohlc has no parameter timeframe',
    ])
    expect(addressFaults(text.replace('POST ', 'DELETE '), server.url).length).toBeGreaterThan(0)
    expect(nameFaults(text.replaceAll('xpTotal', 'xpSum'))).toEqual(['nothing is called xpSum'])
    expect(nameFaults(text.replaceAll('mint_cooldown', 'token_cooldown'))).toEqual([
      'nothing is called token_cooldown',
    ])
    expect(limitFaults(text.replace('557 in 60 s', '558 in 60 s'))).toEqual([
      'Reads with a key is not 558 in 60 s',
    ])
    expect(limitFaults(text.replace(/^\| Query string.*\n/m, ''))).toEqual(['a limit is missing'])
  })
})

describe('/skill.md', () => {
  it('shows a whole body that is accepted once mint and snapshot are those of a token', async () => {
    const [, shown] = /```json\n([\s\S]*?)```/.exec(await read('/skill.md')) ?? []
    const body = JSON.parse(shown)
    expect(body).toEqual(exampleOf(submissionSchema))
    const { snapshotAt: _, ...fields } = body.snapshot
    const ts = Date.now()
    await server.client.push(
      { type: 'token', mint: EXAMPLE_MINT, ts, name: 'Wrapped', symbol: 'WRAP' },
      { type: 'patch', mint: EXAMPLE_MINT, ts, fields },
    )
    const { snapshotAt } = (await server.client.get(`/api/v1/datapoint?mint=${EXAMPLE_MINT}`)).body.data
    const key = await server.client.register()
    const answer = await submit(server.client, key, { ...body, snapshot: { ...fields, snapshotAt } })
    expect(answer.body).toMatchObject({ ok: true, outcome: 'validated', deviationPct: 0, xpEarned: 50 })
  })

  it('says what this server does to whoever is suspended, and that registration may be closed', async () => {
    const open = await read('/skill.md')
    expect(open).toContain('/api/v1/keys/register')
    expect(open).toMatch(
      /4 strikes within 24 hours suspend[^.]*suspension number 6 within 30 days is for good\./,
    )
    const closed = await openTestServer({
      registration: 'closed',
      'submit-limits': 'strikes=4,suspensions=0',
    })
    try {
      const { text } = await closed.client.get('/skill.md')
      expect(text).toContain('the operator gives keys')
      expect(text).not.toContain('/api/v1/keys/register')
      expect(text).toContain('| Registrations of an address | closed |')
      expect(text).toMatch(/4 strikes within 24 hours suspend/)
      expect(text).not.toContain('for good')
    } finally {
      await closed.remove()
    }
  })

  it('warns of texts that come from unknown third parties', async () => {
    for (const path of ['/skill.md', '/llms.txt'])
      expect(await read(path)).toMatch(/come from unknown third parties[\s\S]*instruction/)
  })
})
