// What streams tell of gaps that a client cannot have been told as they came: those that go on when it comes, and those that began or
// ended while it was away.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { FollowReader } from '../../support/follow-reader.ts'
import { StreamReader } from '../../support/stream-reader.ts'
import { newMint } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'

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
