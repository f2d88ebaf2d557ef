// What streams tell of gaps that a client cannot have been told as they came: those that go on when it comes, and those that began or
// ended while it was away.
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { Delivery } from '../../../src/http/stream/delivery.ts'
import { Follower, type StreamWriter } from '../../../src/http/stream/follower.ts'
import { MINUTE_MS } from '../../../src/lib/time.ts'
import { Market } from '../../../src/market/market.ts'
import { FollowReader } from '../../support/follow-reader.ts'
import { StreamReader } from '../../support/stream-reader.ts'
import { newMint } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

const NOON_MS = Date.UTC(2026, 0, 2, 12)
let server: TestServer
const closers: (() => void)[] = []
beforeEach(async () => {
  server = await openTestServer()
  await server.client.push({ type: 'token', mint: newMint(), ts: Date.now(), name: 'N', symbol: 'S' })
})
afterEach(async () => {
  for (const close of closers.splice(0)) close()
  await server.remove()
})

const tell = (type: 'disconnect' | 'reconnect') => server.client.push({ type, ts: Date.now() })

/** Opens the market list as a stream. @returns the first lines, a row as `row` and a gap as `began` or `ended` */
async function linesOf(more: string, count: number): Promise<string[]> {
  const stream = new FollowReader(`${server.url}/api/v1/market?format=ndjson&${more}`)
  closers.push(() => stream.close())
  const lines = []
  for (let taken = 0; taken < count; taken++) lines.push(nameOf((await stream.next())!))
  return lines
}
const nameOf = ({ event = 'row', to }: { event?: string; to?: unknown }) =>
  event === 'gap' ? (to === null ? 'began' : 'ended') : event

function openSocket(): StreamReader {
  const reader = new StreamReader(`${server.url.replace('http', 'ws')}/api/v1/stream`)
  closers.push(() => reader.close())
  return reader
}

it('a stream begins with the gap that goes on', async () => {
  await tell('disconnect')
  expect(await linesOf('follow=1', 3)).toEqual(['began', 'row', 'heartbeat'])
  expect(await linesOf('follow=window', 2)).toEqual(['began', 'row'])
  expect(nameOf(await openSocket().next())).toBe('began')
})

it('a stream that resumes tells of gaps that ended since, and of no earlier one', async () => {
  await tell('disconnect')
  await tell('reconnect')
  await server.client.push({ type: 'token', mint: newMint(), ts: Date.now(), name: 'N', symbol: 'S' })
  const since = server.market.seq
  await tell('disconnect')
  expect(await linesOf(`follow=1&since=${since}`, 2)).toEqual(['began', 'heartbeat'])
  await tell('reconnect')
  await server.client.push({ type: 'token', mint: newMint(), ts: Date.now(), name: 'N', symbol: 'S' })
  expect(await linesOf(`follow=1&since=${since}`, 3)).toEqual(['heartbeat', 'ended', 'row'])
  const later = server.market.seq
  await server.client.push({ type: 'token', mint: newMint(), ts: Date.now(), name: 'N', symbol: 'S' })
  expect(await linesOf(`follow=1&since=${later}`, 2)).toEqual(['heartbeat', 'row'])
  const socket = openSocket()
  await socket.send({ op: 'subscribe', topic: 'market', since })
  const messages = []
  for (let taken = 0; taken < 3; taken++) messages.push(nameOf(await socket.next()))
  expect(messages).toEqual(['subscribed', 'ended', 'changes'])
})

it('a stream that resumes ends with the gap that goes on, though the same feed was away before', async () => {
  const since = server.market.seq
  for (const type of ['disconnect', 'reconnect', 'disconnect'] as const) await tell(type)
  expect(await linesOf(`follow=1&since=${since}`, 4)).toEqual(['began', 'heartbeat', 'ended', 'began'])
})

it('a socket that resumes several channels is told each gap once, however far back each goes', async () => {
  const earlier = server.market.seq
  for (const type of ['disconnect', 'reconnect'] as const) await tell(type)
  await server.client.push({ type: 'token', mint: newMint(), ts: Date.now(), name: 'N', symbol: 'S' })
  const since = server.market.seq
  for (const type of ['disconnect', 'reconnect'] as const) await tell(type)
  const socket = openSocket()
  const told: string[] = []
  for (const from of [since, since, earlier, earlier]) {
    await socket.send({ op: 'subscribe', topic: 'market', since: from })
    await socket.send({ op: 'ping' })
    for (let name = ''; name !== 'pong'; ) {
      name = nameOf(await socket.next())
      if (name === 'subscribed' || name === 'ended') told.push(name)
    }
  }
  expect(told).toEqual(['subscribed', 'ended', 'subscribed', 'subscribed', 'ended', 'subscribed'])
})

