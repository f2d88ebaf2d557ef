// @module-tag drill
// A gap that its feed heals, seen at readers of a cluster: the one ordered sequence of the writer, also where one begins in its midst.
import { afterEach, describe, expect, it } from 'vitest'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { FollowReader, type Line } from '../../support/follow-reader.ts'
import type { ServerProcess } from '../../support/test-server.ts'
import { hasNats, skipped, TestCluster } from '../support.ts'

const soon = { interval: 20, timeout: 20_000 }
const MINTS = ['one', 'two', 'three'].map(mintOfSymbol)

describe.skipIf(!hasNats)(`readers, while a feed of the writer heals${skipped}`, () => {
  let cluster: TestCluster
  afterEach(() => cluster.remove())

  it('have its gap, its changes and its end as the writer does, and so has one that begins meanwhile', async () => {
    cluster = await TestCluster.start()
    const startMs = Math.floor(Date.now() / 1_000) * 1_000
    const trade = (second: number, mint: string, priceUsd: number) => ({
      ...{
        type: 'trade',
        mint,
        ts: startMs - 200_000 + second * 1_000,
        side: 'buy',
        tokenAmount: 3,
        priceUsd,
      },
      ...{ wallet: `w${second % 4}` },
    })
    const writer = await cluster.writer()
    const reader = await cluster.reader()
    const push = (...records: object[]) => writer.client.push(...records)
    await push(
      ...MINTS.flatMap((mint, index) => [0, 1, 2].map((second) => trade(second, mint, 1 + index + second))),
    )
    const streams = [writer, reader].map(
      ({ client }) => new FollowReader(`${client.url}/api/v1/market?format=ndjson&follow=1`),
    )
    for (const stream of streams) await stream.until(({ event }) => event === 'heartbeat')
    const [sinceMs, healUntilMs] = [startMs - 190_000, startMs + 600_000]
    await push({ type: 'disconnect', ts: startMs, sinceMs, healUntilMs })
    const part = { fromMs: startMs - 100_000, toMs: startMs - 95_000, reason: 'pruned' }
    // Some of it comes, and what stays missing is known before its end.
    await push(trade(12, MINTS[0], 5), trade(40, MINTS[1], 6), trade(41, MINTS[0], 2))
    await push({ type: 'disconnect', ts: startMs, sinceMs, healUntilMs, missing: [part] })
    await push(trade(110, MINTS[2], 7))
    const late = await cluster.reader()
    const nodes = [writer, reader, late]
    await expectSame(nodes)
    expect((await late.client.get('/health')).body.gaps).toMatchObject({
      open: [{ from: sinceMs, healUntil: healUntilMs }],
    })
    await push(trade(150, MINTS[0], 8), trade(151, MINTS[1], 9), {
      type: 'reconnect',
      ts: startMs,
      healed: true,
    })
    await expectSame(nodes)
    for (const { client } of nodes) {
      const told = { from: part.fromMs, to: part.toMs, reason: 'pruned', feed: 'push' }
      await expect
        .poll(async () => (await client.get('/health')).body.gaps, soon)
        .toEqual({ open: [], recent: [told] })
      const { body } = await client.get(
        `/api/v1/ohlc?mint=${MINTS[0]}&tf=1s&limit=9&from=${startMs - 90_000}`,
      )
      expect(body.meta.incomplete ?? []).toEqual([])
    }
    const [ofWriter, ofReader] = await Promise.all(streams.map(gapsUntilPart))
    expect(ofReader).toEqual(ofWriter)
    expect(ofReader).toMatchObject([
      { from: sinceMs, to: null, healUntil: healUntilMs },
      { from: sinceMs, to: startMs, healed: true },
      { from: part.fromMs, to: part.toMs, reason: 'pruned' },
    ])
  })
})

/** The gaps that are told up to the part that stays, without when they were sent. */
async function gapsUntilPart(stream: FollowReader): Promise<Line[]> {
  const gaps: Line[] = []
  await stream.until(({ ts: _, ...line }) => {
    if (line.event === 'gap') gaps.push(line)
    return line.reason === 'pruned'
  })
  stream.close()
  return gaps
}

/** All nodes show the same tokens and bars. */
async function expectSame(nodes: readonly ServerProcess[]): Promise<void> {
  const shown = async ({ client }: ServerProcess) => {
    const market = (await client.get('/api/v1/market?limit=10')).body.data
    const bars = await Promise.all(
      MINTS.flatMap((mint) =>
        ['1s', '1m', '1h'].map(async (tf) => {
          const { data, meta } = (await client.get(`/api/v1/ohlc?mint=${mint}&tf=${tf}&limit=500`)).body
          return { data, incomplete: meta.incomplete }
        }),
      ),
    )
    return { market, bars }
  }
  const [first, ...others] = nodes
  for (const other of others) await expect.poll(async () => shown(other), soon).toEqual(await shown(first))
}
