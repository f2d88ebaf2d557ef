// Cursors on a writer and two readers: equal bytes at equal positions, and a list that is read on wherever the client is moved to.
import { connect } from '@nats-io/transport-node'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { withCursors } from '../../../src/cluster/proxy/cursor-route.ts'
import { type ReaderApp, startReader } from '../../../src/cluster/reader/reader-app.ts'
import { readConfig } from '../../../src/config/config.ts'
import type { Context } from '../../../src/http/context.ts'
import type { PlainRoute } from '../../../src/http/route.ts'
import { MARKET_PATH } from '../../../src/http/routes/market.ts'
import { createLog } from '../../../src/lib/log.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { KEPT_SORTS, ORDERS, TABS } from '../../../src/schema/vocabulary.ts'
import { type Answer, Client, openTestServer, type TestServer } from '../../support/test-server.ts'
import { hasNats, type Nats, skipped, startNats } from '../support.ts'

const log = createLog('warn')
const TOKENS = 40
const MINTS = Array.from({ length: TOKENS }, (_, index) => mintOfSymbol(`paged ${index}`))
const FILTERS = ['', '&search=even', '&max_analyses=3', '&search=p&max_analyses=0']
const LISTS = TABS.flatMap((tab) =>
  KEPT_SORTS.flatMap((sort) =>
    ORDERS.flatMap((order) =>
      FILTERS.map((filter) => `/api/v1/market?tab=${tab}&sort=${sort}&order=${order}${filter}&limit=7`),
    ),
  ),
)
const WAIT = { timeout: 20_000, interval: 20 }

let nats: Nats
let writer: TestServer
let readers: (ReaderApp & { client: Client })[] = []
let clients: Client[] = []

