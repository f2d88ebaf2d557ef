// Follow streams over real HTTP: rows and changes, control lines, resuming, and clients that do not read.
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FollowReader, type Line } from '../../support/follow-reader.ts'
import { newMint } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

// All tests share one server: each has its own tokens.
let server: TestServer
beforeAll(async () => {
  server = await openTestServer()
})
afterAll(() => server.remove())

const open = (path: string) => new FollowReader(server.url + path)
/** The rows of the whole tab, and the heartbeat behind them. */
async function openingOf(stream: FollowReader): Promise<{ rows: Line[]; heartbeat: Line }> {
  const rows: Line[] = []
  for (;;) {
    const line = await stream.next()
    if (line === null) throw new Error('the stream ended')
    if (line.event === 'heartbeat') return { rows, heartbeat: line }
    rows.push(line)
  }
}
const mintsOf = (rows: readonly Line[]) => rows.map(({ mint }) => mint)
const token = (mint: string, name = 'Name') => ({ type: 'token', mint, ts: Date.now(), name, symbol: 'S' })
const path = (more = '') => `/api/v1/market?format=ndjson&follow=1${more}`

describe('a follow stream', () => {
  it('reports the eviction of a token once to followers of each tab that it was in', async () => {
    const small = await openTestServer({ 'tokens-max': '2' })
    try {
      const [a, b, c, d] = [newMint(), newMint(), newMint(), newMint()]
      const follow = (more: string) => new FollowReader(small.url + path(more))
      await small.client.push(token(a), { type: 'live', mint: a, ts: Date.now(), isLive: true }, token(b))
      const since = small.market.seq
      const [all, live, graduated] = [follow(''), follow('&tab=live'), follow('&tab=graduated')]
      for (const stream of [all, live, graduated]) await stream.until(({ event }) => event === 'heartbeat')
      await small.client.push(token(c))
      const seq = small.market.seq - 1
      expect(await all.next()).toEqual({ event: 'left', mint: a, seq })
      expect(await all.next()).toMatchObject({ mint: c, seq: seq + 1 })
      expect(await live.next()).toEqual({ event: 'left', mint: a, seq })
      const resumed = follow(`&since=${since}`)
      expect(await resumed.next()).toMatchObject({ event: 'heartbeat', seq: since })
      expect(await resumed.next()).toEqual({ event: 'left', mint: a, seq })
      expect(await resumed.next()).toMatchObject({ mint: c })
      // The next line of each stream is the next change, so the eviction was sent once and only to streams that had the token.
      await small.client.push({ type: 'live', mint: d, ts: Date.now(), isLive: true })
      await small.client.push({ type: 'graduated', mint: d, ts: Date.now() })
      expect(await live.next()).toMatchObject({ mint: d })
      expect(await graduated.next()).toMatchObject({ mint: d })
      expect(await all.next()).toMatchObject({ event: 'left', mint: b })
      for (const stream of [all, live, graduated, resumed]) stream.close()
    } finally {
      await small.remove()
    }
  })

  it('sends the rows first, then each changed row with its position', async () => {
    const [a, b] = [newMint(), newMint()]
    await server.client.push(token(a), token(b))
    const stream = open(path())
    const { rows, heartbeat } = await openingOf(stream)
    expect(mintsOf(rows)).toEqual(expect.arrayContaining([a, b]))
    expect(rows).toHaveLength(server.market.stats().tokens)
    expect(rows[0]).not.toHaveProperty('seq')
    expect(heartbeat).toMatchObject({ event: 'heartbeat', seq: server.market.seq })
    await server.client.push(token(a, 'New name'))
    const changed = (await stream.next())!
    expect(changed).toMatchObject({ mint: a, name: 'New name', seq: server.market.seq })
    const { seq, ...row } = changed
    expect(row).toEqual(server.market.item(a))
    stream.close()
  })

  it('of a tab sends only rows of the tab, and a row that left the tab one last time', async () => {
    const [a, b] = [newMint(), newMint()]
    const stream = open(path('&tab=live'))
    expect(await stream.next()).toMatchObject({ event: 'heartbeat' })
    await server.client.push(token(b), token(a), { type: 'live', mint: a, ts: Date.now(), isLive: true })
    expect(await stream.next()).toMatchObject({ mint: a, is_currently_live: true })
    await server.client.push({ type: 'live', mint: a, ts: Date.now(), isLive: false })
    expect(await stream.next()).toMatchObject({ mint: a, is_currently_live: false })
    await server.client.push(token(a, 'not followed'), {
      type: 'live',
      mint: b,
      ts: Date.now(),
      isLive: true,
    })
    expect(await stream.next()).toMatchObject({ mint: b })
    stream.close()
  })

  it('resumes from a position, and resyncs from one that the change log does not have', async () => {
    const [a, b] = [newMint(), newMint()]
    await server.client.push(token(a))
    const since = server.market.seq
    await server.client.push(token(b), token(b, 'twice'))
    const resumed = open(path(`&since=${since}`))
    expect(await resumed.next()).toMatchObject({ event: 'heartbeat', seq: since })
    expect(await resumed.next()).toMatchObject({ mint: b, name: 'twice', seq: server.market.seq })
    resumed.close()
    for (const foreign of [
      server.market.seq + 1,
      server.market.firstSeq - 1,
      0,
      999_999_999,
      '9'.repeat(400),
    ]) {
      const lost = open(path(`&since=${foreign}`))
      // The position comes with the last row, so a client that is disconnected before has none.
      expect(await lost.next()).toEqual({ event: 'resync' })
      const { rows, heartbeat } = await openingOf(lost)
      expect(mintsOf(rows)).toEqual(expect.arrayContaining([a, b]))
      expect(rows).toHaveLength(server.market.stats().tokens)
      expect(heartbeat.seq).toBe(server.market.seq)
      lost.close()
    }
  })

  it('refuses a malformed position', async () => {
    for (const wrong of ['-1', '1.5', 'NaN', '1e3', 'Infinity', '0x10', 'null', '%00', '1,2']) {
      const answer = await server.client.get(path(`&since=${wrong}`))
      expect(answer.status, wrong).toBe(400)
      expect(JSON.parse(answer.text).errors[0].pointer).toBe('/since')
    }
  })

  it('sends each changed row once in its newest form, in ascending positions, however often it changed', async () => {
    const [a, b, c] = [newMint(), newMint(), newMint()]
    await server.client.push(token(a), token(b), token(c))
    const since = server.market.seq
    await server.client.push(token(a, 'first'), token(b), token(c), token(a, 'last'))
    const stream = open(path(`&since=${since}`))
    await stream.next()
    const rows = [await stream.next(), await stream.next(), await stream.next()]
    expect(rows).toMatchObject([
      { mint: b, seq: since + 2 },
      { mint: c, seq: since + 3 },
      { mint: a, name: 'last', seq: since + 4 },
    ])
    stream.close()
  })

  it('that is not read takes bounded memory and delays no other', { tags: 'drill' }, async () => {
    const mints = Array.from({ length: 50 }, newMint)
    await server.client.push(...mints.map((mint) => token(mint)))
    const stalled = Array.from({ length: 20 }, () => {
      const socket = connect(server.port, '127.0.0.1')
      socket.pause()
      socket.write(`GET ${path()} HTTP/1.1\r\nHost: x\r\n\r\n`)
      return socket
    })
    const reader = open(path())
    await reader.until(({ event }) => event === 'heartbeat')
    const before = process.memoryUsage().rss
    let name = ''
    for (let round = 0; round < 300; round++) {
      name = `round ${round} ${'x'.repeat(100)}`
      for (const mint of mints)
        server.market.apply(token(mint, name) as Parameters<typeof server.market.apply>[0], Date.now())
      await reader.until((line) => line.name === name)
    }
    // Without a bound each of them would hold 300 rounds of 50 rows of 500 bytes, 150 MB in all.
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1_048_576)
    for (const socket of stalled) socket.destroy()
    reader.close()
  })

  it('ends with a bye line when the server shuts down', async () => {
    const stream = open(path())
    await stream.next()
    const stopped = server.stop()
    expect(await stream.until(({ event }) => event === 'bye')).toMatchObject({
      event: 'bye',
      reason: 'draining',
    })
    expect(await stream.next()).toBeNull()
    await stopped
  })
})
