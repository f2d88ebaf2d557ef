// Who was told that a push was taken reads it, with the answers cached that a default server caches; and what a token changed from in the
// millisecond of its DataPoint is nothing to be compared with.
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { DEAR_INVALIDATIONS_AT_ONCE } from '../../src/http/limits.ts'
import { provenanceOf } from '../../src/ingest/feed-settings.ts'
import { explainRecording, type RecordingDeps, recordingOf } from '../../src/server/recording-mode.ts'
import { newMint, submission, submit } from '../support/submission.ts'
import { FEED_KEY, openTestServer, type TestServer } from '../support/test-server.ts'

let server: TestServer
beforeAll(async () => {
  server = await openTestServer({ 'page-age-ms': '50', 'submit-limits': 'rate=0,cooldown-ms=0' })
})
afterAll(() => server.remove())

const token = (mint: string) => ({ type: 'token', mint, ts: Date.now(), name: 'Read', symbol: 'READ' })
const trade = (mint: string, priceUsd: number) => ({
  ...{ type: 'trade', mint, ts: Date.now(), side: 'buy', tokenAmount: 10, priceUsd },
})

/** What each kind of answer says the price is. */
async function prices(mint: string): Promise<number[]> {
  const answers = await Promise.all([
    server.client.get(`/api/v1/datapoint?mint=${mint}`),
    server.client.get(`/api/v1/ohlc?mint=${mint}&tf=1d&limit=1`),
    server.client.get(`/api/v1/market?search=${mint}`),
  ])
  const [datapoint, bars, [row]] = answers.map(({ body }) => body.data)
  return [datapoint.priceUsd, bars.at(-1).c, row.price_usd ?? row.priceUsd]
}

/** The price after each push: less than the number of those that come at once, so that lists are of now too. */
async function readAfterEach(push: (mint: string, price: number) => Promise<unknown>): Promise<void> {
  const mint = newMint()
  await server.client.push(token(mint), trade(mint, 1))
  for (let price = 2; price <= DEAR_INVALIDATIONS_AT_ONCE / 3; price++) {
    await push(mint, price)
    expect(await prices(mint)).toEqual([price, price, price])
  }
}

describe('who was told that a push was taken reads it', () => {
  it('over HTTP', () => readAfterEach((mint, price) => server.client.push(trade(mint, price))))

  it('over a WebSocket', async () => {
    const socket = new WebSocket(`${server.client.url.replace('http', 'ws')}/api/v1/ingest`, {
      headers: { Authorization: `Bearer ${FEED_KEY}` },
    } as unknown as string[])
    await once(socket, 'open')
    await readAfterEach(async (mint, price) => {
      const told = once(socket, 'message')
      socket.send(JSON.stringify(trade(mint, price)))
      const [{ data }] = await told
      expect(JSON.parse(data)).toMatchObject({ ok: true, accepted: 1 })
    })
    socket.close()
  })

  it('in a list whose rows are as before, but for one that came or how many there are', async () => {
    for (const query of ['limit=1', 'limit=1&order=asc', 'tab=live&limit=500']) {
      const list = async () => (await server.client.get(`/api/v1/market?${query}`)).body
      const mint = newMint()
      const before = await list()
      await server.client.push(token(mint), { type: 'live', mint, ts: Date.now(), isLive: true })
      const { data, meta } = await list()
      expect(meta.total, query).toBe(before.meta.total + 1)
      expect(meta.version).toBeGreaterThan(before.meta.version)
      if (meta.tab === 'live') expect(data.map((row: { mint: string }) => row.mint)).toContain(mint)
    }
  })

  it('DataPoint and bars also among many pushes', async () => {
    const mint = newMint()
    await server.client.push(token(mint), trade(mint, 1))
    for (let price = 2; price <= 2 * DEAR_INVALIDATIONS_AT_ONCE; price++) {
      await server.client.push(trade(mint, price))
      expect((await prices(mint)).slice(0, 2)).toEqual([price, price])
    }
  })
})

describe('a snapshot is compared with what its DataPoint said', () => {
  const PATCH = {
    marketCap: 1_000,
    liquidity: 100,
    holderCount: 200,
    top10HolderPct: 20,
    bondingProgress: 50,
  }
  const patch = (mint: string, fields: object) => ({ type: 'patch', mint, ts: Date.now(), fields })
  const read = async (mint: string) => (await server.client.get(`/api/v1/datapoint?mint=${mint}`)).body.data

  /** A submission with the DataPoint as it was read, but for a market cap that is so many times it. */
  async function verdictOf(mint: string, factor: number): Promise<string> {
    const { marketCap, liquidity, holderCount, snapshotAt } = await read(mint)
    const key = await server.client.register()
    const snapshot = { marketCap: marketCap * factor, liquidity, holderCount, snapshotAt }
    const answer = await submit(server.client, key, { ...submission(mint), snapshot })
    return answer.body.outcome ?? answer.body.code
  }

  it('not with the nearly empty one that the token had in the same millisecond', async () => {
    for (const [factor, outcome] of [
      [1, 'validated'],
      [1.4, 'unvalidated'],
      [10, 'rejected'],
    ] as const) {
      const mint = newMint()
      await server.client.push(token(mint), trade(mint, 0.001), patch(mint, PATCH))
      expect(await verdictOf(mint, factor)).toBe(outcome)
    }
  })

  it('nor with the one before a change', async () => {
    const mint = newMint()
    await server.client.push(token(mint), trade(mint, 0.001), patch(mint, PATCH))
    await server.client.push(patch(mint, { marketCap: 10_000 }))
    await server.client.push(patch(mint, { marketCap: 100_000 }))
    expect(await verdictOf(mint, 0.1)).toBe('rejected')
    expect(await verdictOf(mint, 1)).toBe('validated')
  })
})

it('a start warns where what is pushed is not kept', () => {
  const warned = (flags: string[], env: Record<string, string>): unknown[] => {
    const config = readConfig(flags, env)
    const lines: unknown[] = []
    const log = { info: () => {}, warn: (_: object, line: string) => lines.push(line) }
    const deps = { config, log, provenance: provenanceOf(config, false), replayed: null, publisher: null }
    explainRecording(deps as unknown as RecordingDeps, recordingOf(deps as unknown as RecordingDeps))
    return lines
  }
  const push = { MINTLAKE_FEED_KEY: FEED_KEY }
  expect(warned([], push)).toEqual([expect.stringContaining('gone with the next start')])
  expect(warned([], {})).toEqual([])
  expect(warned(['--feed', 'none'], push)).toEqual([])
  expect(warned(['--record', 'true'], push)).toEqual([])
  expect(warned(['--feed', 'none', '--record', 'false'], push)).toEqual([])
  // Another feed would not keep it either.
  expect(warned(['--record', 'false'], push)).toEqual([])
})
