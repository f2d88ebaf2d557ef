// @module-tag drill
// What agents submitted to a live server, submitted again at the same recorded events of its market: every verdict, every award and every
// label is the same, row by row. The market moves within the millisecond of a submission too, before it and after it.
import { rmSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { withLakeReader } from '../../src/store/query/lake-reader.ts'
import { SteppedClock } from '../support/clock.ts'
import { submission } from '../support/submission.ts'
import { type Answer, openTestServer, temporaryFolder } from '../support/test-server.ts'
import { openStepped, removeFolder, START_MS } from './support.ts'

const MINTS = Array.from({ length: 6 }, (_, index) => mintOfSymbol(`again ${index}`))
const RATES = { 'submit-limits': 'rate=10,cooldown-ms=60000' }

let liveDir: string
afterAll(() => {
  rmSync(liveDir, { recursive: true, force: true })
  removeFolder()
})

interface Sent {
  /** Events before it that the test knows of. */
  events: number
  atMs: number
  agent: number
  body: Record<string, unknown>
  verdict: Record<string, unknown>
}

/** What is said of a submission, but for its identity. */
function verdictOf({ status, body }: Answer): Record<string, unknown> {
  const { analysisId: _id, requestId: _request, meta: _meta, ...verdict } = body
  return { ...verdict, status }
}

/** Trades of all tokens, some of which rise and some of which fall; a price moves by a third with `shift`. */
const tradesAt = (nowMs: number, shift = 0) =>
  MINTS.map((mint, index) => ({
    ...{
      type: 'trade',
      mint,
      ts: nowMs,
      side: (nowMs / 1_000) % 3 === 0 ? 'sell' : 'buy',
      tokenAmount: 1_000 + index,
    },
    priceUsd:
      0.001 * (1 + shift / 3) * (1 + index) * (1 + ((nowMs - START_MS) / 6e6) * (index % 2 === 0 ? 1 : -1)),
  }))

/** A live run of ten minutes: agents that are right, that deviate, and that fabricate. */
async function runLive(): Promise<Sent[]> {
  const clock = new SteppedClock(START_MS)
  const server = await openTestServer(RATES, { clock }, liveDir)
  const keys = [await server.client.register('one'), await server.client.register('two')]
  const sent: Sent[] = []
  const pass = (ms: number): void => {
    clock.pass(ms)
    server.market.advanceTo(clock.now())
  }
  let events = 0
  const push = async (...records: object[]): Promise<void> => {
    await server.client.push(...records)
    events += records.length
  }
  const ofTokens = { type: 'token', ts: START_MS, name: 'Again', symbol: 'AGAIN', totalSupply: 1e9 }
  await push(...MINTS.map((mint) => ({ ...ofTokens, mint })))
  for (let tick = 1; tick <= 125; tick++) {
    pass(4_990)
    await push(...tradesAt(clock.now()))
    pass(10)
    if (tick % 3 !== 0 || tick > 48) continue
    const turn = tick / 3
    const [agent, mint] = [turn % 2, MINTS[turn % MINTS.length]]
    await push(...tradesAt(clock.now(), 1))
    const { data } = (await server.client.get(`/api/v1/datapoint?mint=${mint}`)).body
    // Of what the market said, up to twice as much; or what it says then without being asked.
    const factor = [1, 1.3, 1.02, 2][turn % 4]
    const snapshot = { priceUsd: data.priceUsd * factor, snapshotAt: data.snapshotAt }
    const sentiment = turn % 2 === 0 ? 'bullish' : 'bearish'
    const body = submission(mint, { sentiment, ...(turn % 5 !== 0 && { snapshot }) })
    const answer = await server.client.post('/api/v1/analysis/submit', body, keys[agent])
    sent.push({ events, atMs: clock.now(), agent, body, verdict: verdictOf(answer) })
    // Each accepted one is recorded too, as a count of analyses.
    if (answer.status === 201) events++
    await push(...tradesAt(clock.now(), 2))
  }
  await server.recorded()
  await server.store.flushLake()
  await server.store.flushLake()
  await server.stop()
  return sent
}

/** Numbers of the recorded events that say how often a token was analysed: one for each accepted submission. */
const countedAt = (dataDir: string): Promise<number[]> =>
  withLakeReader({ dataDir }, async (reader) => {
    const sql = "SELECT event_no::DOUBLE FROM lake.events WHERE kind = 'analysisCount' ORDER BY event_no"
    const numbers: number[] = []
    for await (const batch of (await reader.query(sql)).batches)
      for (const [eventNo] of batch) numbers.push(Number(eventNo))
    return numbers
  })

/** What the lake has of submissions, but for identities and the machine's time. */
const rowsOf = (dataDir: string): Promise<string[]> =>
  withLakeReader({ dataDir }, async (reader) => {
    const rows: string[] = []
    for (const sql of [
      'SELECT * EXCLUDE (analysis_id, agent_id, known_at, feed) FROM lake.training ORDER BY submitted_at, mint',
      'SELECT * EXCLUDE (analysis_id, agent_id, known_at) FROM lake.rejections ORDER BY submitted_at, mint',
      'SELECT * EXCLUDE (analysis_id, known_at, feed) FROM lake.outcomes ORDER BY submitted_at, mint',
      'SELECT awarded_at, kind, xp FROM lake.xp_ledger ORDER BY ALL',
    ]) {
      const { batches } = await reader.query(`SELECT to_json(row)::VARCHAR AS row FROM (${sql}) AS row`)
      for await (const batch of batches) for (const [row] of batch) rows.push(String(row))
    }
    return rows
  })

test('the same submissions at the same recorded events get the same verdicts, XP and labels', async () => {
  liveDir = temporaryFolder()
  const sent = await runLive()
  const outcomes = new Set(sent.map(({ verdict }) => verdict.outcome ?? verdict.code))
  expect([...outcomes].sort()).toEqual(['agent_banned', 'rejected', 'unvalidated', 'validated'])
  const env = {
    MINTLAKE_SUBMIT_LIMITS: 'rate=10,cooldown-ms=60000',
    MINTLAKE_LABELS_DELAY_MS: '0',
  }
  const again = await openStepped(liveDir, { env })
  const keys = [
    (await again.app.agents.register({ name: 'one' })).key,
    (await again.app.agents.register({ name: 'two' })).key,
  ]
  const accepted = sent.filter(({ verdict }) => verdict.status === 201)
  const recordedAt = await countedAt(liveDir)
  // Besides what the test knows of, the server has recorded its own events at the start.
  const own = recordedAt[0] - 1 - accepted[0].events
  expect(recordedAt).toEqual(accepted.map(({ events }) => own + events + 1))
  for (const { events, atMs, agent, body, verdict } of sent) {
    await again.driver.stepToEvent(own + events, atMs)
    const answer = await again.client.post('/api/v1/analysis/submit', body, keys[agent])
    expect(verdictOf(answer)).toEqual(verdict)
  }
  await again.driver.stepTo(again.span.toMs)
  await again.driver.flush()
  await again.driver.flush()
  await again.close()
  const [expected, found] = [await rowsOf(liveDir), await rowsOf(again.dataDir)]
  expect(expected.length).toBeGreaterThan(20)
  expect(expected.some((row) => /"labelled_to":"5m"/.test(row))).toBe(true)
  expect(found).toEqual(expected)
})