async function openReader(): Promise<ReaderApp & { client: Client }> {
  const settings = {
    ...{ role: 'reader', bus: nats.url, port: '0', 'page-age-ms': '0', 'log-level': 'warn' },
    ...{ 'read-limit-anonymous': '0', 'drain-notice-ms': '0' },
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
  const app = await startReader(readConfig(flags, {}), { log })
  await app.ready
  return { ...app, client: new Client(app.url) }
}

const tokenOf = (index: number) => ({
  ...{ type: 'token', mint: MINTS[index]!, ts: Date.now() - index * 1_000, symbol: 'P' },
  name: `p ${index % 2 === 0 ? 'even' : 'odd'} ${index}`,
})
const tradeOf = (index: number) => ({
  ...{ type: 'trade', mint: MINTS[index % TOKENS]!, ts: Date.now(), side: 'buy' },
  ...{ tokenAmount: 1_000 + ((index * 7_919) % 10_000), priceUsd: 0.001 * (1 + (index % 17)) },
})

/** A position that no list is kept of, once every node is there. */
async function moveOn(): Promise<void> {
  await writer.client.push(tradeOf(writer.market.seq % 1_000))
  await expect
    .poll(() => readers.map(({ market }) => market.seq), WAIT)
    .toEqual([writer.market.seq, writer.market.seq])
}

const mintsOf = ({ body }: Answer): string[] => body.data.map(({ mint }: { mint: string }) => mint)
const next = ({ body }: Answer, limit = 7) => `${MARKET_PATH}?limit=${limit}&cursor=${body.meta.nextCursor}`
/** All that has to be equal. */
const seenOf = ({ status, text, headers }: Answer) => ({
  ...{ status, text },
  ...Object.fromEntries(
    ['etag', 'x-list-version', 'x-next-cursor', 'x-result-count'].map((name) => [name, headers.get(name)]),
  ),
})

describe.skipIf(!hasNats)(`cursors in a cluster${skipped}`, { tags: 'drill' }, () => {
  beforeAll(async () => {
    nats = await startNats()
    writer = await openTestServer({ role: 'writer', bus: nats.url })
    await writer.client.push(...MINTS.map((_, index) => tokenOf(index)))
    await writer.client.push(...MINTS.map((_, index) => tradeOf(index)))
    await writer.client.push(
      ...[1, 4, 9, 12, 17, 20, 22, 30, 31].map((index) => ({
        type: 'live',
        mint: MINTS[index],
        ts: Date.now(),
        isLive: true,
      })),
    )
    await writer.client.push(
      ...[2, 3, 5, 8, 13, 21, 34, 35, 36].map((index) => ({
        type: 'patch',
        mint: MINTS[index],
        ts: Date.now(),
        fields: { complete: true },
      })),
    )
    readers = [await openReader(), await openReader()]
    clients = [writer.client, ...readers.map(({ client }) => client)]
  }, 60_000)

  afterAll(async () => {
    for (const reader of readers) await reader.stop()
    await writer?.remove()
    await nats?.remove()
  })

  /** What all nodes answer: the same. Market time may pass between two reads, so it tries again. */
  async function same(path: string): Promise<Answer> {
    let answers: Answer[] = []
    await expect
      .poll(async () => {
        answers = await Promise.all(clients.map((client) => client.get(path)))
        const [ours, ...others] = answers.map(seenOf)
        return others.map((other) => [other, ours])
      }, WAIT)
      .toSatisfy(
        (pairs: [object, object][]) => pairs.every(([a, b]) => JSON.stringify(a) === JSON.stringify(b)),
        path,
      )
    return answers[0]!
  }

  it('all nodes give the same bytes, ETags and cursors at the same position: every list, filters too, to its end', async () => {
    await moveOn()
    let pages = 0
    for (const list of LISTS) {
      const seen: string[] = []
      let answer = await same(list)
      for (;;) {
        expect(answer.status, answer.text).toBe(200)
        pages++
        seen.push(...mintsOf(answer))
        if (answer.body.meta.nextCursor === null) break
        answer = await same(next(answer))
      }
      expect(new Set(seen).size).toBe(answer.body.meta.total)
      expect(seen).toHaveLength(answer.body.meta.total)
    }
    expect(pages).toBeGreaterThan(3 * LISTS.length)
  }, 120_000)

  it('a cached page of one node is current at another', async () => {
    await moveOn()
    const { headers } = await clients[0]!.get(LISTS[0]!)
    for (const client of clients) {
      const again = await client.get(LISTS[0]!, { 'If-None-Match': headers.get('etag')! })
      expect(again.status).toBe(304)
      expect(again.headers.get('x-next-cursor')).toBe(headers.get('x-next-cursor'))
    }
  })

  it('a client that is moved at every page gets each row once while trades go on', async () => {
    let isTrading = true
    let traded = 0
    const trading = (async () => {
      while (isTrading) await writer.client.push(...Array.from({ length: 5 }, () => tradeOf(traded++)))
    })()
    try {
      for (const [at, list] of LISTS.entries()) {
        const versions = new Set<string | null>()
        const seen: string[] = []
        let answer = await clients[at % 3]!.get(list)
        for (let turn = at + 1; ; turn++) {
          expect(answer.status, answer.text).toBe(200)
          versions.add(answer.headers.get('x-list-version'))
          seen.push(...mintsOf(answer))
          if (answer.body.meta.nextCursor === null) break
          answer = await clients[turn % 3]!.get(next(answer))
        }
        expect([versions.size, seen.length]).toEqual([1, answer.body.meta.total])
        expect(new Set(seen).size).toBe(seen.length)
      }
    } finally {
      isTrading = false
      await trading
    }
    expect(traded).toBeGreaterThan(100)
  }, 120_000)

  it('large answers, other formats and compression come through another node as from the one that keeps the list', async () => {
    await moveOn()
    for (const format of ['json', 'ndjson', 'msgpack', 'arrow']) {
      const first = await clients[1]!.get(`${MARKET_PATH}?limit=3&format=${format}&cursor=`)
      const path = `${MARKET_PATH}?limit=30&format=${format}&cursor=${first.headers.get('x-next-cursor')}`
      const [own, other] = [await clients[1]!.get(path), await clients[2]!.get(path)]
      expect(seenOf(other)).toEqual(seenOf(own))
      expect(other.headers.get('content-type')).toBe(own.headers.get('content-type'))
    }
  })

  it('a cursor of nobody is 410 at once, and one that is none is 400', async () => {
    const nobodys = Buffer.from(`${'x'.repeat(22)}.0.5.`).toString('base64url')
    const startedAtMs = performance.now()
    for (const client of clients) {
      expect((await client.get(`${MARKET_PATH}?cursor=${nobodys}`)).body.code).toBe('cursor_expired')
      expect((await client.get(`${MARKET_PATH}?cursor=x`)).body.code).toBe('invalid_parameter')
    }
    expect(performance.now() - startedAtMs).toBeLessThan(3 * 600)
  })

  it('a node that ends takes along what it alone has kept', async () => {
    await moveOn()
    const third = await openReader()
    await expect.poll(() => third.market.seq, WAIT).toBe(writer.market.seq)
    const alone = await third.client.get(LISTS[0]!)
    const shared = await third.client.get(LISTS[8]!)
    expect((await clients[1]!.get(LISTS[8]!)).text).toBe(shared.text)
    for (const answer of [alone, shared]) expect((await clients[0]!.get(next(answer))).status).toBe(200)
    await third.stop()
    for (const client of clients) {
      // A node that does not answer would be waited for, and then be 503.
      expect((await client.get(next(alone))).body.code).toBe('cursor_expired')
      expect((await client.get(next(shared))).status).toBe(200)
    }
  }, 30_000)

  it('lists are found again after the bus was away, those too that were frozen meanwhile', async () => {
    await moveOn()
    const before = await clients[1]!.get(LISTS[0]!)
    await nats.kill()
    // The writer goes on without it.
    await writer.client.push(tradeOf(1))
    const meanwhile = await clients[0]!.get(LISTS[0]!)
    expect(meanwhile.text).not.toBe(before.text)
    await nats.start()
    for (const answer of [before, meanwhile])
      await expect.poll(async () => (await clients[2]!.get(next(answer))).status, WAIT).toBe(200)
  }, 60_000)

  it('the bus knows of lists that are kept, and of no others', async () => {
    await moveOn()
    const connection = await connect({ servers: nats.url })
    const { nextCursor } = (await clients[1]!.get(LISTS[0]!)).body.meta
    const [list] = Buffer.from(nextCursor, 'base64url').toString().split('.')
    const isKnown = (name: string) =>
      connection.request(`mintlake.list.${name}`, '', { timeout: 1_000 }).then(
        () => true,
        () => false,
      )
    await expect.poll(() => isKnown(list!), WAIT).toBe(true)
    expect(await isKnown('x'.repeat(22))).toBe(false)
    await connection.close()
  })
})

describe('while nobody answers for a list', () => {
  const state = { nowMs: 0 }
  afterEach(() => {
    state.nowMs = 0
  })
  const local: PlainRoute = {
    ...{ method: 'GET', path: MARKET_PATH, access: 'read', summary: '', docs: {} as PlainRoute['docs'] },
    handle: () => ({ status: 200, body: {} }),
  }
  const contextOf = (query: string, relayed = false): Context =>
    ({
      ...{
        method: 'GET',
        path: MARKET_PATH,
        queryText: query,
        headers: {},
        requestId: '',
        body: Buffer.alloc(0),
      },
      ...{ query: new URLSearchParams(query), ip: () => '::1', isRelayed: () => relayed },
    }) as unknown as Context
  const route = withCursors(
    local,
    { missing: (cursor) => (cursor.startsWith('missing') ? cursor : null) },
    () => null,
    () => state.nowMs,
  ) as PlainRoute
  const codeOf = async (query: string) => {
    try {
      return (await route.handle(contextOf(query))).status
    } catch (error) {
      return (error as { code: string }).code
    }
  }

  it('the client is told to try again, for as long as the list would be kept', async () => {
    expect(await codeOf('cursor=missing-1')).toBe('warming_up')
    state.nowMs = 30_000
    expect([await codeOf('cursor=missing-1'), await codeOf('cursor=missing-2')]).toEqual([
      'warming_up',
      'warming_up',
    ])
    state.nowMs = 31_001
    expect([await codeOf('cursor=missing-1'), await codeOf('cursor=missing-2')]).toEqual([
      'cursor_expired',
      'warming_up',
    ])
  })

  it('lists that are kept here, streams and what another node has passed on are answered here', async () => {
    for (const query of ['', 'cursor=', 'cursor=kept', 'cursor=missing&follow=1'])
      expect(await codeOf(query)).toBe(200)
    expect(await codeOf('cursor=missing&follow=0')).toBe('warming_up')
    expect((await route.handle(contextOf('cursor=missing', true))).status).toBe(200)
  })
})
