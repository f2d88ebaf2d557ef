// @module-tag drill
// Cursors while nodes are killed, stand still, end and begin anew: processes of their own on the real nats-server.
import { afterEach, describe, expect, it } from 'vitest'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import type { Answer, Client, ServerProcess } from '../../support/test-server.ts'
import { freeze, hasNats, skipped, TestCluster } from '../support.ts'

const LIST = '/api/v1/market?sort=created_timestamp&limit=5'
const SEARCH = '/api/v1/market?sort=created_timestamp&search=even&limit=5'
const TOKENS = 30
const WAIT = { timeout: 20_000, interval: 50 }
/** An answer that comes although a node stands still. */
const SILENT_MS_MAX = 2_500
const AT_ONCE_MS_MAX = 1_000

let cluster: TestCluster
afterEach(() => cluster.remove())

async function startAll(readers: number): Promise<{ writer: ServerProcess; readers: ServerProcess[] }> {
  cluster = await TestCluster.start()
  const writer = await cluster.writer()
  const ts = Date.now()
  const tokens = Array.from({ length: TOKENS }, (_, index) => ({
    ...{ type: 'token', mint: mintOfSymbol(`kept ${index}`), ts: ts - index * 1_000, symbol: 'K' },
    name: index % 2 === 0 ? 'even' : 'odd',
  }))
  await writer.client.push(...tokens)
  // One that falls behind while a node stands still goes on answering.
  const settings = { reader: 'lag-max-ms=60000' }
  const started = await Promise.all(Array.from({ length: readers }, () => cluster.reader(settings)))
  const version = await versionOf(writer.client)
  for (const { client } of started) await expect.poll(() => versionOf(client), WAIT).toBe(version)
  return { writer, readers: started }
}

const versionOf = async (client: Client) => (await client.get(LIST)).headers.get('x-list-version')
const next = ({ body }: Answer) => `/api/v1/market?limit=5&cursor=${body.meta.nextCursor}`
const seenOf = ({ status, text, headers }: Answer) => [status, text, headers.get('etag')]

async function timed(client: Client, path: string): Promise<{ answer: Answer; ms: number }> {
  const startedAtMs = performance.now()
  const answer = await client.get(path)
  return { answer, ms: performance.now() - startedAtMs }
}

describe.skipIf(!hasNats)(`cursors under faults${skipped}`, () => {
  it('of a node that is killed go on where another keeps the list; of the last one they are gone at once', async () => {
    const { writer, readers } = await startAll(3)
    const [first, second, third] = readers
    const shared = await first!.client.get(LIST)
    expect(seenOf(await second!.client.get(LIST))).toEqual(seenOf(shared))
    const alone = await first!.client.get(SEARCH)
    for (const page of [shared, alone]) expect((await third!.client.get(next(page))).status).toBe(200)
    await first!.kill()
    const seen: string[] = []
    for (let page = shared; ; ) {
      seen.push(...page.body.data.map(({ mint }: { mint: string }) => mint))
      if (page.body.meta.nextCursor === null) break
      page = await (seen.length % 2 === 0 ? third! : writer).client.get(next(page))
      expect(page.status, page.text).toBe(200)
    }
    expect([seen.length, new Set(seen).size]).toEqual([TOKENS, TOKENS])
    for (const { client } of [writer, second!, third!]) {
      const { answer, ms } = await timed(client, next(alone))
      expect(answer.body.code).toBe('cursor_expired')
      expect(ms).toBeLessThan(AT_ONCE_MS_MAX)
    }
  }, 60_000)

  it('of a node that stands still: another that keeps the list answers at once, else it is 503 soon, and goes on later', async () => {
    const { writer, readers } = await startAll(3)
    const [still, other, third] = readers
    const shared = await still!.client.get(LIST)
    expect(seenOf(await other!.client.get(LIST))).toEqual(seenOf(shared))
    const alone = await still!.client.get(SEARCH)
    expect((await third!.client.get(next(alone))).status).toBe(200)
    const thaw = freeze(still!)
    for (let turn = 0; turn < 5; turn++) {
      const { answer, ms } = await timed(third!.client, next(shared))
      expect([answer.status, ms < AT_ONCE_MS_MAX], `${ms} ms: ${answer.text}`).toEqual([200, true])
    }
    for (const client of [writer.client, third!.client]) {
      const { answer, ms } = await timed(client, next(alone))
      expect(answer.body).toMatchObject({ status: 503, code: 'warming_up' })
      expect(answer.headers.get('retry-after')).toBe('1')
      expect(ms).toBeLessThan(SILENT_MS_MAX)
    }
    thaw()
    await expect.poll(async () => (await third!.client.get(next(alone))).status, WAIT).toBe(200)
  }, 60_000)

  it('over a restart of the writer: readers keep their lists, and the new run has cursors of its own', async () => {
    const { writer, readers } = await startAll(2)
    const [first, second] = readers
    const kept = await first!.client.get(LIST)
    const writers = await writer.client.get(SEARCH)
    expect((await first!.client.get(next(writers))).status).toBe(200)
    await writer.kill()
    const again = await cluster.writer({}, { dataDir: writer.dataDir })
    const version = await versionOf(again.client)
    expect(Number(version)).toBeGreaterThan(Number(kept.headers.get('x-list-version')))
    for (const { client } of readers) await expect.poll(() => versionOf(client), WAIT).toBe(version)
    for (const { client } of [again, first!, second!]) {
      const page = await client.get(next(kept))
      expect([page.status, page.body.meta?.version]).toEqual([200, kept.body.meta.version])
      expect((await client.get(next(writers))).body.code).toBe('cursor_expired')
    }
    const [ours, ...others] = await Promise.all(
      [again, first!, second!].map(({ client }) => client.get(SEARCH)),
    )
    for (const other of others) expect(seenOf(other)).toEqual(seenOf(ours!))
    expect(ours!.body.meta.nextCursor).not.toBe(writers.body.meta.nextCursor)
  }, 60_000)

  it('a reader that begins without a writer has the ETags and cursors of the others', async () => {
    const { writer, readers } = await startAll(1)
    expect(await writer.terminate()).toBe(0)
    const late = await cluster.reader({ reader: 'lag-max-ms=60000' })
    for (const path of [LIST, SEARCH]) {
      const [ours, theirs] = [await readers[0]!.client.get(path), await late.client.get(path)]
      expect(ours.body.meta.nextCursor).toMatch(/./)
      expect(seenOf(theirs)).toEqual(seenOf(ours))
    }
  }, 60_000)
})
