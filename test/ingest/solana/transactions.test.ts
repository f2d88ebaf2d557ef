// The rest of a truncated log, from endpoints that keep less of a transaction than others, or do not say it at once.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FETCH_ATTEMPTS_MAX } from '../../../src/ingest/solana/limits.ts'
import { LiveSource } from '../../../src/ingest/solana/source.ts'
import { TransactionFetcher } from '../../../src/ingest/solana/transactions.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { transactionAnswer, transactionOf } from '../../support/chain/transaction.ts'
import { ChainWorld, SOL } from '../../support/chain/world.ts'
import { type Refusal, SolanaNode } from '../../support/upstreams/solana-node.ts'

const world = new ChainWorld(7, { startMs: Date.now() })
const transaction = transactionOf('truncated', world.slot, world.launch(SOL).events, {
  ...{ noiseBytes: 20_000, isRouted: true },
})
/** As a node answers that keeps no inner instructions. */
const whole = transactionAnswer(transaction)
const WITHOUT_INSTRUCTIONS = {
  result: { ...whole, meta: { ...whole.meta, innerInstructions: null } },
} as unknown as Refusal

let nodes: SolanaNode[]
beforeEach(async () => {
  nodes = [await SolanaNode.start(), await SolanaNode.start()]
  for (const { history } of nodes) history.add(transaction)
})
afterEach(async () => {
  for (const node of nodes) await node.close()
})

/** What a fetcher tells: how many events it had, or why it lost the transaction; and how often each node was asked. */
async function fetched() {
  const rpcUrls = nodes.map(({ url }) => url)
  const source = new LiveSource(
    { rpcUrls, socketUrls: [], commitment: 'confirmed', requestsPerSecond: 1_000 },
    systemClock,
  )
  const told: (number | string)[] = []
  const fetcher = new TransactionFetcher(source.rpc, 'confirmed', new AbortController().signal, {
    onEvents: (_, __, events) => told.push(events.length),
    onLost: (_, reason) => told.push(reason),
  })
  fetcher.fetch(transaction.signature, transaction.slot)
  await fetcher.pending
  const { lost } = fetcher
  return { told, lost, asked: nodes.map((node) => node.asked('getTransaction').length) }
}

it('comes from an endpoint that keeps inner instructions, where another has none', async () => {
  nodes[0].refusals.getTransaction = WITHOUT_INSTRUCTIONS
  expect(await fetched()).toEqual({ told: [transaction.events.length], lost: 0, asked: [1, 1] })
})

describe('several at once', () => {
  let fetcher: TransactionFetcher
  let told: string[]
  const [node, others] = [() => nodes[0], ['first', 'second', 'third']]
  const asked = () =>
    node()
      .asked('getTransaction')
      .map(({ params }) => params[0])
  beforeEach(() => {
    const rpcUrls = [node().url]
    const source = new LiveSource(
      { rpcUrls, socketUrls: [], commitment: 'confirmed', requestsPerSecond: 1_000 },
      systemClock,
    )
    told = []
    fetcher = new TransactionFetcher(source.rpc, 'confirmed', new AbortController().signal, {
      onEvents: (signature) => told.push(signature),
      onLost: (signature) => told.push(`lost ${signature}`),
    })
  })

  it('are told in the order in which they were asked for, whichever is there first', async () => {
    const later = transactionOf('later', world.slot, world.launch(SOL).events, {
      ...{ noiseBytes: 20_000, isRouted: true },
    })
    const both = [later.signature, transaction.signature]
    for (const signature of both) fetcher.fetch(signature, world.slot)
    await expect.poll(asked, { interval: 5, timeout: 10_000 }).toContain(transaction.signature)
    node().history.add(later)
    await fetcher.pending
    expect(told).toEqual(both)
    expect(fetcher.pending).toBe(null)
  })

  it('that nobody has hold up the next as long as one of them', async () => {
    const all = [...others, transaction.signature]
    for (const signature of all) fetcher.fetch(signature, transaction.slot)
    await fetcher.pending
    expect(told).toEqual([...others.map((signature) => `lost ${signature}`), transaction.signature])
    // In turn, not each to its end.
    expect(new Set(asked().slice(0, others.length))).toEqual(new Set(others))
    expect(asked()).toHaveLength(others.length * FETCH_ATTEMPTS_MAX + 1)
  })

  it('that nobody has is told last, where the next one is there: it would be too late', async () => {
    for (const signature of [others[0], transaction.signature]) fetcher.fetch(signature, transaction.slot)
    await fetcher.pending
    expect(told).toEqual([transaction.signature, `lost ${others[0]}`])
    expect(fetcher.pending).toBe(null)
  })
})

it('that no endpoint keeps is told as lost', async () => {
  for (const node of nodes) node.refusals.getTransaction = WITHOUT_INSTRUCTIONS
  const told = [expect.stringContaining('no inner instructions')]
  expect(await fetched()).toEqual({ told, lost: 1, asked: [1, 1] })
})

describe('where one endpoint', () => {
  it.each<[string, Refusal]>([
    ['allows nobody', { status: 403 }],
    ['has no such method', { error: { code: -32_601, message: 'Method not found' } }],
    ['fails', { error: { code: -32_603, message: 'Internal error' } }],
    ['does not have it yet', { result: null } as unknown as Refusal],
  ])('%s, the other one is asked', async (_, refusal) => {
    nodes[0].refusals.getTransaction = refusal
    expect(await fetched()).toEqual({ told: [transaction.events.length], lost: 0, asked: [1, 1] })
  })

  it('refuses it, the other one is asked again while it has it not', async () => {
    nodes[0].refusals.getTransaction = { status: 403 }
    nodes[1].refusals.getTransaction = { result: null } as unknown as Refusal
    const fetching = fetched()
    await expect.poll(() => nodes[1].asked('getTransaction').length, { interval: 5, timeout: 10_000 }).toBe(2)
    nodes[1].refusals = {}
    expect(await fetching).toMatchObject({ told: [transaction.events.length], lost: 0, asked: [1, 3] })
  })

  it('and the other refuse it, it is lost at once, however it is refused', async () => {
    nodes[0].refusals.getTransaction = { status: 403 }
    nodes[1].refusals.getTransaction = WITHOUT_INSTRUCTIONS
    expect(await fetched()).toMatchObject({ lost: 1, asked: [1, 1] })
  })
})
