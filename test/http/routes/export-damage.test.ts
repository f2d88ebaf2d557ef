// Exports over HTTP of a lake with a damaged file: an answer that has begun breaks off, and no consumer by `since` misses a row.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tableFromIPC } from 'apache-arrow'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { NOON_MS, submission as rowsOf } from '../../store/support.ts'
import { ADMIN_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'

const FILES = 6
const FILE_ROWS = 400
/** So much that DuckDB reads a part of the files ahead, not all. */
const textOf = (n: number): string =>
  Array.from({ length: 40 }, (_, at) => (((n * 41 + at) * 2_654_435_761) >>> 0).toString(36)).join('')

let server: TestServer
beforeAll(async () => {
  server = await openTestServer()
  for (let file = 0; file < FILES; file++) {
    const ids = Array.from({ length: FILE_ROWS }, (_, index) => file * FILE_ROWS + index)
    const rows = ids.map((n) =>
      rowsOf(`an_${String(n).padStart(6, '0')}`, { submitted_at: NOON_MS + n * 1_000, summary: textOf(n) }),
    )
    await server.store.commit(rows.flat())
    await server.store.flushLake()
  }
})
afterAll(() => server.remove())

/** Changes the middle of the newest file under both of its names: only reading it shows that. */
function damageNewestFile(): void {
  for (const at of ['lake', 'lake/.files']) {
    const folder = join(server.dataDir, at, 'training')
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.parquet'),
    )
    const path = join(folder, names.toSorted().at(-1)!)
    const bytes = readFileSync(path)
    bytes.fill(0x5a, Math.floor(bytes.length * 0.5), Math.floor(bytes.length * 0.5) + 8_192)
    writeFileSync(path, bytes)
  }
}

const exported = (format: string): Promise<Response> =>
  fetch(`${server.url}/api/v1/training/export?format=${format}`, {
    headers: { Authorization: `Bearer ${ADMIN_KEY}` },
  })

it('an export of damaged rows breaks off or is refused, and has the others once the file is set aside', {
  tags: 'drill',
}, async () => {
  damageNewestFile()
  const begun = await exported('arrow')
  expect(begun.status).toBe(200)
  expect(begun.headers.get('x-result-count')).toBe(`${FILES * FILE_ROWS}`)
  await expect(begun.arrayBuffer()).rejects.toThrow()
  await expect
    .poll(async () => {
      const answer = await exported('arrow')
      const promised = Number(answer.headers.get('x-result-count'))
      const bytes = await answer.arrayBuffer().catch(() => null)
      return { promised, sent: bytes === null ? null : tableFromIPC(new Uint8Array(bytes)).numRows }
    })
    .toEqual({ promised: (FILES - 1) * FILE_ROWS, sent: (FILES - 1) * FILE_ROWS })
})
