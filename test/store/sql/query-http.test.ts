// SQL over HTTP: what it answers, what it refuses, what one query may use, and that nothing else suffers from it.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { QUERY_ROWS_MAX, SQL_CHARACTERS_MAX } from '../../../src/schema/api/lake.ts'
import {
  QUERIES_AT_ONCE,
  QUERIES_PER_KEY_MAX,
  QUERIES_WAITING_MAX,
  QUERY_RESULT_BYTES_MAX,
} from '../../../src/store/limits.ts'
import { NOON_MS, submission as rowsOf } from '../../store/support.ts'
import { expectProblem } from '../../support/submission.ts'
import { ADMIN_KEY, type Answer, openTestServer, type TestServer } from '../../support/test-server.ts'

const PATH = '/api/v1/query'
const ROWS = 50
/** Runs until it is ended: it counts up without an end. */
const ENDLESS = 'WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r'

/** The HTTP engine closes connections that are silent for ten seconds, unless an answer is under way. */
const LONGER_THAN_IDLE_MS = 12_000

let server: TestServer
let researcher: string

async function makeResearcher(of: TestServer, name: string): Promise<string> {
  const made = await of.client.post('/api/v1/admin/keys', { name, type: 'researcher' }, ADMIN_KEY)
  return made.body.data.key
}

const ask = (
  sql: string,
  more: object = {},
  headers: Record<string, string> = {},
  key = researcher,
): Promise<Answer> => server.client.post(PATH, { sql, ...more }, key, headers)

async function valuesOf(sql: string): Promise<unknown[]> {
  const answer = await ask(sql)
  expect(answer.status, answer.text).toBe(200)
  return answer.body.data.rows[0]
}

/** Resolves when `is` returns true. */
async function until(is: () => boolean): Promise<void> {
  while (!is()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** Process numbers of running queries, from the list of all processes. */
const queryProcesses = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const [, parent] = /\) \S (\d+)/.exec(readFileSync(`/proc/${name}/stat`, 'utf8')) ?? []
        const command = readFileSync(`/proc/${name}/cmdline`, 'utf8')
        return Number(parent) === process.pid && command.includes('query-process')
      } catch {
        return false
      }
    })
    .map(Number)

/** The one that runs, once there is one. While it replaces its program a process has no command line. */
async function queryProcess(): Promise<number> {
  let found: number[] = []
  await until(() => {
    found = queryProcesses()
    return found.length === 1
  })
  return found[0]!
}

/** Checks that no query runs, and that none has left a file. */
async function expectTidy(of = server): Promise<void> {
  await until(() => of.queries.running + of.queries.waiting === 0)
  const folder = join(of.dataDir, 'query.tmp')
  expect(existsSync(folder) ? readdirSync(folder) : []).toEqual([])
}

beforeAll(async () => {
  server = await openTestServer()
  researcher = await makeResearcher(server, 'Rosalind')
  const rows = Array.from({ length: ROWS }, (_, n) =>
    rowsOf(`an_${n}`, {
      mint: `mint-${n % 5}`,
      submitted_at: NOON_MS + n * 1_000,
      summary: `says "${n}", and`,
    }),
  )
  await server.store.commit(rows.flat())
  await server.store.flushLake()
})
afterAll(() => server.remove())

