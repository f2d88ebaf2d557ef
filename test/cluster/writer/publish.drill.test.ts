// @module-tag drill
// What a writer publishes on the bus, on the real nats-server.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Bus } from '../../../src/cluster/bus.ts'
import { MINTS } from '../../checkpoint/support.ts'
import { openTestServer, type TestServer } from '../../support/test-server.ts'
import { hasNats, type Nats, skipped, startNats } from '../support.ts'
import { batchesOf, connect, eventNumbersOf, eventually, readStream } from './stream-log.ts'

describe.skipIf(!hasNats)(`a writer on the bus${skipped}`, () => {
  let nats: Nats
  let bus: Bus
  let server: TestServer

  beforeAll(async () => {
    nats = await startNats()
    server = await openTestServer({ role: 'writer', bus: nats.url })
    bus = await connect(nats.url)
  })

  afterAll(async () => {
    await bus.close()
    await server.remove()
    await nats.remove()
  })

  it('publishes what it records, once and in order', async () => {
    const ts = Date.now()
    const mint = MINTS[0]
    await server.client.push({ type: 'token', mint, ts, name: 'One', symbol: 'ONE' })
    for (let price = 1; price < 50; price++)
      await server.client.push({ type: 'trade', mint, ts, side: 'buy', tokenAmount: 1, priceUsd: price })
    const { cluster } = (await server.client.get('/health')).body
    expect(cluster).toMatchObject({ role: 'writer', reasons: [] })
    const batches = await eventually(async () => {
      const found = batchesOf(await readStream(bus))
      return found.at(-1)?.lastEventNo === 51 ? found : null
    })
    expect(eventNumbersOf(batches)).toEqual({ first: 1, last: 51 })
    expect(batches[0].events[0].event.type).toBe('run')
    const messages = await readStream(bus)
    expect(messages.every(({ runEventNo }) => runEventNo === 1)).toBe(true)
    // Market time goes on, and never back.
    const times = messages.map(({ timeMs }) => timeMs)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect(times.at(-1)).toBeGreaterThanOrEqual(ts)
  })
})