it('a socket that is full is told the gaps since it resumed once it is read again', async () => {
  const tokens = Array.from({ length: 900 }, (_, at) => ({
    ...{ type: 'token', mint: newMint(), ts: Date.now() },
    ...{ name: `Token ${at}`, symbol: 'S' },
  }))
  await server.client.push(...tokens)
  const since = server.market.seq
  for (const type of ['disconnect', 'reconnect'] as const) await tell(type)
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/api/v1/stream`)
  closers.push(() => socket.terminate())
  const told: string[] = []
  socket.on('message', (data) => {
    const message = JSON.parse(data.toString())
    if (message.id !== 'fill') told.push(nameOf(message))
  })
  await once(socket, 'open')
  const ask = (message: object) => socket.send(JSON.stringify({ op: 'subscribe', ...message }))
  socket.pause()
  const counted = async (name: string) =>
    Number(new RegExp(`^${name} (\\d+)`, 'm').exec((await server.client.get('/metrics')).text)?.[1])
  while ((await counted('mintlake_streams_stalled')) === 0) ask({ id: 'fill', topic: 'market', limit: 900 })
  const topics = [
    { topic: 'submissions' },
    ...tokens.slice(0, 2).map(({ mint }) => ({ topic: 'token', mint })),
  ]
  for (const topic of topics) ask({ ...topic, since })
  socket.send(JSON.stringify({ op: 'ping' }))
  expect(await counted('mintlake_streams_stalled')).toBe(1)
  socket.resume()
  const subscribed = topics.map(() => 'subscribed')
  await expect
    .poll(() => told.filter((name) => ['subscribed', 'pong', 'ended'].includes(name)))
    .toEqual([...subscribed, 'pong', 'ended'])
})

describe('a market that took the place of the one that a stream began with', () => {
  const apply = (market: Market, count: number, fromMs: number) => {
    for (let at = 0; at < count; at++) {
      const ts = fromMs + at * 1_000
      market.apply({ type: at % 2 === 0 ? 'disconnect' : 'reconnect', feed: 'push', ts }, ts)
    }
  }
  const open = (changesBefore: number) => {
    const market = new Market({ tokensMax: 10 })
    apply(market, 2, NOON_MS)
    const delivery = new Delivery(market)
    const told: { event: string; to: unknown }[] = []
    const writer = { write: (frame: Buffer) => told.push(JSON.parse(`${frame}`)) > 0, end() {}, close() {} }
    const { nextGap, generation } = delivery
    const owner = { key: '', client: '' }
    const start = { now: () => 0, startedAtMs: 0, nextGap, generation, owner, onWrite() {} }
    const follower = new Follower(writer as unknown as StreamWriter, 'ndjson', start)
    apply(market, changesBefore, NOON_MS + MINUTE_MS)
    delivery.tellGaps([follower])
    expect(told.splice(0)).toHaveLength(changesBefore)

    const other = new Market({ tokensMax: 10, firstSeq: 1_000 })
    apply(other, 6, NOON_MS + 2 * MINUTE_MS)
    market.adopt(other)
    return { delivery, follower, told }
  }

  it.each([2, 18])('tells it of its gaps, each once, also where the other had told of %i', (before) => {
    const { delivery, follower, told } = open(before)
    delivery.tellGaps([follower])
    expect(told.splice(0).map(nameOf)).toEqual(['began', 'ended', 'began', 'ended', 'began', 'ended'])
    delivery.tellGapsSince(follower, 1_000)
    delivery.tellGaps([follower])
    expect(told).toEqual([])
  })

  it.each([2, 18])('tells them each once where it resumes first, of %i before', (before) => {
    const { delivery, follower, told } = open(before)
    for (let channel = 0; channel < 2; channel++) delivery.tellGapsSince(follower, 1_000)
    delivery.tellGaps([follower])
    expect(told.map(nameOf)).toEqual(['began', 'ended', 'began', 'ended', 'began', 'ended'])
  })
})
