// Gaps that touch an answer's bars are told in every format, and change its version.
import { unpack } from 'msgpackr'
import { expect, test } from 'vitest'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { checkedFetch, openTestServer } from '../../support/test-server.ts'

interface Answer {
  data: { t: number }[]
  meta: {
    gaps: number
    incomplete?: { from: number; to: number | null; reason: string; feed: string | null }[]
  }
}

test('ohlc, /health and /metrics tell a gap when it begins and when it has ended', async () => {
  const server = await openTestServer()
  try {
    const mint = mintOfSymbol('one')
    await server.client.push({
      type: 'trade',
      mint,
      ts: Date.now(),
      side: 'buy',
      tokenAmount: 1,
      priceUsd: 1,
    })
    const read = (format: string, etag = '') =>
      checkedFetch(`${server.url}/api/v1/ohlc?mint=${mint}&format=${format}`, {
        headers: { 'If-None-Match': etag, 'Cache-Control': 'no-cache' },
      })
    const whole = await read('json')
    const etag = whole.headers.get('etag')!
    expect(whole.headers.has('x-incomplete')).toBe(false)
    expect(((await whole.json()) as Answer).meta).not.toHaveProperty('incomplete')
    expect((await read('json', etag)).status).toBe(304)

    const fromMs = server.market.timeMs
    server.market.apply(
      { type: 'disconnect', ts: fromMs + 5, sinceMs: fromMs, feed: 'pumpportal' },
      fromMs + 5,
    )
    const changed = await read('json', etag)
    expect(changed.status).toBe(200)
    const { meta } = (await changed.json()) as Answer
    expect(meta.incomplete).toEqual([{ from: fromMs, to: null, reason: 'disconnect', feed: 'pumpportal' }])
    expect(unpack(Buffer.from(await (await read('msgpack')).arrayBuffer())).meta).toEqual(meta)
    for (const format of ['json', 'ndjson', 'msgpack', 'arrow'])
      expect((await read(format)).headers.get('x-incomplete'), format).toBe(
        `${fromMs}/;reason=disconnect;feed=pumpportal`,
      )
    const health = async () => JSON.parse((await server.client.get('/health')).text).gaps
    expect(await health()).toEqual({ open: meta.incomplete, recent: [] })
    expect((await server.client.get('/metrics')).text).toContain('mintlake_market_feeds_away 1\n')

    const toMs = fromMs + 20
    server.market.apply({ type: 'reconnect', ts: toMs, feed: 'pumpportal' }, toMs)
    server.market.apply({ type: 'gap', ts: toMs, fromMs: toMs - 3, toMs, reason: 'lost' }, toMs)
    const ended = [
      { from: fromMs, to: toMs, reason: 'disconnect', feed: 'pumpportal' },
      { from: toMs - 3, to: toMs, reason: 'lost', feed: null },
    ]
    const after = await read('json', changed.headers.get('etag')!)
    expect(((await after.json()) as Answer).meta.incomplete).toEqual(ended)
    expect(after.headers.get('x-incomplete')).toBe(
      `${fromMs}/${toMs};reason=disconnect;feed=pumpportal, ${toMs - 3}/${toMs};reason=lost`,
    )
    expect(await health()).toEqual({ open: [], recent: ended.toReversed() })
    expect(server.market.stats()).toMatchObject({ gaps: 2, gapsOpen: 0 })
  } finally {
    await server.remove()
  }
})
