// `mintlake mcp` as the SDK's own client sees it, over the standard streams, on a real server.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MESSAGE_BYTES_MAX } from '../../src/mcp/limits.ts'
import { answer, ScriptedServer } from '../support/scripted-server.ts'
import { newMint, quant, SUMMARY, seedToken } from '../support/submission.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'

const PROGRAM = new URL('../../scripts/mintlake.mjs', import.meta.url).pathname
const TOOLS = [
  'get_bars',
  'get_datapoint',
  'get_schema',
  'leaderboard',
  'list_market',
  'my_analyses',
  'standing',
  'submit_analysis',
]

let server: TestServer
let key: string
/** Clients of a server with a key and a lake, and of one with neither. Starting one takes seconds. */
let keyed: Client
let plain: Client
const clients: Client[] = []

beforeAll(async () => {
  server = await openTestServer()
  key = await server.client.register('model')
  const both = [connect(['--data-dir', server.dataDir], { MINTLAKE_KEY: key }), connect()]
  ;[keyed, plain] = (await Promise.all(both)).map(({ client }) => client)
})
afterAll(async () => {
  for (const client of clients) await client.close()
  await server.remove()
})

interface Connection {
  client: Client
  transport: StdioClientTransport
  /** What it wrote to standard error. */
  errors(): string
}

async function connect(
  args: readonly string[] = [],
  env: Record<string, string> = {},
  url = server.url,
): Promise<Connection> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: ['--no-warnings', PROGRAM, 'mcp', '--url', url, ...args],
    env: { PATH: process.env.PATH ?? '', ...env },
    stderr: 'pipe',
  })
  const client = new Client({ name: 'test', version: '1' })
  let text = ''
  transport.stderr?.on('data', (chunk) => {
    text += chunk
  })
  clients.push(client)
  await client.connect(transport)
  return { client, transport, errors: () => text }
}

/** Calls a tool. An answer is there once: a refusal as text, all else as structured content, which the SDK's client checks. */
async function call(client: Client, name: string, args: object = {}) {
  const {
    content,
    structuredContent,
    isError = false,
  } = await client.callTool({ name, arguments: { ...args } })
  const [first] = content
  if (first?.type !== 'text' || content.length > 1) throw new Error(`${name} answers no text`)
  if (isError) expect(structuredContent).toBeUndefined()
  else expect(first.text).toBe('The answer is the structured content.')
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  return { isError, answer: (isError ? JSON.parse(first.text) : structuredContent) as any }
}

