// Streams over WebSocket through the real server: subscriptions, the order of messages, and what is refused.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { clockOf } from '../../support/clock.ts'
import { StreamReader } from '../../support/stream-reader.ts'
import { newMint } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

let server: TestServer
beforeAll(async () => {
  server = await openTestServer()
})
afterAll(() => server.remove())

const readers: StreamReader[] = []
afterEach(() => {
  for (const reader of readers.splice(0)) reader.close()
})
function open(protocol?: string, headers?: Record<string, string>, at = server): StreamReader {
  const reader = new StreamReader(`${at.url.replace('http', 'ws')}/api/v1/stream`, protocol, headers)
  readers.push(reader)
  return reader
}
async function subscribed(topic: object, protocol?: string): Promise<StreamReader> {
  const reader = open(protocol)
  await reader.send({ op: 'subscribe', ...topic })
  expect(await reader.next()).toMatchObject({ event: 'subscribed' })
  return reader
}

const token = (mint: string, name = 'Name') => ({ type: 'token', mint, ts: Date.now(), name, symbol: 'S' })
const live = (mint: string, isLive: boolean) => ({ type: 'live', mint, ts: Date.now(), isLive })
const trade = (mint: string, ts: number, priceUsd: number) => ({
  type: 'trade',
  mint,
  ts,
  side: 'buy',
  tokenAmount: 1,
  priceUsd,
})

describe.each(['mintlake.json', 'mintlake.msgpack', undefined])('with the protocol %s', (protocol) => {
  it('a tab begins with its rows and continues with each changed row and its position', async () => {
    const mint = newMint()
    await server.client.push(token(mint), live(mint, true))
    const reader = await subscribed({ topic: 'market', tab: 'live' }, protocol)
    expect(reader.protocol).toBe(protocol ?? '')
    const snapshot = await reader.next()
    expect(snapshot).toMatchObject({
      event: 'snapshot',
      channel: 'market:live',
      seq: server.market.seq,
      last: true,
    })
    expect(snapshot.rows).toContainEqual(server.market.item(mint))
    await server.client.push(token(mint, 'New "name"\n of two lines'))
    const { seq } = server.market
    expect(await reader.next()).toEqual({
      event: 'changes',
      channel: 'market:live',
      seq,
      rows: [{ ...server.market.item(mint), seq }],
    })
    await server.client.push(live(mint, false))
    expect((await reader.next()).rows).toMatchObject([{ mint, is_currently_live: false }])
  })

  it('a token begins with its DataPoint and sends it again when it changes, whether or not others do', async () => {
    const [mint, other] = [newMint(), newMint()]
    await server.client.push(token(mint), token(other))
    const reader = await subscribed({ topic: 'token', mint }, protocol)
    const snapshot = await reader.next()
    expect(snapshot).toMatchObject({ event: 'snapshot', channel: `token:${mint}`, last: true })
    const [row] = snapshot.rows
    // Own trades have been watched up to when the row was made.
    const { snapshotAt, enriched_at, enrichedFrom } = row
    expect(row).toEqual({ ...server.market.datapoint(mint), snapshotAt, enriched_at, enrichedFrom })
    await server.client.push(token(other, 'Other'))
    await server.client.push(token(mint, 'Mine'))
    expect(await reader.next()).toMatchObject({
      event: 'changes',
      rows: [{ mint, name: 'Mine' }],
      seq: server.market.seq,
    })
  })

  it('bars begin with the newest ones and continue with those that changed, closed or opened', async () => {
    const mint = newMint()
    const startMs = Math.floor(Date.now() / 60_000) * 60_000 - 600_000
    await server.client.push(
      trade(mint, startMs, 1),
      trade(mint, startMs + 60_000, 2),
      trade(mint, startMs + 120_000, 3),
    )
    const reader = await subscribed({ topic: 'ohlc', mint, tf: '1m', limit: 2 }, protocol)
    const snapshot = await reader.next()
    expect(snapshot).toMatchObject({ event: 'snapshot', channel: `ohlc:${mint}:1m`, last: true })
    expect(snapshot.rows.map((bar: { t: number }) => bar.t)).toEqual([startMs + 60_000, startMs + 120_000])
    await server.client.push(trade(mint, startMs + 130_000, 9), trade(mint, startMs + 180_000, 4))
    const changes = await reader.next()
    expect(changes.rows).toEqual(
      server.market.bars({ mint, tf: '1m', limit: 3, fromMs: null, toMs: null, fill: 'none' })!.bars,
    )
    // The first one was sent before as open, within the grace for late trades.
    expect(changes.rows[0]).toMatchObject({ t: startMs + 60_000, closed: true })
    expect(changes.rows[1]).toMatchObject({ t: startMs + 120_000, h: 9, n: 2 })
  })
})

