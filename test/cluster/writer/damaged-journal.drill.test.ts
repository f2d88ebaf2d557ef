// @module-tag drill
// A byte of the writer's journal that changes at rest: what readers have from the stream is not in the journal any more. No node shows
// another market under the same ETag.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { flipNewestSegment } from '../../checkpoint/support.ts'
import { newMint } from '../../support/submission.ts'
import { type Client, openTestServer, type TestServer } from '../../support/test-server.ts'
import { hasNats, skipped, TestCluster } from '../support.ts'

const TOKENS = 20
const ROUNDS = 6
const LEVEL_MS_MAX = 120_000

const mints = Array.from({ length: TOKENS }, newMint)
const PAGE = '/api/v1/market?format=ndjson&tab=all&sort=market_cap&limit=100'

let cluster: TestCluster
let server: TestServer | null
beforeEach(async () => {
  cluster = await TestCluster.start()
  server = null
})
afterEach(async () => {
  await server?.remove()
  await cluster.remove()
})

/** Launches, and trades of each token, in batches of their own. */
async function push(client: Client): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const ts = Date.now()
    const journalOf = async () => (await client.get('/health')).body.recording.journal
    const { writtenEventNo } = await journalOf()
    await client.push(
      ...mints.flatMap((mint, at) => [
        { type: 'token', mint, ts, name: `Token ${at}`, symbol: `T${at}` },
        { type: 'trade', mint, ts, side: 'buy', tokenAmount: 10 + at, priceUsd: 1 + round },
      ]),
    )
    const isSynced = async (): Promise<boolean> => (await journalOf()).syncedEventNo > writtenEventNo
    await expect.poll(isSynced, { timeout: LEVEL_MS_MAX }).toBe(true)
  }
}

const pageOf = async ({ url }: Client): Promise<{ etag: string | null; text: string }> => {
  const answer = await fetch(url + PAGE)
  return { etag: answer.headers.get('etag'), text: await answer.text() }
}

/** Reads pages of both until they have told the same position. */
async function expectSame(one: Client, other: Client): Promise<void> {
  const told = new Map<string, string>()
  const isTold = async (): Promise<boolean> => {
    let isShared = false
    for (const [client, before] of [
      [one, 'one'],
      [other, 'other'],
    ] as const) {
      const { etag, text } = await pageOf(client)
      const known = told.get(`${etag}`)
      if (known !== undefined) {
        expect(known.slice(known.indexOf(' ') + 1)).toBe(text)
        isShared ||= !known.startsWith(`${before} `)
      } else told.set(`${etag}`, `${before} ${text}`)
    }
    return isShared
  }
  await expect.poll(isTold, { timeout: LEVEL_MS_MAX, interval: 50 }).toBe(true)
}

const health = async (client: Client) => (await client.get('/health')).body

describe.skipIf(!hasNats)(`a writer whose journal is damaged at rest${skipped}`, () => {
  it('brings a copy of its market to the bus, from which readers begin', async () => {
    server = await openTestServer({ role: 'writer', bus: cluster.nats.url })
    const { client, dataDir } = server
    await expect.poll(async () => (await client.get('/readyz')).status, { timeout: LEVEL_MS_MAX }).toBe(200)
    await push(client)
    flipNewestSegment(dataDir)
    await push(client)
    await server.checkpoint()
    const { checkpoints } = (await health(client)).recording
    expect(checkpoints).toMatchObject({ copied: 1, failures: 0 })
    const uploaded = async () => (await health(client)).cluster.checkpoints.uploadedEventNo
    await expect.poll(uploaded, { timeout: LEVEL_MS_MAX }).toBe(checkpoints.newest.eventNo)
    const reader = await cluster.reader({ 'page-age-ms': '0' })
    expect((await health(reader.client)).cluster.restored).toBe(1)
    await expectSame(client, reader.client)
  }, 480_000)
})
