// What nodes answer of the past where they have lost some of it, or fail in between.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { History, type Past, type PastBlock } from '../../../src/ingest/solana/healing/history.ts'
import { FETCH_ATTEMPTS_MAX, HEAL_AWAY_MS_MAX } from '../../../src/ingest/solana/limits.ts'
import { type ChainSource, LiveSource } from '../../../src/ingest/solana/source.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { transactionAnswer } from '../../support/chain/transaction.ts'
import { ChainWorld, SOL } from '../../support/chain/world.ts'
import { type Refusal, SolanaNode } from '../../support/upstreams/solana-node.ts'

const world = new ChainWorld(7, { startMs: Date.now(), slot: 300_000_000 })
const transaction = world.launch(SOL)
const { slot } = transaction

const HOUR_MS = 3_600_000
let nodes: SolanaNode[]
beforeEach(async () => {
  nodes = [await SolanaNode.start(), await SolanaNode.start()]
  for (const node of nodes) {
    node.history.add(transaction)
    node.slot = slot + 50
  }
})
afterEach(async () => {
  for (const node of nodes) await node.close()
})

function sourceOf(count: number): LiveSource {
  const rpcUrls = nodes.slice(0, count).map(({ url }) => url)
  const settings = { rpcUrls, socketUrls: [], requestsPerSecond: 1_000 }
  return new LiveSource({ ...settings, commitment: 'confirmed' }, systemClock)
}
function historyOf(time: Partial<Pick<ChainSource, 'clock' | 'wait'>> = {}, count = nodes.length): History {
  const source = Object.assign(sourceOf(count), time)
  return new History(source, new AbortController().signal, Date.now() + HOUR_MS)
}
const block = (count?: number): Promise<Past<PastBlock>> => historyOf({}, count).block(slot)
const soon = { interval: 5, timeout: 10_000 }
const METHOD_NOT_FOUND: Refusal = { error: { code: -32_601, message: 'Method not found' } }
const HAD = { ok: true, value: { transactions: [{ signature: transaction.signature }] } }
const asked = () => nodes.map((node) => node.asked('getBlock').length)

describe('a block that one endpoint has', () => {
  it('is had, though that one is busy while the other says twice that it keeps it no more', async () => {
    const [first, second] = nodes
    first.history.firstSlot = slot + 1
    second.refusals.getBlock = { status: 429, headers: { 'Retry-After': '1' } }
    const asking = block()
    await expect.poll(() => asked()[1], soon).toBe(1)
    second.refusals = {}
    expect(await asking).toMatchObject(HAD)
    expect(asked()).toEqual([1, 2])
  })

  it('is had, though the answer of the other is none', async () => {
    nodes[0].refusals.getBlock = { result: { parentSlot: 'none' } } as unknown as Refusal
    expect(await block()).toMatchObject(HAD)
  })
})

it('what one endpoint keeps no more and the other does not serve counts as kept no more', async () => {
  nodes[0].history.firstSlot = slot + 1
  nodes[1].refusals.getBlock = METHOD_NOT_FOUND
  expect(await block()).toMatchObject({ ok: false, fault: 'pruned' })
  expect(asked()).toEqual([1, 1])
})

it('an endpoint that may have what the other keeps no more is waited for, but not again and again', async () => {
  const [first, second] = nodes
  first.history.firstSlot = slot + 1
  second.refusals.getBlock = { status: 500 }
  let nowMs = 0
  const history = historyOf({
    clock: { now: () => nowMs, monotonicMs: () => nowMs },
    wait: async (ms) => {
      if (ms > HOUR_MS) await new Promise(() => {})
      nowMs += ms
    },
  })
  expect(await history.block(slot)).toMatchObject({ ok: false, fault: 'pruned' })
  expect(nowMs).toBeGreaterThan(HEAL_AWAY_MS_MAX)
  expect(nowMs).toBeLessThan(2 * HEAL_AWAY_MS_MAX)
  const [waitedMs, tries] = [nowMs, asked()[1]]
  expect(await history.block(slot)).toMatchObject({ ok: false, fault: 'pruned' })
  expect(nowMs - waitedMs).toBeLessThan(1_000)
  expect(asked()).toEqual([2, tries + 1])
  // As soon as it answers it counts again.
  second.refusals = {}
  expect(await history.block(slot)).toMatchObject(HAD)
})