describe('a stream of bars that resumes', () => {
  const startMs = Math.floor(Date.now() / 60_000) * 60_000 - 20 * 3_600_000
  const minutes = 150
  const from = startMs + 60_000
  let mint: string
  beforeAll(async () => {
    mint = newMint()
    const trades = Array.from({ length: minutes }, (_, minute) => trade(mint, startMs + minute * 60_000, 1))
    await server.client.push(...trades)
  })
  const resumed = async (more: object) => {
    const reader = open()
    await reader.send({ op: 'subscribe', topic: 'ohlc', mint, tf: '1m', from, ...more })
    const { clamped, heldFrom } = await reader.until('subscribed')
    const { rows } = await reader.until('snapshot')
    return { clamped, heldFrom, count: rows.length, first: rows[0].t }
  }

  it('begins with every bar from there on', async () => {
    expect(await resumed({})).toEqual({ clamped: undefined, count: minutes - 1, first: from })
  })

  it('says so where a limit leaves some of them out', async () => {
    const first = startMs + (minutes - 100) * 60_000
    expect(await resumed({ limit: 100 })).toEqual({ clamped: { limit: 100 }, count: 100, first })
    expect((await resumed({ limit: minutes - 1 })).clamped).toBeUndefined()
  })

  it('says so where bars from there on are not held any more', async () => {
    const long = newMint()
    const seconds = Array.from({ length: 1_300 }, (_, at) => trade(long, startMs + at * 1_000, 1))
    await server.client.push(...seconds)
    const { heldFrom, first } = await resumed({ mint: long, tf: '1s', from: startMs })
    expect(heldFrom).toBeGreaterThan(startMs)
    expect(heldFrom).toBeLessThanOrEqual(first)
    expect(await resumed({ mint: long, tf: '1s', from: heldFrom })).toMatchObject({
      heldFrom: undefined,
      first,
    })
  })
})

