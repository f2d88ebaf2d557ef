// Exports of the training set over HTTP: every row of the catalog once, also for clients that stall or disconnect.
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { tableFromIPC } from 'apache-arrow'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TABLES } from '../../../src/schema/tables.ts'
import { Exports } from '../../../src/store/export/exports.ts'
import { EXPORT_CHUNKS_AHEAD, EXPORTS_AT_ONCE } from '../../../src/store/limits.ts'
import { NOON_MS, quietLog, readSql, removeFolder, submission as rowsOf } from '../../store/support.ts'
import { expectProblem, seedToken, submission, submit } from '../../support/submission.ts'
import {
  ADMIN_KEY,
  checkedFetch,
  openTestServer,
  type TestServer,
  temporaryFolder,
} from '../../support/test-server.ts'

const PATH = '/api/v1/training/export'
const FILES = 5
/** Enough for a merge of eight files. */
const ROUNDS = 5
const FILE_ROWS = 400
const ROWS = FILES * FILE_ROWS
/** Long enough that a few thousand rows fill all buffers between server and client. */
const SUMMARY = 'x'.repeat(2_000)

let server: TestServer
let researcher: string
let folder: string

const idOf = (n: number): string => `an_${String(n).padStart(6, '0')}`
const exampleOf = (n: number) =>
  rowsOf(idOf(n), {
    mint: `mint-${n % 7}`,
    submitted_at: NOON_MS + n * 1_000,
    summary: SUMMARY,
    price_usd: n % 5 === 0 ? null : n * 4.5e-9,
  })

async function commitRows(from: number, count: number): Promise<void> {
  await server.store.commit(Array.from({ length: count }, (_, index) => exampleOf(from + index)).flat())
}

beforeAll(async () => {
  folder = temporaryFolder()
  const left = join(folder, 'export.tmp', '7')
  mkdirSync(left, { recursive: true })
  writeFileSync(join(left, 'training.parquet'), 'of a crash')
  server = await openTestServer(
    { 'lake-tidy': 'grace-ms=0' },
    { tuning: { exports: { waitMsMax: 2_000, drainMs: 100 } } },
    folder,
  )
  const made = await server.client.post(
    '/api/v1/admin/keys',
    { name: 'Rosalind', type: 'researcher' },
    ADMIN_KEY,
  )
  researcher = made.body.data.key
  for (let from = 0; from < ROWS; from += FILE_ROWS) {
    await commitRows(from, FILE_ROWS)
    await server.store.flushLake()
  }
})
afterAll(() => server.remove())

interface Page {
  status: number
  headers: Headers
  bytes: Buffer
}

async function fetchPage(
  query: string,
  key = researcher,
  headers: Record<string, string> = {},
): Promise<Page> {
  const response = await checkedFetch(`${server.url}${PATH}${query}`, {
    headers: { Authorization: `Bearer ${key}`, ...headers },
  })
  return {
    status: response.status,
    headers: response.headers,
    bytes: Buffer.from(await response.arrayBuffer()),
  }
}

const idsOf = (arrow: Buffer): string[] => [...tableFromIPC(arrow).getChild('analysis_id')!] as string[]
const catalog = (sql: string) =>
  readSql(sql, `ATTACH '${join(server.dataDir, 'lake', 'catalog.duckdb')}' AS lake (READ_ONLY)`, 'USE lake')
const plain = (value: unknown): unknown => {
  if (typeof value === 'bigint') return Number(value)
  if (value instanceof Date) return value.getTime()
  return typeof value === 'object' && value !== null ? [...(value as Iterable<unknown>)] : value
}
const plainRows = (rows: Iterable<object>) =>
  [...rows]
    .map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)])))
    .sort((a, b) => String(a.analysis_id).localeCompare(String(b.analysis_id)))