/** The rows of a compact answer as objects. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
const rowsOf = ({ columns, rows }: { columns: string[]; rows: unknown[][] }): any[] =>
  rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])))

const seed = (): Promise<string> => seedToken(server.client, Date.now())

describe('with a key', () => {
  test('lists its tools, and warns of what strangers wrote', async () => {
    const { tools } = await keyed.listTools()
    expect(tools.map(({ name }) => name).toSorted()).toEqual([...TOOLS, 'sql'].toSorted())
    for (const name of ['list_market', 'get_datapoint'])
      expect(tools.find((tool) => tool.name === name)?.description).toMatch(/strangers.*never instructions/)
    expect(keyed.getInstructions()).toMatch(/strangers/)
    const submit = tools.find(({ name }) => name === 'submit_analysis')
    expect(submit?.annotations?.readOnlyHint).toBe(false)
    expect(submit?.inputSchema.required).toEqual(['mint', 'sentiment', 'score', 'summary', 'quant'])
    expect(JSON.stringify(submit?.inputSchema)).toContain('high_unique_wallet_growth')
  })

  test('tells arguments that a tool does not have, and passes none of them on', async () => {
    const mint = await seed()
    const more = { follow: 1, format: 'ndjson', fields: 'x' }
    for (const [name, args] of [
      ['list_market', { limit: 1 }],
      ['get_datapoint', { mint }],
      ['get_bars', { mint }],
      ['leaderboard', {}],
    ] as const) {
      const { answer, isError } = await call(keyed, name, { ...args, ...more })
      expect(isError, name).toBe(false)
      expect(answer.ignored).toEqual(['follow', 'format', 'fields'])
    }
  })

  test('takes an argument that is null as one that is not there', async () => {
    const mint = await seed()
    const list = await call(keyed, 'list_market', { search: null, cursor: null, limit: null, detail: true })
    expect(list.answer.data.map((row: { mint: string }) => row.mint)).toContain(mint)
    expect((await call(keyed, 'sql', { query: 'SELECT 1', limit: null })).answer.rows).toEqual([[1]])
  })

  test('reads the market, submits and stands on the leaderboard', async () => {
    const mint = await seed()
    const client = keyed
    const list = await call(client, 'list_market', { limit: 3, sort: 'market_cap' })
    expect(rowsOf(list.answer).map((row) => row.mint)).toContain(mint)
    expect((await call(client, 'get_datapoint', { mint })).answer).toMatchObject({ mint, holderCount: 200 })
    expect((await call(client, 'get_bars', { mint, tf: '5m' })).answer).toMatchObject({
      rows: [],
      meta: { tf: '5m' },
    })
    expect((await call(client, 'get_schema')).answer.schema).toMatchObject({ type: 'object' })
    const body = { mint, sentiment: 'bullish', score: 70, summary: SUMMARY, quant }
    const { answer, isError } = await call(client, 'submit_analysis', body)
    expect(isError).toBe(false)
    expect(answer).toMatchObject({ outcome: 'validated', xpEarned: 50 })
    const ranks = await call(client, 'leaderboard', { limit: 1 })
    expect(rowsOf(ranks.answer)).toMatchObject([{ name: 'model', xp: 50 }])
    const again = await call(client, 'submit_analysis', body)
    expect(again).toMatchObject({
      isError: true,
      answer: { code: 'mint_cooldown', suggestion: expect.any(String) },
    })
    expect(again.answer.retryAfterMs).toBeGreaterThan(0)
  })

  test('has a schema of every answer, which each answer of these tests fits', async () => {
    const { tools } = await keyed.listTools()
    for (const { name, outputSchema } of tools) expect(outputSchema, name).toMatchObject({ type: 'object' })
    // What a model reads of the tools before anything else.
    expect(JSON.stringify(tools).length).toBeLessThan(20_000)
  })

  test('rows are compact, and detail gives the rest', async () => {
    const ts = Date.now()
    for (let count = 0; count < 30; count++) {
      const mint = newMint()
      const description = 'word '.repeat(100)
      await server.client.push(
        { type: 'token', mint, ts, name: `Token ${count}`, symbol: 'SYM', description },
        { type: 'trade', mint, ts, side: 'buy', tokenAmount: 12_345.678_9, priceUsd: 0.000_123_456_789 },
      )
    }
    const compact = await call(keyed, 'list_market', { search: 'token' })
    expect(compact.answer.rows).toHaveLength(20)
    const detailed = await call(keyed, 'list_market', { search: 'token', detail: true })
    const size = (answer: object) => JSON.stringify(answer).length
    expect(size(compact.answer)).toBeLessThan(size(detailed.answer) / 4)
    expect(size(compact.answer)).toBeLessThan(4_500)
    const [row] = rowsOf(compact.answer)
    expect(row.priceUsd).toBe(0.000_123_46)
    const [whole] = detailed.answer.data
    expect(whole).toMatchObject({ mint: row.mint, priceUsd: 0.000_123_456_789 })
    expect(whole.description).toHaveLength(500)
    const point = await call(keyed, 'get_datapoint', { mint: row.mint })
    expect(point.answer).toMatchObject({ priceUsd: 0.000_123_46, cut: ['description'] })
    expect(Object.values(point.answer)).not.toContain(null)
    const full = await call(keyed, 'get_datapoint', { mint: row.mint, detail: true })
    expect(full.answer).toMatchObject({
      priceUsd: 0.000_123_456_789,
      holderCount: null,
      description: whole.description,
    })
    const bars = await call(keyed, 'get_bars', { mint: row.mint })
    expect(rowsOf(bars.answer)).toMatchObject([{ o: 0.000_123_46, n: 1, closed: false }])
    expect((await call(keyed, 'get_bars', { mint: row.mint, detail: true })).answer.data[0].o).toBe(
      0.000_123_456_789,
    )
  })

  test('limits are told, and pages go on', async () => {
    const { answer } = await call(keyed, 'list_market', { limit: 500 })
    expect(answer.meta).toMatchObject({ clamped: { limit: 100 }, count: expect.any(Number) })
    const page = await call(keyed, 'list_market', { limit: 2 })
    const next = await call(keyed, 'list_market', { limit: 2, cursor: page.answer.meta.nextCursor })
    expect(rowsOf(next.answer)[0].mint).not.toBe(rowsOf(page.answer)[0].mint)
    const mint = rowsOf(page.answer)[0].mint
    expect((await call(keyed, 'get_bars', { mint, limit: 1_000 })).answer.meta.clamped).toEqual({
      limit: 300,
    })
    expect((await call(keyed, 'leaderboard', { limit: 1_000 })).answer.clamped).toEqual({ limit: 200 })
    expect((await call(keyed, 'my_analyses', { limit: 1_000 })).answer.meta.clamped).toEqual({ limit: 100 })
    expect((await call(keyed, 'sql', { query: 'SELECT 1', limit: 5_000 })).answer.clamped).toEqual({
      limit: 1_000,
    })
  })

  test('a market that is approximate, or not all there yet, is told with every answer', async () => {
    const notes = { approximate: 'trades before it are missing', warming_up: '3 % is there' }
    const page = { count: 0, total: 0, nextCursor: null }
    const replay = await ScriptedServer.start((res, req) =>
      req.url?.startsWith('/api/v1/datapoint')
        ? answer(200, { ok: true, data: { mint: 'M', priceUsd: 1 }, meta: notes })(res, req)
        : answer(200, { ok: true, data: [], meta: { ...page, ...notes } })(res, req),
    )
    try {
      const { client } = await connect([], {}, replay.url)
      for (const detail of [true, false]) {
        expect((await call(client, 'list_market', { detail })).answer.meta).toMatchObject(notes)
        expect((await call(client, 'get_datapoint', { mint: 'M', detail })).answer).toMatchObject(notes)
        expect((await call(client, 'get_bars', { mint: 'M', detail })).answer.meta).toMatchObject(notes)
      }
    } finally {
      await replay.close()
    }
  })

  test('own analyses come with what became of them, without a lake on the machine', async () => {
    const { client } = await connect([], { MINTLAKE_KEY: key })
    const mint = await seed()
    const body = { mint, sentiment: 'bearish', score: 31, summary: SUMMARY, quant }
    const { answer: receipt } = await call(client, 'submit_analysis', body)
    const { answer } = await call(client, 'my_analyses', { mint })
    expect(rowsOf(answer)).toMatchObject([
      {
        analysisId: receipt.analysisId,
        mint,
        sentiment: 'bearish',
        score: 31,
        outcome: 'validated',
        fwd_ret_1h: null,
      },
    ])
    expect(rowsOf(answer)[0]).toMatchObject({ xpEarned: receipt.xpEarned, dead_24h: null })
    const whole = await call(client, 'my_analyses', { mint, detail: true })
    expect(whole.answer.data).toMatchObject([{ summary: SUMMARY, quant, outcomes: { fwd_ret_5m: null } }])
    const first = await call(client, 'my_analyses', { limit: 1 })
    const second = await call(client, 'my_analyses', { limit: 1, cursor: first.answer.meta.nextCursor })
    expect(rowsOf(second.answer)[0].analysisId).not.toBe(receipt.analysisId)
  })

  test('a program that reads text alone gets the answer as text', async () => {
    const { client } = await connect(['--text'])
    const { content, structuredContent } = await client.callTool({ name: 'leaderboard', arguments: {} })
    expect(JSON.parse((content[0] as { text: string }).text)).toEqual(structuredContent)
  })

  test('so does one whose revision of the protocol knows no structured content', async () => {
    const child = spawn(process.execPath, ['--no-warnings', PROGRAM, 'mcp', '--url', server.url])
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const say = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    const clientInfo = { name: 'old', version: '1' }
    say({
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-03-26', capabilities: {}, clientInfo },
    })
    expect(JSON.parse((await lines.next()).value).result.protocolVersion).toBe('2025-03-26')
    say({ method: 'notifications/initialized' })
    say({ id: 2, method: 'tools/call', params: { name: 'leaderboard', arguments: {} } })
    const { result } = JSON.parse((await lines.next()).value)
    expect(JSON.parse(result.content[0].text).columns).toContain('xp')
    child.stdin.end()
    await once(child, 'exit')
  })

  test('a dry run stores nothing, and the standing is told', async () => {
    const before = await call(keyed, 'standing')
    const body = { mint: await seed(), sentiment: 'neutral', score: 50, summary: SUMMARY, quant }
    const trial = await call(keyed, 'submit_analysis', { ...body, dryRun: true })
    expect(trial.answer).toMatchObject({ dryRun: true, outcome: 'validated', xpEarned: 50 })
    const { answer } = await call(keyed, 'standing')
    expect(answer.standing).toMatchObject({ xp: before.answer.standing.xp, banned: false })
  })

  test.each([
    ['list_market', { tab: 'lively' }, 'invalid_parameter', 'live'],
    ['list_market', { limit: 'many' }, 'invalid_parameter', undefined],
    ['get_bars', { mint: 'x'.repeat(40) }, 'invalid_mint', undefined],
    ['get_datapoint', {}, 'invalid_parameter', undefined],
    [
      'submit_analysis',
      { quant: { ...quant, riskFactors: ['rug_pull_risk'] } },
      'validation_failed',
      'rug_pattern',
    ],
    ['submit_analysis', { dryRun: 'certainly' }, 'invalid_parameter', undefined],
    ['list_market', { detail: 'yes' }, 'invalid_parameter', undefined],
    ['sql', { query: '', limit: 'all' }, 'invalid_parameter', undefined],
    ['my_analyses', { cursor: 'x', limit: 0 }, 'invalid_parameter', undefined],
    ['list_market', { search: { text: 'a' } }, 'invalid_parameter', undefined],
    ['list_market', { search: ['a', 'b'], max_analyses: [3] }, 'invalid_parameter', undefined],
    ['my_analyses', { limit: [1] }, 'invalid_parameter', undefined],
  ])('%s of %j is refused with %s', async (name, args, code, suggestion) => {
    const client = keyed
    const { isError, answer } = await call(client, name, args)
    expect(isError).toBe(true)
    expect(answer).toMatchObject({ code, error: expect.any(String) })
    if (suggestion !== undefined)
      expect(answer.errors.map((fault: { suggestion?: string }) => fault.suggestion)).toContain(suggestion)
    // It still answers.
    expect((await call(client, 'leaderboard')).isError).toBe(false)
  })
})

describe('without a key', () => {
  test.each(['submit_analysis', 'standing', 'my_analyses'])('%s says how to give one', async (name) => {
    const { isError, answer } = await call(plain, name)
    expect(isError).toBe(true)
    expect(answer).toMatchObject({ code: 'missing_key', suggestion: expect.stringContaining('MINTLAKE_KEY') })
  })

  test('a key may come from a file', async () => {
    const path = join(server.dataDir, 'agent.key')
    writeFileSync(path, `${key}\n`)
    const { client } = await connect(['--key-file', path])
    const { answer } = await call(client, 'submit_analysis', { mint: 'no' })
    expect(answer.code).toBe('validation_failed')
  })
})

describe('sql', () => {
  test('is there with a lake only', async () => {
    expect((await plain.listTools()).tools.map(({ name }) => name).toSorted()).toEqual(TOOLS)
  })

  test('answers columns and rows, and cuts what is too long', async () => {
    const client = keyed
    const few = await call(client, 'sql', { query: 'SELECT 1 AS one, NULL AS nothing' })
    expect(few.answer).toEqual({
      columns: [
        { name: 'one', type: 'INTEGER' },
        { name: 'nothing', type: expect.any(String) },
      ],
      rows: [[1, null]],
      truncated: false,
      missingFiles: 0,
    })
    const many = await call(client, 'sql', { query: 'FROM range(5000)', limit: 7 })
    expect(many.answer).toMatchObject({
      truncated: true,
      limited: expect.stringContaining('more than 7 rows'),
    })
    const digits = { query: 'SELECT 1/3 AS third, 123456789 AS whole' }
    expect((await call(client, 'sql', digits)).answer.rows).toEqual([[0.333_33, 123_456_789]])
    const large = {
      query: 'SELECT 1764288123.75::DOUBLE AS seconds, -123456.7::DOUBLE AS below, 12.345678 AS small',
    }
    expect((await call(client, 'sql', large)).answer.rows).toEqual([[1_764_288_124, -123_457, 12.346]])
    expect((await call(client, 'sql', { ...digits, detail: true })).answer.rows[0][0]).toBe(1 / 3)
    expect(many.answer.rows).toHaveLength(7)
    const wide = await call(client, 'sql', { query: "SELECT repeat('x', 100000) FROM range(100)" })
    expect(wide.answer.rows).toHaveLength(2)
    expect(wide.answer.limited).toContain('select fewer columns')
    const tables = await call(client, 'sql', { query: 'SHOW TABLES' })
    expect(tables.answer.rows.flat()).toContain('training')
  })

  test.each([
    ['CREATE TABLE lake.x AS SELECT 1', /read-only/],
    ["COPY (SELECT 1) TO '/tmp/out.csv'", /disabled/],
    ["SELECT * FROM read_csv('/etc/passwd')", /disabled|permission/i],
    ['SELEC 1', /syntax/],
  ])('%s is refused', async (query, sentence) => {
    const client = keyed
    const { isError, answer } = await call(client, 'sql', { query })
    expect(isError).toBe(true)
    expect(answer).toMatchObject({ code: 'invalid', error: expect.stringMatching(sentence) })
  })

  test('a query with a NUL is refused: DuckDB would read it up to there', async () => {
    const { isError, answer } = await call(keyed, 'sql', { query: 'SELECT 1 AS one\0, 2 AS two' })
    expect(isError).toBe(true)
    expect(answer).toMatchObject({ code: 'invalid', error: expect.stringMatching(/NUL/) })
  })

  test('a query that the caller gives up is ended', async () => {
    const client = keyed
    const controller = new AbortController()
    const endless = client.callTool(
      { name: 'sql', arguments: { query: 'SELECT count(*) FROM range(100000000) a, range(100000000) b' } },
      { signal: controller.signal },
    )
    // Queries run one after another: this one waits until that one has ended.
    const next = call(client, 'sql', { query: 'SELECT 2' })
    controller.abort()
    await expect(endless).rejects.toThrow()
    expect((await next).answer.rows).toEqual([[2]])
  })
})

test('a server that is away is told of, and does not end it', { tags: 'drill' }, async () => {
  const other = await openTestServer()
  const { client } = await connect([], {}, other.url)
  await other.remove()
  const { isError, answer } = await call(client, 'leaderboard')
  expect(isError).toBe(true)
  expect(answer).toMatchObject({ code: 'network_error', suggestion: expect.stringContaining('--url') })
})

test('a message that is too large ends it at once, with a sentence: behind it no call would be answered', async () => {
  const child = spawn(process.execPath, ['--no-warnings', PROGRAM, 'mcp', '--url', server.url])
  let errors = ''
  child.stderr.on('data', (chunk) => {
    errors += chunk
  })
  // It ends before it has read all.
  child.stdin.on('error', () => {})
  const params = { name: 'list_market', arguments: { search: 'x'.repeat(MESSAGE_BYTES_MAX) } }
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })}\n`)
  const [code] = await once(child, 'close')
  expect(code).toBe(1)
  expect(errors).toContain('mintlake: a message has more than 1 MiB: nothing behind it can be read\n')
})

test('it ends when its client does, and writes nothing beside the protocol', async () => {
  const { client, transport, errors } = await connect()
  const { pid } = transport
  await client.close()
  expect(() => process.kill(pid ?? 0, 0)).toThrow('ESRCH')
  expect(errors()).toBe('')
})
