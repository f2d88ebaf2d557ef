// The lake over HTTP: its list of files, and files in ranges, as Parquet readers on other machines ask for them.
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { get, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { nextTurn } from '../../../src/lib/wait.ts'
import { LakeFileServer } from '../../../src/store/download/downloads.ts'
import {
  DOWNLOAD_CHUNK_BYTES,
  DOWNLOAD_READ_MS_MAX,
  DOWNLOADS_AT_ONCE,
  LAKE_GRACE_MS_DEFAULT,
} from '../../../src/store/limits.ts'
import { NOON_MS, readSql, removeFolder, submission as rowsOf } from '../../store/support.ts'
import { SteppedClock } from '../../support/clock.ts'
import { expectProblem } from '../../support/submission.ts'
import {
  ADMIN_KEY,
  type Answer,
  openTestServer,
  type TestServer,
  temporaryFolder,
} from '../../support/test-server.ts'

const CATALOG = '/api/v1/lake/catalog'
const ROWS = 500
const COMMITS = 8
/** Does not compress: the file is larger than all buffers between server and client. */
const SUMMARY_BYTES = 3_000

let server: TestServer
let agent: string
let researcher: string
let folder: string

interface CatalogFile {
  name: string
  path: string
  rows: number
  bytes: number
  sha256: string
  dt: string
}

async function fill({ store }: TestServer): Promise<void> {
  for (let commit = 0; commit < COMMITS; commit++) {
    const rows = Array.from({ length: ROWS }, (_, index) =>
      rowsOf(`an_${commit * ROWS + index}`, {
        submitted_at: NOON_MS + index,
        summary: randomBytes(SUMMARY_BYTES).toString('base64'),
      }),
    )
    await store.commit(rows.flat())
  }
  await store.flushLake()
}

beforeAll(async () => {
  folder = temporaryFolder()
  server = await openTestServer()
  agent = await server.client.register()
  const made = await server.client.post('/api/v1/admin/keys', { name: 'Lab', type: 'researcher' }, ADMIN_KEY)
  researcher = made.body.data.key
  await fill(server)
})
afterAll(async () => {
  await server.remove()
  removeFolder(folder)
})

const read = (path: string, headers: Record<string, string> = {}, key = researcher): Promise<Answer> =>
  server.client.get(path, { Authorization: `Bearer ${key}`, ...headers })

async function bytesOf(path: string, headers: Record<string, string> = {}) {
  const answer = await fetch(server.url + path, {
    headers: { Authorization: `Bearer ${researcher}`, ...headers },
  })
  return { status: answer.status, headers: answer.headers, bytes: Buffer.from(await answer.arrayBuffer()) }
}

async function filesOf(table: string): Promise<CatalogFile[]> {
  const { body } = await read(`${CATALOG}?table=${table}`)
  expect(body.data.tables).toHaveLength(1)
  return body.data.tables[0].files
}

async function trainingFile(): Promise<CatalogFile & { content: Buffer }> {
  const [file] = await filesOf('training')
  const listed = (await server.store.lakeFiles()).find(({ name }) => name === file.name)!
  return { ...file, content: readFileSync(listed.path) }
}

describe('the catalog', () => {
  it('lists every table, and its files hold every row of the lake, with their hashes', async () => {
    const { body, headers } = await read(CATALOG)
    expect(headers.get('cache-control')).toContain('private')
    const tables: { table: string; rows: number; files: CatalogFile[] }[] = body.data.tables
    expect(tables.map(({ table }) => table)).toEqual(
      expect.arrayContaining(['training', 'outcomes', 'bars', 'tokens', 'rejections', 'xp_ledger']),
    )
    for (const { table, rows, files } of tables) {
      const paths: string[] = []
      for (const file of files) {
        const { bytes, status } = await bytesOf(file.path)
        expect(status).toBe(200)
        expect(createHash('sha256').update(bytes).digest('hex')).toBe(file.sha256)
        expect(bytes.length).toBe(file.bytes)
        paths.push(join(folder, file.name))
        writeFileSync(join(folder, file.name), bytes)
      }
      if (files.length === 0) continue
      const quoted = paths.map((path) => `'${path}'`).join(', ')
      expect(await readSql(`SELECT count(*)::INT AS n FROM read_parquet([${quoted}])`), table).toEqual([
        { n: rows },
      ])
    }
    expect(tables.find(({ table }) => table === 'training')!.rows).toBe(ROWS * COMMITS)
  })

  it('tells which columns decide where only the newest row of a key counts', async () => {
    const { body } = await read(`${CATALOG}?table=outcomes`)
    expect(body.data.tables[0]).toMatchObject({
      latestBy: ['analysis_id'],
      newestBy: ['label_available_at', 'known_at'],
    })
    expectProblem(await read(`${CATALOG}?table=agents`), 'invalid_parameter', '/table')
  })

  it('is for researchers and the operator alone, as are the files', async () => {
    const { path } = await trainingFile()
    for (const each of [CATALOG, path]) {
      expectProblem(await server.client.get(each), 'missing_key')
      expectProblem(await read(each, {}, agent), 'key_not_allowed')
      expect((await read(each, {}, ADMIN_KEY)).status).toBe(200)
    }
  })
})

describe('a file', () => {
  it('is served in any range, each with its place in the file', async () => {
    const { path, content } = await trainingFile()
    expect(content.length).toBeGreaterThan(8 * DOWNLOAD_CHUNK_BYTES)
    const size = content.length
    const range = fc.oneof(
      fc.tuple(fc.nat(size - 1), fc.nat(2 * DOWNLOAD_CHUNK_BYTES)).map(([first, more]) => ({
        header: `bytes=${first}-${first + more}`,
        first,
        last: Math.min(first + more, size - 1),
      })),
      fc.nat(size - 1).map((first) => ({ header: `bytes=${first}-`, first, last: size - 1 })),
      fc.integer({ min: 1, max: 2 * size }).map((count) => ({
        header: `bytes=-${count}`,
        first: Math.max(0, size - count),
        last: size - 1,
      })),
    )
    await fc.assert(
      fc.asyncProperty(range, async ({ header, first, last }) => {
        const { status, headers, bytes } = await bytesOf(path, { Range: header })
        expect(status).toBe(206)
        expect(headers.get('content-range')).toBe(`bytes ${first}-${last}/${size}`)
        expect(headers.get('content-length')).toBe(String(last - first + 1))
        expect(bytes.equals(content.subarray(first, last + 1))).toBe(true)
      }),
      { numRuns: 30 },
    )
  })

  it('tells its length and that it has ranges to HEAD, without a body', async () => {
    const { path, bytes, sha256 } = await trainingFile()
    const head = request(server.url + path, {
      method: 'HEAD',
      headers: { Authorization: `Bearer ${researcher}` },
    }).end()
    const [answer] = (await once(head, 'response')) as [IncomingMessage]
    answer.resume()
    expect(answer.statusCode).toBe(200)
    expect(answer.headers).toMatchObject({
      'content-length': String(bytes),
      'accept-ranges': 'bytes',
      etag: `"${sha256}"`,
      'content-type': 'application/vnd.apache.parquet',
    })
  })

  it.each(['bytes=5-4', 'bytes=-', 'lines=1-2', 'bytes=0-1,5-6', 'bytes=a-b'])(
    'is served whole for the range %s, which is none or several',
    async (range) => {
      const { path, bytes } = await trainingFile()
      const answer = await bytesOf(path, { Range: range })
      expect(answer.status).toBe(200)
      expect(answer.bytes.length).toBe(bytes)
    },
  )

  it.each(['bytes=99999999999-', 'bytes=-0'])('answers 416 with its length to %s', async (range) => {
    const { path, bytes } = await trainingFile()
    const answer = await read(path, { Range: range })
    expectProblem(answer, 'range_not_satisfiable')
    expect(answer.headers.get('content-range')).toBe(`bytes */${bytes}`)
  })

  it('honours If-Range and If-None-Match by its strong ETag', async () => {
    const { path, bytes } = await trainingFile()
    const etag = (await bytesOf(path, { Range: 'bytes=0-0' })).headers.get('etag')!
    expect(etag).toMatch(/^"[0-9a-f]{64}"$/)
    const ranged = (ifRange: string) => bytesOf(path, { Range: 'bytes=0-9', 'If-Range': ifRange })
    expect((await ranged(etag)).status).toBe(206)
    expect((await ranged(`W/${etag}`)).bytes.length).toBe(bytes)
    expect((await ranged('"other"')).status).toBe(200)
    expect((await ranged('Sun, 22 Nov 2026 08:00:00 GMT')).status).toBe(200)
    for (const sent of [etag, `W/${etag}`, `"other", ${etag}`, '*'])
      expect((await bytesOf(path, { 'If-None-Match': sent })).status).toBe(304)
    expect((await bytesOf(path, { 'If-None-Match': '"other"' })).status).toBe(200)
  })

  it.each([
    '..%2f..%2fstate.duckdb',
    '%2e%2e',
    'catalog.duckdb',
    'training',
    'training-2025-01-01-000000000000001-000000000000001.parquet%00',
  ])('is no other file of the folder: %s', async (name) => {
    expectProblem(await read(`/api/v1/lake/files/${name}`), 'not_found')
  })

  it('answers 410 with what to do for a name that the lake does not have', async () => {
    const answer = await read(
      '/api/v1/lake/files/training-2025-01-01-000000000000001-000000000000001.parquet',
    )
    expectProblem(answer, 'file_gone')
    expect(answer.body.error).toContain('Read the catalog again')
  })
})

describe('readers', () => {
  /** A request whose answer is not read yet. */
  async function stalled(url: string, path: string): Promise<IncomingMessage> {
    const asked = get(url + path, { headers: { Authorization: `Bearer ${ADMIN_KEY}` } })
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    answer.on('error', () => {})
    return answer
  }

  it('that stall get all of it when they read on', async () => {
    const { path, content } = await trainingFile()
    const answer = await stalled(server.url, path)
    expect((await server.client.get('/health')).status).toBe(200)
    const chunks: Buffer[] = []
    for await (const chunk of answer) chunks.push(chunk)
    expect(Buffer.concat(chunks).equals(content)).toBe(true)
  })

  it('that take longer than a download may are cut off, and nothing of them stays open', {
    tags: 'drill',
  }, async () => {
    const impatient = await openTestServer({}, { tuning: { downloadMsMax: 200 } })
    try {
      await fill(impatient)
      const [file] = (await impatient.store.lakeFiles()).filter(({ table }) => table === 'training')
      const answer = await stalled(impatient.url, `/api/v1/lake/files/${file.name}`)
      while (impatient.downloads.running > 0) await new Promise((resolve) => setTimeout(resolve, 20))
      await expect(answer.toArray()).rejects.toThrow('aborted')
    } finally {
      await impatient.remove()
    }
  })

  it('that are more than the maximum at once are told when to try again', async () => {
    const downloads = new LakeFileServer(server.store, () => performance.now())
    const [file] = await downloads.list()
    const open = await Promise.all(
      Array.from({ length: DOWNLOADS_AT_ONCE }, () => downloads.begin(file, 0, 1)),
    )
    await expect(downloads.begin(file, 0, 1)).rejects.toMatchObject({
      code: 'unavailable',
      retryAfterMs: 1_000,
    })
    expect((await open[0].next())?.length).toBe(1)
    expect(await open[0].next()).toBeNull()
    expect(downloads.running).toBe(DOWNLOADS_AT_ONCE - 1)
    for (const each of open) each.stop()
    expect(downloads.running).toBe(0)
  })

  it('hold their place on a disk that hangs, though their reader was told', async () => {
    const downloads = new LakeFileServer(server.store, () => performance.now())
    const [file] = await downloads.list()
    // To open a pipe takes until somebody writes to it.
    const path = join(server.dataDir, 'pipe')
    execFileSync('mkfifo', [path])
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const begun = expect(downloads.begin({ ...file, path }, 0, 1)).rejects.toThrow('cannot be read')
      await vi.advanceTimersByTimeAsync(DOWNLOAD_READ_MS_MAX)
      await begun
    } finally {
      vi.useRealTimers()
    }
    expect(downloads.running).toBe(1)
    await (await openFile(path, 'w')).close()
    while (downloads.running > 0) await nextTurn()
  })
})

