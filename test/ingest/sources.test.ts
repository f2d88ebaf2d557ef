// Tests of the real server with local upstreams: it reports the state of its sources and survives whatever they send.
import { expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { openTestServer, spawnServer } from '../support/test-server.ts'
import { createFrame, PumpPortalServer, tradeFrame } from '../support/upstreams/pumpportal-server.ts'

const soon = { interval: 10, timeout: 20_000 }
const mint = mintOfSymbol('sources')

test('hostile frames do not end the server, and log, /readyz and /health show what its sources lack and lose', {
  tags: 'drill',
}, async () => {
  const upstream = await PumpPortalServer.start()
  const server = await spawnServer({ feed: 'pumpportal', providers: `pumpportal-url=${upstream.url}` })
  const feedOf = async () => (await server.client.get('/health')).body.feeds[0]
  try {
    const warnings = () => server.lines.filter((line) => line.includes('"level":40')).join('\n')
    expect(warnings()).toContain('but no trades: set MINTLAKE_PUMPPORTAL_KEY')
    expect(warnings()).toContain('until there is a price of SOL: set MINTLAKE_BIRDEYE_KEY or --sol-price')
    expect(await feedOf()).toMatchObject({ state: 'running', isConnected: true, latestError: null })
    for (const frame of [
      `{"errors":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
      '{"errors":{"toString":1}}',
      '{"txType":"buy","signature":{"length":{"toString":1}}}',
    ])
      upstream.send(frame)
    await server.client.push({ type: 'solPrice', ts: Date.now(), usd: 150 })
    upstream.send(createFrame(mint))
    upstream.send(tradeFrame(mint, 'after'))
    await expect.poll(async () => (await feedOf()).accepted, soon).toBe(3)
    await upstream.close()
    await expect.poll(async () => (await feedOf()).state, soon).toBe('reconnecting')
    await expect.poll(async () => (await feedOf()).latestError?.message, soon).toContain('ECONNREFUSED')
    expect(await feedOf()).toMatchObject({ isConnected: false, stateSinceMs: expect.any(Number) })
    expect(warnings()).toContain('disconnected: data may be missing; trying again')
    expect(warnings()).toContain('not connected: trying again')
    // The market's data is still served.
    const ready = await server.client.get('/readyz')
    expect(ready).toMatchObject({
      status: 200,
      body: {
        feeds: [
          { feed: 'pumpportal', state: 'reconnecting' },
          { feed: 'push', state: 'running' },
        ],
      },
    })
    expect(await server.terminate()).toBe(0)
  } finally {
    await server.kill()
    await upstream.close()
  }
})

test('a server is not ready until its source was reached once; it says why and serves pushed data', async () => {
  const upstream = await PumpPortalServer.start()
  await upstream.close()
  const server = await openTestServer({
    feed: 'pumpportal',
    providers: `pumpportal-url=${upstream.url}`,
    'sol-price': '150',
  })
  const refused = await server.client.get('/readyz')
  expect(refused).toMatchObject({ status: 503, body: { code: 'warming_up' } })
  expect(refused.body.detail).toMatch(/^PumpPortal has not been reached yet: .*ECONNREFUSED/)
  expect(refused.body.feeds).toMatchObject([
    { feed: 'pumpportal', state: 'reconnecting', latestError: { atMs: expect.any(Number) } },
    { feed: 'push', state: 'running' },
  ])
  await server.client.push({ type: 'token', mint, ts: Date.now(), name: 'Pushed', symbol: 'P' })
  expect((await server.client.get('/api/v1/market')).status).toBe(200)
  const back = await PumpPortalServer.start(upstream.port)
  await expect.poll(async () => (await server.client.get('/readyz')).status, soon).toBe(200)
  await server.remove()
  await back.close()
})

test('a connection that is lost in the middle of a bar is told with the bars of that time', async () => {
  const upstream = await PumpPortalServer.start()
  const server = await openTestServer({
    feed: 'pumpportal',
    providers: `pumpportal-url=${upstream.url}`,
    'sol-price': '150',
  })
  const feed = async () => (await server.client.get('/health')).body.feeds[0]
  const trade = async (name: string) => {
    const { accepted } = await feed()
    upstream.send(tradeFrame(mint, name))
    await expect.poll(async () => (await feed()).accepted, soon).toBe(accepted + 1)
  }
  await expect.poll(async () => (await feed()).state, soon).toBe('running')
  await trade('before')
  const { latestFrameAtMs } = await feed()
  upstream.drop()
  await expect.poll(async () => (await feed()).disconnects, soon).toBe(1)
  await expect.poll(async () => (await feed()).state, soon).toBe('running')
  const { stateSinceMs } = await feed()
  await trade('after')
  const { data, meta } = (await server.client.get(`/api/v1/ohlc?mint=${mint}&tf=1s`)).body
  const [lost] = meta.incomplete.slice(-1)
  expect(lost).toMatchObject({ from: latestFrameAtMs, reason: 'disconnect', feed: 'pumpportal' })
  // Two readings of the clock.
  expect(Math.abs(lost.to - stateSinceMs)).toBeLessThan(100)
  expect(data[0].t).toBeLessThanOrEqual(latestFrameAtMs)
  expect((await server.client.get('/health')).body.gaps.open).toEqual([])
  await server.remove()
  await upstream.close()
})