describe('the rows', () => {
  it('are JSON with names and types of their columns', async () => {
    const { status, body, headers } = await ask(
      'SELECT mint, count(*) AS n FROM training GROUP BY mint ORDER BY mint LIMIT 2',
    )
    expect(status).toBe(200)
    expect(body).toMatchObject({
      ok: true,
      data: {
        columns: [
          { name: 'mint', type: 'VARCHAR' },
          { name: 'n', type: 'BIGINT' },
        ],
        rows: [
          ['mint-0', 10],
          ['mint-1', 10],
        ],
      },
      meta: { rows: 2, truncated: false, missingFiles: 0 },
    })
    expect(headers.get('cache-control')).toBe('no-store')
    expect((await ask('SELECT 1', {}, {}, ADMIN_KEY)).body.data.rows).toEqual([[1]])
  })

  it('are CSV where that is asked for', async () => {
    const sql = `SELECT summary, NULL AS nothing, '' AS empty, [1, 2] AS list FROM training ORDER BY submitted_at LIMIT 2`
    const csv = 'summary,nothing,empty,list\n"says ""0"", and",,"","[1,2]"\n"says ""1"", and",,"","[1,2]"\n'
    const asked = await server.client.post(`${PATH}?format=csv`, { sql }, researcher)
    expect(asked.text).toBe(csv)
    expect(asked.headers.get('content-disposition')).toBe('attachment; filename="query.csv"')
    expect(asked.headers.get('x-result-count')).toBe('2')
    expect(asked.headers.get('x-more')).toBe('false')
    const accepted = await ask(sql, { limit: 1 }, { Accept: 'text/csv' })
    expect(accepted.text).toBe(csv.split('\n').slice(0, 2).join('\n').concat('\n'))
    expect(accepted.headers.get('x-more')).toBe('true')
  })

  it('keep their exact values, as numbers where JSON can hold them', async () => {
    expect(
      await valuesOf(`SELECT 9007199254740993, -1, 170141183460469231731687303715884105727, 1.5::DECIMAL(9,2),
        123456789012345678.25::DECIMAL(38,2), 'nan'::DOUBLE, '-inf'::DOUBLE, 1e-9, -0.0::DOUBLE, NULL, true`),
    ).toEqual([
      '9007199254740993',
      -1,
      '170141183460469231731687303715884105727',
      1.5,
      '123456789012345678.25',
      'NaN',
      '-Infinity',
      1e-9,
      0,
      null,
      true,
    ])
    expect(
      await valuesOf(`SELECT TIMESTAMP '2026-01-02 03:04:05.678901', TIMESTAMPTZ '2026-01-02 03:04:05+01', DATE '2026-01-02',
        'infinity'::TIMESTAMP, INTERVAL '1 month 2 days', '\\x00A\\xFF'::BLOB, [1, NULL], {'a': [{'b': 9007199254740993}]},
        MAP {'k': 1}, union_value(u := 2), 'a' || chr(0) || '🦆', '6f1e6c0a-0000-4000-8000-000000000000'::UUID`),
    ).toEqual([
      '2026-01-02 03:04:05.678901',
      '2026-01-02 02:04:05+00',
      '2026-01-02',
      'infinity',
      { months: 1, days: 2, micros: '0' },
      '\\x00A\\xFF',
      [1, null],
      { a: [{ b: '9007199254740993' }] },
      [{ key: 'k', value: 1 }],
      { tag: 'u', value: 2 },
      'a\u0000🦆',
      '6f1e6c0a-0000-4000-8000-000000000000',
    ])
    const { body } = await ask('SELECT 1 AS a, 2 AS a')
    expect(body.data.columns.map(({ name }: { name: string }) => name)).toEqual(['a', 'a:1'])
  })

  it('are as many as were asked for, and the answer says whether there are more', async () => {
    const some = await ask('FROM range(100)', { limit: 7 })
    expect(some.body.meta).toMatchObject({ rows: 7, truncated: true })
    expect((await ask('FROM range(7)', { limit: 7 })).body.meta).toMatchObject({ rows: 7, truncated: false })
    expect((await ask('FROM range(0)')).body.data.rows).toEqual([])
    const most = await ask('FROM range(1e9::BIGINT)', { limit: QUERY_ROWS_MAX })
    expect(most.body.meta).toMatchObject({ rows: QUERY_ROWS_MAX, truncated: true })
  })

  it('are as many as an answer may have bytes', { tags: 'drill' }, async () => {
    const answer = await ask(`SELECT repeat('é', 100000) FROM range(1000)`)
    expect(answer.body.meta.truncated).toBe(true)
    expect(answer.body.meta.rows).toBe(Math.floor(QUERY_RESULT_BYTES_MAX / 200_003))
    expectProblem(await ask(`SELECT repeat('x', 5000000)`), 'query_too_costly')
  })

  it('come from several statements, temporary tables and plans too', { tags: 'drill' }, async () => {
    expect(await valuesOf('CREATE TEMP TABLE t AS SELECT 41 AS n; SELECT n + 1 FROM t')).toEqual([42])
    expect((await ask('SHOW TABLES')).text).toContain('training')
    expect((await ask('EXPLAIN ANALYZE SELECT mint FROM training')).text).toContain('training')
    // Another query knows nothing of the table.
    expectProblem(await ask('FROM t'), 'query_failed')
  })
})