it('a file that a merge has replaced is served until the grace of local readers is over, then it is gone', {
  tags: 'drill',
}, async () => {
  const clock = new SteppedClock(NOON_MS)
  const patient = await openTestServer({}, { clock })
  try {
    const read = (path: string) => patient.client.get(path, { Authorization: `Bearer ${ADMIN_KEY}` })
    const list = async (): Promise<CatalogFile[]> =>
      (await read(`${CATALOG}?table=training`)).body.data.tables[0].files
    for (let made = 0; made < 8; made++) {
      await patient.store.commit(rowsOf(`an_${made}`))
      await patient.store.flushLake()
    }
    const before = await list()
    expect(before).toHaveLength(8)
    expect((await patient.store.compactLake()).merged).toBeGreaterThan(0)
    expect((await read(before[0].path)).status).toBe(200)
    while ((await list()).length === 8) await new Promise((resolve) => setTimeout(resolve, 50))
    expect((await read(before[0].path)).status).toBe(200)
    clock.pass(LAKE_GRACE_MS_DEFAULT + 1_000)
    expect((await patient.store.compactLake()).removed).toBeGreaterThan(0)
    expectProblem(await read(before[0].path), 'file_gone')
    const [merged] = await list()
    expect((await read(merged.path)).status).toBe(200)
  } finally {
    await patient.remove()
  }
})
