// @module-tag drill
// A disk that refuses to record: what readers would never have is not in the writer's market either.
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { newMint, seedToken, submission, submit } from '../../support/submission.ts'
import { FEED_KEY, openTestServer, type TestServer } from '../../support/test-server.ts'
import { untilHealth } from '../faults/run.ts'
import { hasNats, skipped, TestCluster } from '../support.ts'

const WAITING_BYTES_MAX = 20_000
const TRADES = 200

let cluster: TestCluster | null = null
let server: TestServer | null = null
afterEach(async () => {
  await server?.remove()
  await cluster?.remove()
  server = cluster = null
})

const PAGE = '/api/v1/market?format=ndjson&tab=all&sort=created_timestamp&limit=100'

interface Page {
  version: string | null
  text: string
}

const pageOf = async (url: string): Promise<Page> => {
  const answer = await fetch(url + PAGE)
  return { version: answer.headers.get('x-list-version'), text: await answer.text() }
}

describe.skipIf(!hasNats)(`events that the disk refuses${skipped}`, () => {
  it('are refused, so that the same position is the same market on every node', async () => {
    cluster = await TestCluster.start()
    server = await openTestServer(
      { role: 'writer', bus: cluster.nats.url },
      { tuning: { journalWaitingBytesMax: WAITING_BYTES_MAX } },
    )
    const { client, dataDir } = server
    await expect.poll(async () => (await client.get('/readyz')).status, { timeout: 20_000 }).toBe(200)
    const mint = await seedToken(client, Date.now())
    const other = newMint()
    await client.push({ type: 'token', mint: other, ts: Date.now(), name: 'Other', symbol: 'O' })
    const reader = await cluster.reader({ reader: 'lag-max-ms=5000', 'page-age-ms': '0' })
    const key = await reader.client.register()
    const { restored } = (await reader.client.get('/health')).body.cluster
    // The open segment ends, and no other can be made.
    await server.checkpoint()
    const folder = join(dataDir, 'journal')
    renameSync(folder, `${folder}.away`)
    writeFileSync(folder, '')

    let price = 1
    const push = async (): Promise<{ accepted: number; codes: string[] }> => {
      const trades = Array.from({ length: TRADES }, () => ({
        ...{ type: 'trade', mint, ts: Date.now(), side: 'buy', tokenAmount: 1, priceUsd: price++ },
      }))
      const answer = await client.request(
        'POST',
        '/api/v1/ingest',
        trades.map((trade) => JSON.stringify(trade)).join('\n'),
        {
          'Content-Type': 'application/x-ndjson',
          Authorization: `Bearer ${FEED_KEY}`,
        },
      )
      return {
        accepted: answer.body.accepted,
        codes: answer.body.errors?.map(({ code }: { code: string }) => code) ?? [],
      }
    }
    await expect.poll(push, { timeout: 20_000 }).toMatchObject({ accepted: 0 })
    expect((await push()).codes).toContain('not_recorded')
    await untilHealth(client, /market events are not recorded/)
    const frozen = (await client.get(`/api/v1/datapoint?mint=${mint}`)).body.data.priceUsd
    await push()
    expect((await client.get(`/api/v1/datapoint?mint=${mint}`)).body.data.priceUsd).toBe(frozen)
    // It is judged and stored as ever; that the token was analysed is told later.
    expect((await submit(client, key, submission(other))).status).toBe(201)

    rmSync(folder)
    renameSync(`${folder}.away`, folder)
    await expect.poll(async () => (await push()).accepted, { timeout: 20_000 }).toBe(TRADES)
    await expect
      .poll(
        async () => {
          const [ours, theirs] = [await pageOf(server!.url), await pageOf(reader.client.url)]
          return ours.version === theirs.version && ours.text === theirs.text
        },
        { timeout: 20_000 },
      )
      .toBe(true)
    const health = (await reader.client.get('/health')).body
    expect(health.cluster.restored).toBe(restored)
    expect(health.gaps.recent.map(({ reason }: { reason: string }) => reason)).toContain('lost')
    const row = (await pageOf(reader.client.url)).text.split('\n').find((line) => line.includes(other))
    expect(JSON.parse(row ?? '{}').analysis_count).toBe(1)
  }, 90_000)
})