/** Resolves when `is` returns true. */
async function until(is: () => boolean): Promise<void> {
  while (!is()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** A client that reads only the headers. */
async function stalled(query: string): Promise<IncomingMessage> {
  const request = get(`${server.url}${PATH}${query}`, { headers: { 'X-API-Key': researcher }, agent: false })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.pause()
  response.on('error', () => {})
  return response
}

/** Checks that no export runs and that no file of one is left. */
async function expectTidy(): Promise<void> {
  await until(() => server.exports.running === 0)
  const at = join(server.dataDir, 'export.tmp')
  expect(existsSync(at) ? readdirSync(at) : []).toEqual([])
}

describe('the exported rows', () => {
  it('are those of the catalog as Parquet', async () => {
    const { status, headers, bytes } = await fetchPage('?format=parquet')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/vnd.apache.parquet')
    expect(headers.get('x-result-count')).toBe(`${ROWS}`)
    expect(headers.get('x-more')).toBe('false')
    const path = join(folder, 'page.parquet')
    writeFileSync(path, bytes)
    const [differences] = await catalog(
      `SELECT (SELECT count(*) FROM '${path}')::INTEGER AS rows,
         (SELECT count(*) FROM (FROM training EXCEPT ALL FROM '${path}'))::INTEGER AS missing`,
    )
    expect(differences).toEqual({ rows: ROWS, missing: 0 })
    await expectTidy()
  })

  it('are those of the catalog as Arrow, asked for by Accept', async () => {
    const { headers, bytes } = await fetchPage('', researcher, {
      Accept: 'application/vnd.apache.arrow.stream',
    })
    expect(headers.get('content-type')).toBe('application/vnd.apache.arrow.stream')
    const table = tableFromIPC(bytes)
    expect(table.schema.fields.map(({ name }) => name)).toEqual(
      TABLES.training.columns.map(({ name }) => name),
    )
    expect(table.numRows).toBe(ROWS)
    const rows = [...table].map((row) => row.toJSON()).filter(({ mint }) => mint === 'mint-3')
    expect(plainRows(rows)).toEqual(plainRows(await catalog("FROM training WHERE mint = 'mint-3'")))
  })

  it('are those of a time range if one is given', async () => {
    const { headers, bytes } = await fetchPage(
      `?format=arrow&from=${NOON_MS + 10_000}&to=${NOON_MS + 20_000}`,
    )
    expect(headers.get('x-result-count')).toBe('10')
    expect(idsOf(bytes).sort()).toEqual(Array.from({ length: 10 }, (_, index) => idOf(10 + index)))
  })

  it.each(['parquet', 'arrow'])('can be none: %s is a complete file all the same', async (format) => {
    const { status, headers, bytes } = await fetchPage(`?format=${format}&from=1&to=2&since=77`)
    expect(status).toBe(200)
    expect(headers.get('x-result-count')).toBe('0')
    expect(headers.get('x-next-since')).toBe('77')
    expect(bytes.length).toBeGreaterThan(0)
    if (format === 'arrow') expect(tableFromIPC(bytes).numRows).toBe(0)
  })
})

describe('the key for an export', () => {
  it('must be that of a researcher or an operator', async () => {
    expect((await fetchPage('?format=arrow&limit=1', ADMIN_KEY)).status).toBe(200)
    expectProblem(await server.client.get(PATH), 'missing_key')
    expectProblem(await server.client.get(PATH, { Authorization: 'Bearer wrong' }), 'invalid_key')
    const agent = await server.client.register()
    expectProblem(await server.client.get(PATH, { Authorization: `Bearer ${agent}` }), 'key_not_allowed')
  })
})

it.each(['since=yesterday', 'since=1.a%27b', 'limit=0', 'from=x', 'format=csv'])(
  'refuses an export with %s',
  async (query) => {
    const [name] = query.split('=')
    const answer = await server.client.get(`${PATH}?${query}`, { 'X-API-Key': researcher })
    expectProblem(answer, 'invalid_parameter', `/${name}`)
  },
)

it('the API description has the formats, headers and parameters of exports', async () => {
  const { get: operation } = (await server.client.get('/openapi.json')).body.paths[PATH]
  const { content, headers } = operation.responses['200']
  expect(Object.keys(content)).toEqual([
    'application/vnd.apache.parquet',
    'application/vnd.apache.arrow.stream',
  ])
  expect(Object.keys(headers)).toEqual(expect.arrayContaining(['X-Result-Count', 'X-Next-Since', 'X-More']))
  const names = operation.parameters.map(({ name }: { name: string }) => name)
  expect(names).toEqual(expect.arrayContaining(['format', 'from', 'to', 'since', 'limit']))
  expect(operation.security).toEqual([{ bearer: [] }, { apiKey: [] }])
})

it('HEAD answers with the headers only', async () => {
  const response = await checkedFetch(`${server.url}${PATH}?limit=5`, {
    method: 'HEAD',
    headers: { 'X-API-Key': researcher },
  })
  expect(response.headers.get('x-result-count')).toBe('5')
  await expectTidy()
})

describe('an export', () => {
  it('reads only a few chunks ahead of a client that stalls, and sends every row once it continues', async () => {
    const job = server.exports.begin({ format: 'arrow', fromMs: null, toMs: null, since: null, limit: ROWS })
    await job.head
    await until(() => server.exports.held.chunks === EXPORT_CHUNKS_AHEAD)
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(server.exports.held.chunks).toBe(EXPORT_CHUNKS_AHEAD)
    const chunks: Buffer[] = []
    for (let chunk = await job.next(); chunk !== null; chunk = await job.next()) chunks.push(chunk)
    const bytes = Buffer.concat(chunks)
    expect(idsOf(bytes)).toHaveLength(ROWS)
    expect(chunks.length).toBeGreaterThan(EXPORT_CHUNKS_AHEAD + 2)
    await expectTidy()
  })

  it('sends the full body to a client that stalls for a moment', async () => {
    const response = await stalled('?format=arrow')
    expect(idsOf(Buffer.concat(await response.toArray()))).toHaveLength(ROWS)
  })

  it('is aborted when it takes too long', async () => {
    const dataDir = temporaryFolder()
    const exporter = new Exports({ dataDir, log: quietLog }, { msMax: 1 })
    const job = exporter.begin({ format: 'arrow', fromMs: null, toMs: null, since: null, limit: ROWS })
    await expect(job.head).rejects.toThrow('took too long')
    await exporter.close()
    removeFolder(dataDir)
  })

  it.each(['parquet', 'arrow'])('stops when its client disconnects in the middle of %s', async (format) => {
    const response = await stalled(`?format=${format}`)
    response.destroy()
    await expectTidy()
  })

  it('fails with a clear error when the disk has no room for its file; a stream needs no room', async () => {
    const exporter = new Exports({ dataDir: server.dataDir, log: quietLog, diskReserveMb: 2 ** 40 })
    const whole = { fromMs: null, toMs: null, since: null, limit: ROWS }
    await expect(exporter.begin({ ...whole, format: 'parquet' }).head).rejects.toThrow('the disk has')
    const job = exporter.begin({ ...whole, format: 'arrow' })
    expect((await job.head).rows).toBe(ROWS)
    job.stop()
    await exporter.close()
  })

  it('stops when its client disconnects before the answer', async () => {
    const request = get(`${server.url}${PATH}`, { headers: { 'X-API-Key': researcher }, agent: false })
    request.on('error', () => {})
    await until(() => server.exports.running === 1)
    request.destroy()
    await expectTidy()
  })

  it('waits where the one before has ended for its client, and has still to be cleared away', {
    tags: 'drill',
  }, async () => {
    const readAll = async (format: string) => {
      for (let [since, more] = ['', 'true']; more === 'true'; ) {
        const { status, headers } = await fetchPage(
          `?limit=200&format=${format}${since && `&since=${since}`}`,
        )
        expect(status).toBe(200)
        since = headers.get('x-next-since')!
        more = headers.get('x-more')!
      }
    }
    await Promise.all(Array.from({ length: EXPORTS_AT_ONCE }, () => readAll('parquet')))
    await expectTidy()
  })

  it('is refused with Retry-After when the maximum number is running', async () => {
    const others = await Promise.all(Array.from({ length: EXPORTS_AT_ONCE }, () => stalled('?format=arrow')))
    const refused = await server.client.get(PATH, { 'X-API-Key': researcher })
    expectProblem(refused, 'store_unavailable')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    for (const response of others) response.destroy()
    await expectTidy()
    expect((await fetchPage('?limit=1')).status).toBe(200)
  })
})

describe('continuing with X-Next-Since', () => {
  it('returns every row once while the server writes, merges and removes replaced files', {
    tags: 'drill',
    timeout: 120_000,
  }, async () => {
    const seen: string[] = []
    let since = ''
    let written = ROWS
    let [merged, removed] = [0, 0]
    let isWriting = true
    let onShown = () => {}
    let shown = new Promise<void>((resolve) => {
      onShown = resolve
    })
    const write = async () => {
      for (let round = 1; round <= ROUNDS; round++) {
        await commitRows(written, 50 + round)
        written += 50 + round
        await server.store.flushLake()
        const tidied = await server.store.compactLake()
        merged += tidied.merged
        removed += tidied.removed
        isWriting = round < ROUNDS
        onShown()
        shown = new Promise<void>((resolve) => {
          onShown = resolve
        })
      }
    }
    const read = async () => {
      for (let isLast = false; !isLast; ) {
        const [wasWriting, nextShown] = [isWriting, shown]
        const page = await fetchPage(`?format=arrow&limit=900${since && `&since=${since}`}`).catch(() => null)
        // Files were removed during this request, so it is repeated.
        if (page?.status !== 200) continue
        const { headers, bytes } = page
        const ids = idsOf(bytes)
        expect(ids.length).toBe(Number(headers.get('x-result-count')))
        seen.push(...ids)
        since = headers.get('x-next-since')!
        isLast = headers.get('x-more') === 'false' && !wasWriting
        if (headers.get('x-more') === 'false' && !isLast) await nextShown
      }
    }
    await Promise.all([write(), read()])
    expect(merged).toBeGreaterThan(0)
    expect(removed).toBeGreaterThan(0)
    expect(seen.sort()).toEqual(Array.from({ length: written }, (_, index) => idOf(index)))
  })
})

it('submissions are accepted while exports run', async () => {
  const mints = await Promise.all(Array.from({ length: 8 }, () => seedToken(server.client, Date.now())))
  const key = await server.client.register()
  let isSubmitting = true
  const exporting = (async () => {
    let exports = 0
    for (; isSubmitting || exports === 0; exports++)
      expect((await fetchPage('?format=parquet')).status).toBe(200)
  })()
  const ids: string[] = []
  for (const mint of mints) {
    const { status, body } = await submit(server.client, key, submission(mint))
    expect(status).toBe(201)
    ids.push(body.analysisId)
  }
  isSubmitting = false
  await exporting
  await server.store.flushLake()
  const { bytes } = await fetchPage(`?format=arrow&from=${NOON_MS + 86_400_000}`)
  expect(idsOf(bytes).sort()).toEqual(ids.sort())
})

it('a server that stops aborts a body that is not read, so that it does not look complete', async () => {
  const response = await stalled('?format=arrow')
  await server.stop()
  // Only now: a client that reads while the server stops may still get everything.
  await expect(response.toArray()).rejects.toThrow()
  expect(existsSync(join(server.dataDir, 'export.tmp'))).toBe(false)
})
