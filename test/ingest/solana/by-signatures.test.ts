// Lists of signatures as endpoints may give them: in short pages, pruned for one program, or the same page again and again.
import { expect, it } from 'vitest'
import { listSignatures } from '../../../src/ingest/solana/healing/by-signatures.ts'
import { History, type PastSignature } from '../../../src/ingest/solana/healing/history.ts'
import { PUMP_PROGRAM } from '../../../src/ingest/solana/programs.ts'
import { LiveSource } from '../../../src/ingest/solana/source.ts'
import { systemClock } from '../../../src/lib/clock.ts'

const NEWEST = 2_000
const newestFirst = (name: string, count: number): PastSignature[] =>
  Array.from({ length: count }, (_, index) => ({
    ...{ signature: `${name}${index}`, slot: NEWEST - index, failed: false },
  }))

/** The signatures of 500 slots, of an endpoint that gives `pageMax` at a time. */
async function list(curves: PastSignature[], pools: PastSignature[], pageMax: number, ignoresBefore = false) {
  const source = new LiveSource(
    { rpcUrls: ['http://node.example'], socketUrls: [], requestsPerSecond: 1, commitment: 'confirmed' },
    systemClock,
  )
  const history = new History(source, new AbortController().signal, Date.now() + 60_000)
  history.signatures = async (program, before) => {
    const all = program === PUMP_PROGRAM ? curves : pools
    const from = ignoresBefore ? 0 : all.findIndex(({ signature }) => signature === before) + 1
    return { ok: true, value: all.slice(from, from + pageMax) }
  }
  const slots = { fromSlot: NEWEST - 499, beforeSlot: NEWEST + 1 }
  return listSignatures(history, {
    ...{ ...slots, requestsMax: Number.POSITIVE_INFINITY, isTaken: () => false },
  })
}

it('in short pages is asked for until it is whole', async () => {
  const told = await list(newestFirst('c', 600), newestFirst('p', 600), 7)
  expect(told.ok && told.value.length).toBe(1_000)
})

it.each([
  ['curves', newestFirst('c', 40), newestFirst('p', 600)],
  ['pools', newestFirst('c', 600), newestFirst('p', 40)],
  ['either', newestFirst('c', 40), []],
])('that does not go back far enough for %s is not whole', async (_, curves, pools) => {
  expect(await list(curves, pools, 1_000)).toEqual({ ok: false, fault: 'pruned' })
})

it('of an endpoint that gives the same page for ever is not whole', async () => {
  expect(await list(newestFirst('c', 600), newestFirst('p', 600), 100, true)).toEqual({
    ok: false,
    fault: 'pruned',
  })
})