describe('a stream', () => {
  it('reports a bar that closed because time passed, without a trade', async () => {
    let nowMs = 1_800_000_000_000
    const timed = await openTestServer(
      {},
      { clock: clockOf(() => nowMs), tuning: { follow: { heartbeatMs: 40 } } },
    )
    try {
      const mint = newMint()
      await timed.client.push(trade(mint, nowMs, 1))
      const reader = open(undefined, {}, timed)
      await reader.send({ op: 'subscribe', topic: 'ohlc', mint, tf: '1m' })
      expect((await reader.until('snapshot')).rows).toMatchObject([{ closed: false }])
      nowMs += 120_000
      expect(await reader.until('changes')).toMatchObject({ rows: [{ t: 1_800_000_000_000, closed: true }] })
    } finally {
      await timed.remove()
    }
  })

  it('resumes from a position with only what changed after it', async () => {
    const [a, b] = [newMint(), newMint()]
    await server.client.push(token(a))
    const since = server.market.seq
    await server.client.push(token(b), token(b, 'twice'))
    const market = await subscribed({ topic: 'market', since })
    expect(await market.next()).toMatchObject({ event: 'changes', rows: [{ mint: b, name: 'twice' }] })
    const changed = await subscribed({ topic: 'token', mint: b, since })
    expect(await changed.next()).toMatchObject({ event: 'changes', rows: [{ mint: b, name: 'twice' }] })
    const unchanged = await subscribed({ topic: 'token', mint: a, since })
    await server.client.push(token(a, 'later'))
    expect(await unchanged.next()).toMatchObject({ event: 'changes', rows: [{ mint: a, name: 'later' }] })
  })

  it('resyncs a reader with a position of another run, and sends a position only with the last rows', async () => {
    const reader = open()
    await reader.send({ op: 'subscribe', topic: 'market', since: 999_999_999 })
    expect(await reader.next()).toEqual({ event: 'subscribed', channel: 'market:all' })
    expect(await reader.next()).toEqual({ event: 'resync', channel: 'market:all' })
    const rows = []
    for (let last = false; !last; ) {
      const snapshot = await reader.next()
      expect(snapshot).toMatchObject({ event: 'snapshot' })
      expect(snapshot.seq).toBe(snapshot.last ? server.market.seq : undefined)
      rows.push(...snapshot.rows)
      last = snapshot.last
    }
    expect(rows).toHaveLength(server.market.stats().tokens)
  })

  it('resyncs a channel of one token too when its position is not known', async () => {
    const mint = newMint()
    await server.client.push(token(mint))
    for (const since of [server.market.firstSeq - 1, server.market.seq + 1]) {
      const reader = await subscribed({ topic: 'token', mint, since })
      expect(await reader.next()).toEqual({ event: 'resync', channel: `token:${mint}` })
      expect(await reader.next()).toMatchObject({ event: 'snapshot', rows: [{ mint }], last: true })
    }
  })

  it.each(['mintlake.json', 'mintlake.msgpack'])(
    'reports the eviction of a token once, on every channel that it was in, with %s',
    async (protocol) => {
      const small = await openTestServer({ 'tokens-max': '2' })
      try {
        const [a, b, c] = [newMint(), newMint(), newMint()]
        await small.client.push(trade(a, Date.now(), 1), token(b))
        const reader = open(protocol, {}, small)
        const since = small.market.seq
        const topics = [
          { topic: 'market', since },
          { topic: 'token', mint: a },
          { topic: 'ohlc', mint: a },
        ]
        for (const topic of topics) await reader.send({ op: 'subscribe', ...topic })
        await reader.until('snapshot')
        await reader.until('snapshot')
        await small.client.push(token(c))
        const { seq } = small.market
        expect([
          await reader.next(),
          await reader.next(),
          await reader.next(),
          await reader.next(),
        ]).toMatchObject([
          { event: 'left', channel: 'market:all', mint: a, seq: seq - 1 },
          { event: 'changes', channel: 'market:all', rows: [{ mint: c, seq }], seq },
          { event: 'left', channel: `token:${a}`, mint: a, seq },
          { event: 'left', channel: `ohlc:${a}:1m`, mint: a, seq },
        ])
        await small.client.push(token(c, 'again'))
        expect(await reader.next()).toMatchObject({ event: 'changes', rows: [{ mint: c, name: 'again' }] })
        // The token comes back and is followed as before.
        await small.client.push(trade(a, Date.now(), 2))
        expect(await reader.next()).toMatchObject({ event: 'left', mint: b })
        expect([await reader.next(), await reader.next(), await reader.next()]).toMatchObject([
          { channel: 'market:all', rows: [{ mint: a }] },
          { channel: `token:${a}`, rows: [{ mint: a, priceUsd: 2 }] },
          { channel: `ohlc:${a}:1m`, rows: [{ c: 2 }] },
        ])
      } finally {
        await small.remove()
      }
    },
  )

  it('begins with a large list in several messages that have every row once', async () => {
    const mints = Array.from({ length: 500 }, newMint)
    await server.client.push(...mints.map((mint) => token(mint)))
    const reader = await subscribed({ topic: 'market', tab: 'new', limit: 100_000, order: 'asc' })
    const rows: { mint: string }[] = []
    for (let last = false; !last; ) {
      const snapshot = await reader.next()
      rows.push(...snapshot.rows)
      last = snapshot.last
    }
    const expected = server.market.page({
      tab: 'new',
      sort: 'created_timestamp',
      order: 'asc',
      offset: 0,
      limit: 1e5,
    })
    expect(new Set(rows.map(({ mint }) => mint)).size).toBe(rows.length)
    expect(rows).toHaveLength(expected.total)
  })

  it('can have several channels, each until it is unsubscribed', async () => {
    const mint = newMint()
    await server.client.push(token(mint))
    const reader = open()
    for (const topic of [
      { topic: 'token', mint },
      { topic: 'ohlc', mint },
      { topic: 'market', limit: 1 },
    ])
      await reader.send({ op: 'subscribe', id: topic.topic, ...topic })
    for (const id of ['token', 'ohlc', 'market']) {
      expect(await reader.next()).toMatchObject({ event: 'subscribed', id })
      expect(await reader.next()).toMatchObject({ event: 'snapshot', last: true })
    }
    await reader.send({ op: 'unsubscribe', topic: 'market', id: 7 })
    expect(await reader.next()).toMatchObject({ event: 'unsubscribed', channel: 'market:all', id: '7' })
    await server.client.push(trade(mint, Date.now(), 5))
    const channels = [(await reader.next()).channel, (await reader.next()).channel]
    expect(channels.toSorted()).toEqual([`ohlc:${mint}:1m`, `token:${mint}`])
    await reader.send({ op: 'ping' })
    expect(await reader.next()).toMatchObject({ event: 'pong', seq: server.market.seq })
  })

  it('accepts msgpack messages from a JSON reader too', async () => {
    const reader = open('mintlake.json')
    await reader.send({ op: 'ping', id: 'p' }, true)
    expect(await reader.next()).toMatchObject({ event: 'pong', id: 'p' })
  })

  it('answers every invalid message with an error that says how to correct it, and stays open', async () => {
    const mint = newMint()
    const reader = open()
    const wrong: [object | string, string, string?][] = [
      ['{', 'invalid_json'],
      ['[]', 'invalid_json'],
      [{}, 'invalid_parameter', '/op'],
      [{ op: 'dance' }, 'invalid_parameter', '/op'],
      [{ op: 'subscribe' }, 'invalid_parameter', '/topic'],
      [{ op: 'subscribe', topic: 'weather' }, 'invalid_parameter', '/topic'],
      [{ op: 'subscribe', topic: 'market', tab: 'lve' }, 'invalid_parameter', '/tab'],
      [{ op: 'subscribe', topic: 'market', tab: { a: 1 } }, 'invalid_parameter', '/tab'],
      [{ op: 'subscribe', topic: 'market', since: -1 }, 'invalid_parameter', '/since'],
      [{ op: 'subscribe', topic: 'market', since: 1.5 }, 'invalid_parameter', '/since'],
      [{ op: 'subscribe', topic: 'market', since: 1e30 }, 'invalid_parameter', '/since'],
      [{ op: 'subscribe', topic: 'market', since: 'NaN' }, 'invalid_parameter', '/since'],
      [{ op: 'subscribe', topic: 'market', since: [1] }, 'invalid_parameter', '/since'],
      [{ op: 'subscribe', topic: 'market', since: true }, 'invalid_parameter', '/since'],
      [{ op: 'subscribe', topic: 'token' }, 'invalid_parameter', '/mint'],
      [{ op: 'subscribe', topic: 'token', mint: 'x' }, 'invalid_mint', '/mint'],
      [{ op: 'subscribe', topic: 'token', mint }, 'token_not_found'],
      [{ op: 'subscribe', topic: 'ohlc', mint, tf: '7m' }, 'invalid_parameter', '/tf'],
      [{ op: 'unsubscribe', topic: 'market' }, 'invalid_parameter', '/topic'],
    ]
    for (const [message, code, pointer] of wrong) {
      await reader.send(message)
      const error = await reader.next()
      expect(error, JSON.stringify(message)).toMatchObject({
        event: 'error',
        ok: false,
        code,
        error: expect.any(String),
      })
      if (pointer !== undefined) expect(error.errors[0].pointer).toBe(pointer)
    }
    await reader.send({ op: 'subscribe', topic: 'market', tab: 'lve', id: 'mine' })
    expect(await reader.next()).toMatchObject({ id: 'mine', errors: [{ suggestion: 'live' }] })
  })

  it('sends heartbeats while nothing happens', async () => {
    const quiet = await openTestServer({}, { tuning: { follow: { heartbeatMs: 20 } } })
    try {
      const earliestMs = quiet.market.timeMs
      const reader = open(undefined, {}, quiet)
      await reader.send({ op: 'subscribe', topic: 'market' })
      let beat = await reader.until('heartbeat')
      // On a slow machine one comes before the first rows, with which the stream has a position.
      while (beat.seq === undefined) beat = await reader.until('heartbeat')
      expect(beat).toMatchObject({ seq: quiet.market.seq })
      // Market time passes without events too.
      expect(beat.ts).toBeGreaterThanOrEqual(earliestMs)
      expect(beat.ts).toBeLessThanOrEqual(quiet.market.timeMs)
      expect(await reader.until('heartbeat')).toMatchObject({ event: 'heartbeat' })
    } finally {
      await quiet.remove()
    }
  })

  it('ends with a bye message at its maximum age and when the server shuts down', async () => {
    const brief = await openTestServer({}, { tuning: { follow: { ageMsMax: 300 } } })
    const old = open(undefined, {}, brief)
    await old.send({ op: 'subscribe', topic: 'market' })
    expect(await old.until('bye')).toMatchObject({ reason: 'max_age', seq: brief.market.seq })
    expect(await old.closed).toEqual({ code: 1000, reason: 'max_age' })
    const young = open('mintlake.msgpack', {}, brief)
    await young.opened
    const removed = brief.remove()
    expect(await young.until('bye')).toMatchObject({ reason: 'draining' })
    expect(await young.closed).toEqual({ code: 1001, reason: 'draining' })
    await removed
  })
})

