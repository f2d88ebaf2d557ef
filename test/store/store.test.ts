// Commits through the store's interface: what was acknowledged is stored atomically and recovered.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TABLES } from '../../src/schema/tables.ts'
import { StoreError } from '../../src/store/errors.ts'
import type { Store } from '../../src/store/store.ts'
import { clockOf } from '../support/clock.ts'
import {
  NOON_MS,
  openTestStore,
  removeFolder,
  rowOf,
  submission,
  temporaryFolder,
  writeOf,
} from './support.ts'

const DAY_MS = 24 * 3_600_000

let folder: string
let store: Store | null

beforeEach(() => {
  folder = temporaryFolder()
  store = null
})
afterEach(async () => {
  await store?.close()
  removeFolder(folder)
})

async function open(options: Parameters<typeof openTestStore>[1] = {}): Promise<Store> {
  await store?.close()
  store = await openTestStore(folder, options)
  return store
}

describe('a commit', () => {
  test('of what no row can hold is refused alone, not with those that come at the same time', async () => {
    const opened = await open()
    const [bad, good] = await Promise.allSettled([
      opened.commit([writeOf('tokens', { mint: 'bad', created_at: -9e15 })]),
      opened.commit([writeOf('tokens', { mint: 'good' })]),
    ])
    expect([bad.status, good.status]).toEqual(['rejected', 'fulfilled'])
  })

  test('gives back an accepted or rejected row as it was stored, every type of cell included', async () => {
    const opened = await open()
    // A client's clock may count fractions of a millisecond, and its text may hold half a surrogate pair.
    await opened.commit(submission('an_0', { snapshot_at: NOON_MS + 0.75, summary: 'half \ud83d a pair' }))
    expect(await opened.analysis('an_0')).toMatchObject({
      snapshot_at: NOON_MS,
      summary: 'half \ufffd a pair',
    })
    const row = rowOf('training', {
      analysis_id: 'an_1',
      summary: 'naïve 💎 “quotes” \' " \\ \n and a NUL \u0000 inside',
      price_usd: 4.5e-9,
      market_cap: null,
      holder_count: 0,
      unique_wallet_24h: Number.MAX_SAFE_INTEGER,
      transfer_fee_enabled: null,
      risk_factors: ['whale_dominance', 'copy_token'],
      snapshot_at: NOON_MS - 1,
      known_at: 1,
    })
    await opened.commit([{ table: 'training', row }])
    // known_at is the moment of the commit, whatever the caller said.
    expect(await opened.analysis('an_1')).toEqual({ ...row, known_at: NOON_MS })
    expect(await opened.analysis("' OR true --")).toBeNull()
    await opened.commit([writeOf('rejections', { analysis_id: 'an_bad', strikes: 2 })])
    expect(await opened.analysis('an_bad')).toMatchObject({ strikes: 2 })
  })

  test('is one in memory too: a row that does not fit its table stores nothing of its commit', async () => {
    const opened = await open()
    const bad = [writeOf('training', { analysis_id: 'an_bad' }), writeOf('xp_ledger', { xp: Number.NaN })]
    await expect(opened.commit(bad)).rejects.toThrow('xp_ledger.xp is a DOUBLE')
    await expect(opened.commit([writeOf('agents', { name: null })])).rejects.toThrow(
      'agents.name is never null',
    )
    await expect(opened.commit([writeOf('agents', { nickname: 'x' })])).rejects.toThrow(
      'agents has a column nickname',
    )
    expect(await opened.analysis('an_bad')).toBeNull()
  })
})

