// Following a window of the market list through the client, over connections that are cut.
import { afterEach, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { newMint } from '../support/submission.ts'
import { openTestServer } from '../support/test-server.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

test('the rows are those of the window after every change, and again after a connection was cut', async () => {
  const server = await openTestServer()
  cleanups.push(() => server.remove())
  let cutter = new AbortController()
  const cuttable: typeof fetch = (input, init) => {
    cutter = new AbortController()
    return fetch(input, {
      ...init,
      signal: AbortSignal.any([cutter.signal, ...(init?.signal ? [init.signal] : [])]),
    })
  }
  const [low, middle, high] = [newMint(), newMint(), newMint()]
  const trade = (mint: string, priceUsd: number) =>
    server.client.push({ type: 'trade', mint, ts: Date.now(), side: 'buy', tokenAmount: 1, priceUsd })
  for (const [index, mint] of [low, middle, high].entries()) await trade(mint, index + 1)
  const client = createClient({ baseUrl: server.url, fetch: cuttable, backoff: { minMs: 1, maxMs: 4 } })
  const items = client.followWindow({ sort: 'price', limit: 2, fields: 'priceUsd' })
  const next = async () => {
    const { value, done } = await items.next()
    if (done) throw new Error('the window ended')
    return { rows: value.rows.map(({ mint, priceUsd }) => [mint, priceUsd]), total: value.total }
  }
  expect(await next()).toEqual({
    rows: [
      [high, 3],
      [middle, 2],
    ],
    total: 3,
  })
  await trade(low, 5)
  expect(await next()).toEqual({
    rows: [
      [low, 5],
      [high, 3],
    ],
    total: 3,
  })
  cutter.abort(new Error('the connection was cut'))
  expect(await next()).toEqual({
    rows: [
      [low, 5],
      [high, 3],
    ],
    total: 3,
  })
  expect((await client.totals()).tokens).toBe(3)
  await items.return()
  // An empty set is none of the tokens, not all.
  const none = client.followWindow({ mints: [] })
  expect((await none.next()).value).toMatchObject({ rows: [], total: 0 })
  await none.return()
  expect((await client.market({ mints: [] })).data).toEqual([])
})