describe('the stream endpoint', () => {
  it('answers a plain request with the upgrade that it requires', async () => {
    const answer = await server.client.get('/api/v1/stream')
    expect(answer.status).toBe(426)
    expect(answer.body).toMatchObject({ ok: false, code: 'upgrade_required' })
    expect(answer.headers.get('upgrade')).toBe('websocket')
  })

  it('refuses an invalid key and unsupported subprotocols', async () => {
    await expect(open(undefined, { Authorization: 'Bearer ps_wrong' }).opened).rejects.toThrow('refused')
    // The last ones are names of members that every JavaScript object has.
    for (const protocol of ['soap', 'toString', 'constructor', 'hasOwnProperty'])
      await expect(open(protocol).opened, protocol).rejects.toThrow('refused')
    const key = await server.client.register()
    const reader = open(undefined, { 'X-API-Key': key })
    await reader.send({ op: 'subscribe', topic: 'market' })
    expect(await reader.next()).toMatchObject({ event: 'subscribed' })
    await server.client.request('DELETE', '/api/v1/keys/current', undefined, {
      Authorization: `Bearer ${key}`,
    })
    await reader.send({ op: 'subscribe', topic: 'market', tab: 'new' })
    expect(await reader.until('error')).toMatchObject({ code: 'revoked_key' })
  })

  it('counts a connection and its first subscriptions as one read, and each further subscription as one more', async () => {
    const counted = await openTestServer({ 'read-limit-anonymous': '3' })
    try {
      const mints = Array.from({ length: 101 }, newMint)
      await counted.client.push(...mints.map((mint) => token(mint)))
      const reader = open(undefined, {}, counted)
      const subscribe = (mint: string) => reader.send({ op: 'subscribe', topic: 'token', mint })
      for (const mint of mints.slice(0, 100)) {
        await subscribe(mint)
        expect(await reader.until('snapshot')).toMatchObject({ channel: `token:${mint}` })
      }
      // The second read subscribes to a channel again, the third to one more than the connection includes.
      for (const [left, mint] of [
        [mints[0], mints[0]],
        [mints[1], mints[100]],
      ]) {
        await reader.send({ op: 'unsubscribe', topic: 'token', mint: left })
        await subscribe(mint)
        expect(await reader.until('snapshot')).toMatchObject({ channel: `token:${mint}` })
      }
      await subscribe(mints[2])
      expect(await reader.until('error')).toMatchObject({ code: 'read_rate_limited', limit: 3, status: 429 })
      await expect(open(undefined, {}, counted).opened).rejects.toThrow('refused')
      expect((await counted.client.get('/api/v1/market')).status).toBe(429)
    } finally {
      await counted.remove()
    }
  })

  it('limits the number of streams, the subscriptions of one and the length of a message', async () => {
    const small = await openTestServer({}, { tuning: { follow: { followersMax: 1 } } })
    try {
      const mints = Array.from({ length: 101 }, newMint)
      await small.client.push(...mints.map((mint) => token(mint)))
      const reader = open(undefined, {}, small)
      for (const mint of mints) await reader.send({ op: 'subscribe', topic: 'token', mint })
      expect(await reader.until('error')).toMatchObject({ errors: [{ pointer: '/topic' }] })
      await expect(open(undefined, {}, small).opened).rejects.toThrow('refused')
      const followed = await small.client.get('/api/v1/market?format=ndjson&follow=1')
      expect(followed.status).toBe(429)
      expect(JSON.parse(followed.text)).toMatchObject({ code: 'read_rate_limited' })
      // A browser does not tell its page why a handshake was refused; the page asks so.
      const asked = await small.client.get('/api/v1/stream')
      expect(asked.body).toMatchObject({ code: 'read_rate_limited', error: JSON.parse(followed.text).error })
      await reader.send('x'.repeat(20_000))
      await reader.closed
    } finally {
      await small.remove()
    }
  })
})