describe('a request is refused', () => {
  it('without the key of a researcher or the operator', async () => {
    expectProblem(await server.client.post(PATH, { sql: 'SELECT 1' }), 'missing_key')
    expectProblem(await ask('SELECT 1', {}, {}, 'wrong'), 'invalid_key')
    expectProblem(await ask('SELECT 1', {}, {}, await server.client.register()), 'key_not_allowed')
  })

  it.each([
    [{}, '/sql', 'is missing'],
    [{ sql: '' }, '/sql', 'must have at least 1 character'],
    [{ sql: 7 }, '/sql', 'must be a string'],
    [{ sql: 'SELECT 1\0' }, '/sql', 'must not have a NUL character'],
    [
      { sql: 'x'.repeat(SQL_CHARACTERS_MAX + 1) },
      '/sql',
      `must have at most ${SQL_CHARACTERS_MAX} characters`,
    ],
    [{ sql: 'SELECT 1', limit: 0 }, '/limit', 'must be at least 1'],
    [{ sql: 'SELECT 1', limit: 1.5 }, '/limit', 'must be a whole number'],
    [{ sql: 'SELECT 1', limit: QUERY_ROWS_MAX + 1 }, '/limit', `must be at most ${QUERY_ROWS_MAX}`],
  ])('with a body that is none: %#', async (body, pointer, message) => {
    const answer = await server.client.post(PATH, body, researcher)
    expectProblem(answer, 'validation_failed', pointer)
    expect(answer.body).toMatchObject({ error: `${pointer} ${message}.`, errors: [{ message }] })
  })

  it('with text that is no JSON, too long, or for another format', async () => {
    expectProblem(await server.client.post(PATH, 'SELECT 1', researcher), 'invalid_json')
    expectProblem(await server.client.post(PATH, '[1]', researcher), 'validation_failed')
    expectProblem(await ask('x'.repeat(70_000)), 'payload_too_large')
    expectProblem(await ask('SELECT 1', {}, { Accept: 'image/png' }), 'not_acceptable')
    expectProblem(
      await server.client.post(`${PATH}?format=xml`, { sql: '' }, researcher),
      'invalid_parameter',
    )
    expectProblem(await server.client.get(PATH), 'method_not_allowed')
  })
})

it('a query that is wrong or forbidden is told why', async () => {
  const wrong: [string, RegExp][] = [
    ['SELEC 1', /syntax error/],
    [`SELECT 'x'::INTEGER`, /Could not convert/],
    [`SELECT error('No such file')`, /No such file/],
    [`SELECT error('Cannot open file')`, /Cannot open file/],
    [' ; -- nothing', /no query/],
    [`${'('.repeat(8_000)}1`, /./],
    [`FROM read_csv('/etc/passwd')`, /disabled by configuration/],
    [`COPY training TO '/tmp/made.parquet'`, /disabled by configuration/],
    [`SET memory_limit = '9GB'`, /locked/],
    [`SELECT getenv('MINTLAKE_ADMIN_KEY')`, /getenv/],
  ]
  // Two keys, each with as many places as it needs.
  for (let at = 0; at < wrong.length; at += 4) {
    const answers = wrong.slice(at, at + 4).map(async ([sql, why], nth) => {
      const answer = await ask(sql, {}, {}, nth % 2 === 0 ? researcher : ADMIN_KEY)
      expectProblem(answer, 'query_failed')
      expect(answer.body.error).toMatch(why)
    })
    await Promise.all(answers)
  }
})

it.each([
  ['texts', `SELECT count(repeat('x', 5000000 + range::INTEGER)) OVER () FROM range(100000)`],
  ['one text', `SELECT length(repeat('x', 2000000000) || 'y')`],
  ['a list', 'SELECT list_sum(range(2000000000))'],
  [
    'a cross join',
    `SELECT a.range || repeat('z', 1000) AS t FROM range(100000) a, range(100000) b ORDER BY hash(t)`,
  ],
])('a query that needs more memory than it may is ended: %s', { tags: 'drill' }, async (_, sql) => {
  expectProblem(await ask(sql), 'query_too_costly')
  await expectTidy()
})

