// @module-tag drill
// A wall clock that is set back or ahead, over real HTTP and the real store: limits, bans and keys last as long as they
// say, and an honest snapshot stays one; after a restart nothing is forgotten, and nothing lasts longer than its length.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { SteppedClock } from '../support/clock.ts'
import { expectProblem, seedToken, submission, submit, VALUES } from '../support/submission.ts'
import {
  ADMIN_KEY,
  openTestServer,
  type Settings,
  type TestServer,
  temporaryFolder,
} from '../support/test-server.ts'

const START_MS = 1_795_000_000_000
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

let clock: SteppedClock
let server: TestServer

async function open(settings: Settings = {}, dataDir?: string): Promise<void> {
  clock = new SteppedClock(START_MS)
  server = await openTestServer(settings, { clock }, dataDir)
}
afterEach(() => server.remove())

function pass(ms: number): void {
  clock.pass(ms)
  server.market.advanceTo(clock.wallMs)
}

const token = () => seedToken(server.client, clock.wallMs)
const send = (key: string, body: unknown) => submit(server.client, key, body)
const fabricated = (mint: string) =>
  submission(mint, { snapshot: { ...VALUES, liquidity: 1, snapshotAt: server.market.timeMs } })
const agentIdOf = async (name: string): Promise<string> => {
  const headers = { Authorization: `Bearer ${ADMIN_KEY}` }
  const { data } = (await server.client.get('/api/v1/admin/agents', headers)).body
  return data.find((agent: { name: string }) => agent.name === name).agentId
}
const admin = (path: string, body: object) => server.client.post(`/api/v1/admin/${path}`, body, ADMIN_KEY)

it('setting the clock back extends no limit, restores no revoked key and puts no correct snapshot into the future', async () => {
  await open({ 'read-limit-anonymous': '2' })
  const key = await server.client.register()
  const [one, other] = [await token(), await token()]
  expect((await send(key, submission(one))).status).toBe(201)
  const revoked = (await server.client.post('/api/v1/keys/rotate', {}, key)).body.data.key
  await server.client.request('DELETE', '/api/v1/keys/current', undefined, {
    Authorization: `Bearer ${revoked}`,
  })
  const read = () => server.client.get('/api/v1/market?limit=1')
  for (const status of [200, 200, 429]) expect((await read()).status).toBe(status)
  clock.step(-HOUR_MS)
  expectProblem(await send(revoked, submission(other)), 'revoked_key')
  const headers = { Authorization: `Bearer ${key}` }
  const { data } = (await server.client.get(`/api/v1/datapoint?mint=${other}`, headers)).body
  // Both are correct: an agent that copies the time of the DataPoint, and one whose own clock is right.
  for (const [mint, snapshotAt] of [
    [other, data.snapshotAt],
    [await token(), clock.wallMs],
  ]) {
    const answer = await send(key, submission(mint, { snapshot: { ...VALUES, snapshotAt } }))
    expect(answer.status, answer.text).toBe(201)
  }
  pass(MINUTE_MS - 1)
  const early = await send(key, submission(one))
  expectProblem(early, 'mint_cooldown')
  expect(early.body.retryAfterMs).toBe(1)
  expectProblem(await read(), 'read_rate_limited')
  pass(1)
  expect((await send(key, submission(one))).status).toBe(201)
  expect((await read()).status).toBe(200)
})

it('the last ban or unban is in effect after a restart, even if the clock was set back between them', async () => {
  await open()
  const [banned, lifted] = [await server.client.register('banned'), await server.client.register('lifted')]
  await admin('unban', { agentId: await agentIdOf('banned') })
  await admin('ban', { agentId: await agentIdOf('lifted') })
  clock.step(-HOUR_MS)
  await admin('ban', { agentId: await agentIdOf('banned') })
  await admin('unban', { agentId: await agentIdOf('lifted') })
  const mint = await token()
  for (let run = 0; run < 2; run++) {
    expectProblem(await send(banned, submission(mint)), 'agent_banned')
    expect((await send(lifted, submission(mint))).status).toBe(run === 0 ? 201 : 429)
    if (run === 0) server = await server.restart()
    await server.client.push({ type: 'patch', mint, ts: clock.wallMs, fields: VALUES })
  }
})

it('after a restart a suspension and a cooldown from a clock that was ahead last no longer than their full length', async () => {
  await open({ 'submit-limits': `cooldown-ms=${2 * HOUR_MS}` })
  const [suspended, other] = [await server.client.register(), await server.client.register()]
  const [mint, ...others] = [await token(), await token(), await token(), await token()]
  clock.step(40 * DAY_MS)
  for (const each of others) await send(suspended, fabricated(each))
  expect((await send(other, submission(mint))).status).toBe(201)
  clock.step(-40 * DAY_MS)
  server = await server.restart()
  await server.client.push({ type: 'patch', mint, ts: clock.wallMs, fields: VALUES })
  const refused = await send(suspended, submission(mint))
  expectProblem(refused, 'agent_banned')
  expect(refused.body.bannedUntil).toBe(clock.wallMs + DAY_MS)
  expect((await send(other, submission(mint))).body.retryAfterMs).toBe(2 * HOUR_MS)
  pass(2 * HOUR_MS)
  expect((await send(other, submission(mint))).status).toBe(201)
  pass(22 * HOUR_MS)
  expect((await send(suspended, submission(mint))).status).toBe(201)
})

it('after a restart a cooldown of a day lasts for its remaining time', async () => {
  await open({ 'submit-limits': `cooldown-ms=${DAY_MS}` })
  const key = await server.client.register()
  const mint = await token()
  expect((await send(key, submission(mint))).status).toBe(201)
  pass(DAY_MS - HOUR_MS)
  server = await server.restart()
  await server.client.push({ type: 'patch', mint, ts: clock.wallMs, fields: VALUES })
  const refused = await send(key, submission(mint))
  expectProblem(refused, 'mint_cooldown')
  expect(refused.body.retryAfterMs).toBe(HOUR_MS)
  pass(HOUR_MS)
  expect((await send(key, submission(mint))).status).toBe(201)
})

it('cooldowns and strikes of a replay in recorded time survive a restart', async () => {
  const dataDir = temporaryFolder()
  const file = join(dataDir, 'trades.csv')
  const rows = Array.from({ length: 9 }, (_, i) => `${1_600_000_000_000 + i},TKN,${1 + i / 100},5`)
  writeFileSync(file, `ts,symbol,price,size\n${rows.join('\n')}\n`)
  await open({ feed: 'replay', replay: `file=${file},speed=max` }, dataDir)
  const [key, other] = [await server.client.register(), await server.client.register()]
  const mint = mintOfSymbol('TKN')
  await expect.poll(() => server.market.stats().trades).toBe(rows.length)
  const wrong = submission(mint, { snapshot: { priceUsd: 9, snapshotAt: server.market.timeMs } })
  expect((await send(key, submission(mint))).status).toBe(201)
  expect((await send(other, wrong)).body.strikes).toBe(1)
  for (const agent of [key, other]) expectProblem(await send(agent, submission(mint)), 'mint_cooldown')
  server = await server.restart()
  await expect.poll(() => server.market.stats().trades).toBe(rows.length)
  for (const agent of [key, other]) expectProblem(await send(agent, submission(mint)), 'mint_cooldown')
  clock.pass(MINUTE_MS)
  expect((await send(other, wrong)).body.strikes).toBe(2)
})
