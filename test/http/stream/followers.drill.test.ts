// @module-tag drill
// A thousand followers on raw sockets in another process, a hundred of which never read: the memory that the server takes for
// them, what the others receive meanwhile, and how the hundred are disconnected.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { newMint } from '../../support/submission.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'
import type { Orders, Report } from './followers.child.ts'

const READING = 900
const STALLED = 100
const TOKENS = 20
const ROUNDS = 10
/** Rows that only the stalled followers request: more bytes than the kernel buffers for a socket that is not read. */
const BULK_TOKENS = 12_000
const STALLED_MS_MAX = 600_000

let server: TestServer
let child: ChildProcess
/** Added to the broadcaster's time: the test decides when a follower is too slow, however slow the machine is. */
let laterMs = 0
beforeEach(async () => {
  server = await openTestServer(
    { 'tokens-max': '20000' },
    { tuning: { follow: { stalledMsMax: STALLED_MS_MAX, now: () => performance.now() + laterMs } } },
  )
  child = fork(new URL('followers.child.ts', import.meta.url).pathname)
})
afterEach(async () => {
  child.kill('SIGKILL')
  await server.remove()
})

/** Sends an order and waits for its report. */
async function order<Answer extends keyof Report>(orders: Orders, answer: Answer): Promise<Report[Answer]> {
  child.send(orders)
  const [report] = (await once(child, 'message')) as [Report]
  expect(report).toHaveProperty(answer)
  return report[answer]
}

const metric = async (name: string): Promise<number> =>
  Number(new RegExp(`^${name} (.*)$`, 'm').exec((await server.client.get('/metrics')).text)![1])

it('of a thousand followers a hundred that never read take bounded memory, delay no other, and are disconnected', async () => {
  const apply = server.market.apply.bind(server.market) as (event: object, atMs: number) => void
  const description = 'x'.repeat(900)
  for (let index = 0; index < BULK_TOKENS; index++)
    apply({ type: 'token', mint: newMint(), ts: 1_000, name: 'Bulk', symbol: 'B', description }, Date.now())
  const mints = Array.from({ length: TOKENS }, newMint)
  for (const mint of mints) apply({ type: 'live', mint, ts: 1_000, isLive: true }, Date.now())

  /** Changes every token and waits until every reader has seen all changes. */
  const round = async (label: string) => {
    const name = `round ${label} ${Date.now()}`
    for (const mint of mints) apply({ type: 'token', mint, ts: 1_000, name, symbol: 'S' }, Date.now())
    return (await order({ await: { name, tokens: TOKENS } }, 'seen'))!.worstMs
  }
  const rounds = async (label: string) => {
    const worstMs: number[] = []
    for (let index = 0; index < ROUNDS; index++) worstMs.push(await round(`${label}${index}`))
    return worstMs.toSorted((a, b) => a - b)[ROUNDS >> 1]
  }

  await order({ open: { port: server.port, reading: READING, stalled: 0 } }, 'opened')
  const aloneMs = await rounds('alone')
  const before = process.memoryUsage().rss
  await order({ open: { port: server.port, reading: 0, stalled: STALLED } }, 'opened')
  while ((await metric('mintlake_streams_stalled')) < STALLED) await server.client.get('/health')
  const besideMs = await rounds('beside')
  const grown = process.memoryUsage().rss - before
  // A server with queues would hold the whole list (15 MB) and every round for each of them, 1.5 GB in all. This one holds
  // one chunk of at most 128 rows for each (16 MB in all), and the rows themselves once.
  expect(grown).toBeLessThan(300 * 1_048_576)
  expect(await metric('mintlake_streams')).toBe(READING + STALLED)
  // Waiting even once for one of them would take until it is disconnected.
  expect(besideMs).toBeLessThan(10 * aloneMs)

  laterMs = STALLED_MS_MAX
  while ((await metric('mintlake_streams')) > READING) await round('meanwhile')
  expect(await metric('mintlake_streams_slow_total')).toBe(STALLED)
  await round('afterwards')
  const ended = (await order({ resume: true }, 'ended'))!
  expect(ended).toHaveLength(STALLED)
  for (const { last, bytes } of ended) {
    // They have no position, as their first rows were never sent completely.
    expect(JSON.parse(last)).toEqual({ event: 'bye', reason: 'slow_consumer' })
    expect(bytes).toBeLessThan(BULK_TOKENS * description.length)
  }
})