describe('a store opened again', () => {
  test('sums the ledger, counts coverage, and tells when strikes and cooldowns were by the wall clock', async () => {
    let nowMs = NOON_MS - 31 * DAY_MS
    const clock = clockOf(() => nowMs)
    const first = await open({ clock })
    await first.commit([writeOf('rejections', { agent_id: 'agent-3', received_at: nowMs })])
    nowMs = NOON_MS - 29 * DAY_MS
    await first.commit([writeOf('rejections', { agent_id: 'agent-3', mint: 'C', received_at: nowMs })])
    nowMs = NOON_MS - DAY_MS
    await first.commit(submission('an_3', { mint: 'B', submitted_at: nowMs }))
    nowMs = NOON_MS
    await first.commit(submission('an_1', { mint: 'A', sentiment: 'bullish', score: 10 }))
    await first.commit(
      submission('an_2', { mint: 'A', sentiment: 'bearish', score: 90, agent_id: 'agent-2' }),
    )
    await first.commit([
      writeOf('xp_ledger', { agent_id: 'agent-2', kind: 'trade', xp: 10, analysis_id: null }),
    ])
    const { recovered } = await open({ clock })
    expect(recovered.xpTotals).toEqual([
      { agentId: 'agent-1', xp: 35, analyses: 2 },
      { agentId: 'agent-2', xp: 27.5, analyses: 1 },
    ])
    expect(recovered.coverage).toEqual([
      { mint: 'A', count: 2, lastSentiment: 'bearish', lastScore: 90 },
      { mint: 'B', count: 1, lastSentiment: 'text', lastScore: 0.5 },
    ])
    expect(recovered.cooldowns.slice(-2)).toEqual([
      { agentId: 'agent-1', mint: 'A', atMs: NOON_MS },
      { agentId: 'agent-2', mint: 'A', atMs: NOON_MS },
    ])
    expect(recovered.strikes).toEqual([
      { agentId: 'agent-3', atMs: NOON_MS - 31 * DAY_MS },
      { agentId: 'agent-3', atMs: NOON_MS - 29 * DAY_MS },
    ])
  })

  test('hands over agents, keys and events in order of commit, and attempts and answers with their times', async () => {
    let nowMs = NOON_MS - DAY_MS
    const clock = clockOf(() => nowMs)
    const first = await open({ clock })
    await first.commit([
      writeOf('agents', { agent_id: 'agent-1' }),
      writeOf('agent_keys', { key_hash: 'h' }),
      writeOf('agent_events', { at: NOON_MS, kind: 'banned' }),
      writeOf('agent_events', { at: NOON_MS, kind: 'unbanned' }),
      writeOf('agent_events', { at: NOON_MS - 5, kind: 'suspended' }),
      writeOf('idempotency', { idempotency_key: 'old', at: nowMs }),
    ])
    nowMs += 1
    await first.commit([writeOf('idempotency', { at: nowMs })])
    nowMs = NOON_MS - 60_000
    await first.commit([writeOf('submit_attempts', { at: nowMs })])
    nowMs += 1
    await first.commit([writeOf('submit_attempts', { at: nowMs })])
    nowMs = NOON_MS
    const { recovered } = await open({ clock })
    expect(recovered.agents).toEqual([rowOf('agents', { agent_id: 'agent-1' })])
    expect(recovered.agentKeys).toEqual([rowOf('agent_keys', { key_hash: 'h' })])
    // What was lifted is no longer told.
    expect(recovered.agentEvents.map((row) => row.kind)).toEqual(['unbanned', 'suspended'])
    expect(recovered.submitAttempts.map((row) => row.at)).toEqual([NOON_MS - 60_000, NOON_MS - 59_999])
    expect(recovered.idempotency.map((row) => row.at)).toEqual([NOON_MS - DAY_MS, NOON_MS - DAY_MS + 1])
  })

  test('is refused while another opening holds the folder; after close it refuses commits', async () => {
    const opened = await open()
    const second = openTestStore(folder)
    await expect(second).rejects.toBeInstanceOf(StoreError)
    await expect(second).rejects.toThrow('is already in use by this process')
    await Promise.all([opened.close(), opened.close()])
    await expect(opened.commit(submission('an_1'))).rejects.toMatchObject({ code: 'closing' })
  })
})

test('status tells rows, files and backlog of every lake table, and the size of the database', async () => {
  const opened = await open()
  await opened.commit(submission('an_1'))
  await opened.flushLake()
  await opened.commit(submission('an_2'))
  const status = await opened.status()
  expect(status.healthy).toBe(true)
  expect(status.databaseBytes).toBeGreaterThan(0)
  const expected = Object.values(TABLES).filter((table) => table.lakeDateColumn !== null)
  expect(status.lake.map((lake) => lake.table)).toEqual(expected.map((table) => table.name))
  expect(status.lake[0]).toEqual({
    table: 'training',
    files: 1,
    rows: 1,
    bytes: expect.any(Number),
    backlog: 1,
  })
})
