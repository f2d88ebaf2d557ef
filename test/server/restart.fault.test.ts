// Positions and cursors across restarts of the real program: those from an earlier run are recognised as such by a later one.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { FollowReader } from '../support/follow-reader.ts'
import { StreamReader } from '../support/stream-reader.ts'
import { newMint } from '../support/submission.ts'
import {
  type Client,
  openTestServer,
  type ServerProcess,
  spawnServer,
  temporaryFolder,
} from '../support/test-server.ts'

const folders: string[] = []
function folder(): string {
  const made = temporaryFolder()
  folders.push(made)
  return made
}
afterEach(() => {
  for (const path of folders.splice(0)) rmSync(path, { recursive: true, force: true })
})

/** Earlier than all clocks of these tests. */
const TS = 1_600_000_000_000
const token = (mint: string) => ({ type: 'token', mint, ts: TS, name: 'Name', symbol: 'S' })
const FOLLOW = '/api/v1/market?format=ndjson&follow=1'

/** The last position and a cursor of a client whose connection ends in the middle of a run. */
async function tornOff(
  client: Client,
  cut: () => Promise<unknown>,
): Promise<{ seq: number; cursor: string }> {
  await client.push(token(newMint()), token(newMint()))
  const cursor = (await client.get('/api/v1/market?limit=1')).body.meta.nextCursor
  const stream = new FollowReader(client.url + FOLLOW)
  await stream.until(({ event }) => event === 'heartbeat')
  await client.push(...Array.from({ length: 10 }, () => token(newMint())))
  let seq = 0
  for (let rows = 0; rows < 10; rows++) seq = (await stream.next())!.seq!
  await cut()
  await stream.until(() => false).catch(() => {})
  return { seq, cursor }
}

/** Checks the next run. It has as many changes as the one before, so positions that started again from 0 would be accepted. */
async function expectForeign(
  client: Client,
  { seq, cursor }: { seq: number; cursor: string },
): Promise<void> {
  const mints = Array.from({ length: 30 }, newMint)
  await client.push(...mints.map((mint) => token(mint)))
  const list = await client.get('/api/v1/market')
  expect(Number(list.headers.get('x-list-version'))).toBeGreaterThan(seq)
  expect(list.body.meta.version).toBeGreaterThan(seq)
  const stream = new FollowReader(`${client.url}${FOLLOW}&since=${seq}`)
  // The time between the runs is told as well.
  expect(await stream.until(({ event }) => event !== 'gap')).toEqual({ event: 'resync' })
  const rows: unknown[] = []
  const end = await stream.until((line) => line.event === 'heartbeat' || rows.push(line.mint) === 0)
  // Those of the runs before are there too.
  expect(rows).toEqual(expect.arrayContaining(mints))
  expect(new Set(rows).size).toBe(rows.length)
  expect(end.seq).toBeGreaterThan(seq)
  stream.close()
  const socket = new StreamReader(`${client.url.replace('http', 'ws')}/api/v1/stream`)
  for (const topic of [{ topic: 'market' }, { topic: 'token', mint: mints[0] }]) {
    await socket.send({ op: 'subscribe', ...topic, since: seq })
    expect((await socket.until('subscribed')).seq).toBeUndefined()
    expect(await socket.until('resync')).toMatchObject({ event: 'resync' })
    expect((await socket.until('snapshot')).seq).toBeGreaterThan(seq)
  }
  socket.close()
  const page = await client.get(`/api/v1/market?cursor=${cursor}`)
  expect(page).toMatchObject({ status: 410, body: { code: 'cursor_expired' } })
}

it('a position from a killed run gets resync over HTTP and WebSocket, and a cursor from it gets 410', {
  tags: 'drill',
}, async () => {
  const dataDir = folder()
  const first = await spawnServer({}, dataDir)
  const held = await tornOff(first.client, () => first.kill())
  let second: ServerProcess | null = null
  try {
    second = await spawnServer({}, dataDir)
    await expectForeign(second.client, held)
  } finally {
    await second?.kill()
  }
})

it('positions and cursors of an earlier run are not accepted after the clock was set back or the reserved positions were lost', {
  tags: 'drill',
}, async () => {
  const dataDir = folder()
  let nowMs = Date.now()
  const clock = { now: () => nowMs, monotonicMs: () => performance.now() }
  const first = await openTestServer({}, { clock }, dataDir)
  const held = await tornOff(first.client, () => first.stop())
  nowMs -= 400 * 86_400_000
  const second = await openTestServer({}, { clock }, dataDir)
  await expectForeign(second.client, held)
  const later = await tornOff(second.client, () => second.stop())
  expect(later.seq).toBeGreaterThan(held.seq)
  rmSync(join(dataDir, 'positions.json'))
  nowMs += 401 * 86_400_000
  const third = await openTestServer({}, { clock }, dataDir)
  await expectForeign(third.client, later)
  await third.stop()
})