it.each<[string, Refusal]>([
  ['does not come', 'hang'],
  ['waits behind another call in a pause', { status: 429, headers: { 'Retry-After': '60' } }],
])('what %s is waited for until the deadline, not beyond', async (_, refusal) => {
  const deadline = Promise.withResolvers<void>()
  const other = new AbortController()
  let isWaiting = false
  const source = Object.assign(sourceOf(1), {
    wait: (ms: number) => {
      if (ms > HOUR_MS / 2) return deadline.promise
      // Before the next try.
      isWaiting = true
      void source.rpc.call('getSlot', [], other.signal)
      return Promise.resolve()
    },
  })
  nodes[0].refusals.getBlock = refusal
  const asking = new History(source, new AbortController().signal, Date.now() + HOUR_MS).block(slot)
  await expect.poll(() => asked()[0], soon).toBe(1)
  if (refusal !== 'hang') await expect.poll(() => isWaiting, soon).toBe(true)
  deadline.resolve()
  expect(await asking).toMatchObject({ ok: false, fault: 'over' })
  other.abort()
})

describe('an error', () => {
  it.each<[string, Refusal]>([
    ['of the endpoint itself', { error: { code: -32_603, message: 'Internal error' } }],
    ['that says nothing', { error: { code: -32_000, message: 'Server error' } }],
    ['that is no answer at all', { jsonrpc: '1.0' } as unknown as Refusal],
  ])('%s is of that moment, where the next answer is none', async (_, refusal) => {
    nodes[0].refusals.getBlock = refusal
    const asking = block(1)
    await expect.poll(() => asked()[0], soon).toBe(1)
    nodes[0].refusals = {}
    expect(await asking).toMatchObject(HAD)
    expect(asked()).toEqual([2, 0])
  })

  it('that does not end is a refusal', async () => {
    nodes[0].refusals.getBlock = { error: { code: -32_603, message: 'Internal error' } }
    expect(await block(1)).toMatchObject({ ok: false, fault: 'refused' })
    expect(asked()).toEqual([FETCH_ATTEMPTS_MAX, 0])
  })

  it.each<[string, Refusal]>([
    ['no such method', METHOD_NOT_FOUND],
    ['no such parameters', { error: { code: -32_602, message: 'Invalid params' } }],
    ['not in this plan', { error: { code: -32_000, message: 'getBlock is not available on the free tier' } }],
    ['a version', { error: { code: -32_015, message: 'Transaction version (1) is not supported' } }],
    ['nobody may', { status: 403 }],
  ])('that says %s comes again, and is not waited for', async (_, refusal) => {
    nodes[0].refusals.getBlock = refusal
    expect(await block(1)).toMatchObject({ ok: false, fault: 'refused' })
    expect(asked()).toEqual([1, 0])
  })
})

describe('a transaction without metadata', () => {
  const { transaction: told } = transactionAnswer(transaction)
  const blockOf = (message: object): Refusal => {
    const lost = { transaction: { ...told, message }, meta: null }
    return { result: { parentSlot: slot - 1, transactions: [lost] } } as unknown as Refusal
  }
  const [router, ...programs] = told.message.accountKeys
  const lookup = { accountKey: router, writableIndexes: [], readonlyIndexes: [0] }

  it.each([
    ['names a program of ours', { accountKeys: [router, ...programs] }],
    ['may take its address from a table', { accountKeys: [router], addressTableLookups: [lookup] }],
  ])('that %s makes its block one that the endpoint cannot say: another one is asked', async (_, message) => {
    nodes[0].refusals.getBlock = blockOf(message)
    expect(await block(1)).toMatchObject({ ok: false, fault: 'refused' })
    expect(await block()).toMatchObject(HAD)
  })

  it('and of other programs is none of ours', async () => {
    nodes[0].refusals.getBlock = blockOf({ accountKeys: [router], addressTableLookups: [] })
    expect(await block(1)).toMatchObject({ ok: true, value: { transactions: [] } })
  })
})