describe('a query that runs long', () => {
  const limits = [
    { msMax: 200, tags: [] },
    { msMax: LONGER_THAN_IDLE_MS, tags: ['drill'] },
  ]
  for (const { msMax, tags } of limits)
    it(`ends at its time limit of ${msMax} ms, its connection still open`, { tags }, async () => {
      const strict = await openTestServer({}, { tuning: { queries: { msMax } } })
      expectProblem(await strict.client.post(PATH, { sql: ENDLESS }, ADMIN_KEY), 'query_too_costly')
      await expectTidy(strict)
      const { text } = await strict.client.get('/metrics')
      expect(text).toContain('mintlake_queries_total{outcome="query_too_costly"} 1')
      await strict.remove()
    })

  it('ends with its client, and holds up neither the server nor the lake', async () => {
    const body = JSON.stringify({ sql: ENDLESS })
    await until(() => queryProcesses().length === 0)
    const asked = request(`${server.url}${PATH}`, {
      method: 'POST',
      headers: { 'X-API-Key': researcher, 'Content-Type': 'application/json' },
    })
    asked.on('error', () => {})
    asked.end(body)
    const pid = await queryProcess()
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toMatch(/MINTLAKE|KEY=/)
    expect((await server.client.get('/readyz')).status).toBe(200)
    await server.store.commit(rowsOf('an_meanwhile', { submitted_at: NOON_MS }))
    await server.store.flushLake()
    expect(await valuesOf(`SELECT count(*) FROM training WHERE analysis_id = 'an_meanwhile'`)).toEqual([1])
    await until(() => server.queries.running === 1)
    asked.destroy()
    await expectTidy()
    await until(() => queryProcesses().length === 0)
  })

  it('is told of where its process ends by itself', async () => {
    const answer = ask(ENDLESS)
    process.kill(await queryProcess(), 'SIGKILL')
    expectProblem(await answer, 'query_too_costly')
    await expectTidy()
  })

  it('takes one place of few, and others wait or are refused', async () => {
    const keys = [
      researcher,
      ADMIN_KEY,
      ...(await Promise.all(['a', 'b'].map((name) => makeResearcher(server, name)))),
    ]
    const abort = new AbortController()
    const places = QUERIES_AT_ONCE + QUERIES_WAITING_MAX
    const begun = Array.from({ length: places }, (_, at) =>
      fetch(`${server.url}${PATH}`, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${keys[Math.floor(at / QUERIES_PER_KEY_MAX)]}`,
          'Content-Type': 'application/json',
        },
        body: JSON.stringify({ sql: ENDLESS }),
        signal: abort.signal,
      }).catch(() => null),
    )
    await until(() => server.queries.running + server.queries.waiting === places)
    expect(server.queries.running).toBe(QUERIES_AT_ONCE)
    const refused = await ask('SELECT 1')
    expectProblem(refused, 'overloaded')
    expect(refused.body.error).toContain('of this key')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expectProblem(await ask('SELECT 1', {}, {}, keys[3]), 'overloaded')
    abort.abort()
    await Promise.all(begun)
    await expectTidy()
    expect(await valuesOf('SELECT 1')).toEqual([1])
  })

  it('takes a place of its key, however the key is written', async () => {
    const own = await openTestServer()
    const key = await makeResearcher(own, 'other')
    const spellings: Record<string, string>[] = [
      { Authorization: `Bearer ${key}` },
      { Authorization: `bearer ${key}` },
      { Authorization: `BEARER   ${key}` },
      { Authorization: `bEaReR\t${key}` },
      { 'X-API-Key': key },
    ]
    const abort = new AbortController()
    const post = (sql: string, headers: Record<string, string>) =>
      fetch(`${own.url}${PATH}`, {
        method: 'POST',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body: JSON.stringify({ sql }),
        signal: abort.signal,
      })
    const begun = Array.from({ length: QUERIES_PER_KEY_MAX }, (_, at) =>
      post(ENDLESS, spellings[at % spellings.length]).catch(() => null),
    )
    await until(() => own.queries.running + own.queries.waiting === QUERIES_PER_KEY_MAX)
    for (const headers of spellings) expect((await post('SELECT 1', headers)).status).toBe(503)
    abort.abort()
    await Promise.all(begun)
    await expectTidy(own)
    await own.remove()
  })

  it('that waits too long for its place is refused', { tags: 'drill' }, async () => {
    const busy = await openTestServer({}, { tuning: { queries: { waitMsMax: 50, drainMs: 50 } } })
    const key = await makeResearcher(busy, 'other')
    const running = Array.from({ length: QUERIES_AT_ONCE }, () =>
      busy.client.post(PATH, { sql: ENDLESS }, ADMIN_KEY),
    )
    await until(() => busy.queries.running === QUERIES_AT_ONCE)
    expectProblem(await busy.client.post(PATH, { sql: 'SELECT 1' }, key), 'overloaded')
    // A server that stops does not wait for them.
    await busy.remove()
    for (const answer of await Promise.all(running)) expectProblem(answer, 'store_unavailable')
    expect(existsSync(join(busy.dataDir, 'query.tmp'))).toBe(false)
  })
})

it('the API description has body, answers and errors', async () => {
  const { post } = (await server.client.get('/openapi.json')).body.paths[PATH]
  expect(Object.keys(post.responses['200'].content)).toEqual(['application/json', 'text/csv'])
  expect(post.security).toEqual([{ bearer: [] }, { apiKey: [] }])
  for (const status of ['400', '401', '403', '406', '413', '422', '503'])
    expect(Object.keys(post.responses)).toContain(status)
})
