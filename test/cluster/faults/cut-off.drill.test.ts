// @module-tag drill
// Nodes that are cut off from NATS for more than twice the lag that they may have in service.
import { describe, expect, test } from 'vitest'
import { hasNats, skipped } from '../support.ts'
import { pause } from './nodes.ts'
import { statusOf, underLoad, untilHealth } from './run.ts'

const AWAY_MS = 12_000
/** The default of lag-max-ms. */
const LAG_MAX_MS = '5000'

describe.skipIf(!hasNats)(`cut off for a while, under load${skipped}`, () => {
  test('the writer and one of three readers', { timeout: 240_000 }, () =>
    underLoad(
      { writerBehindProxy: true, reader: { reader: `lag-max-ms=${LAG_MAX_MS}` } },
      async (running) => {
        const { cluster, proxy, writer } = running
        const ofReader = await cluster.proxy()
        const cutOff = await running.addReader({ bus: ofReader.url })
        const others = running.readers.filter((reader) => reader !== cutOff)
        const endMs = performance.now() + AWAY_MS
        proxy?.swallow()
        ofReader.swallow()
        // Nobody is told the past as now: the one that cannot know refuses, the others say how old it is.
        await expect.poll(() => statusOf(cutOff.client, '/readyz'), { timeout: 15_000 }).toBe(503)
        await untilHealth(cutOff.client, /cut off from the bus for|connection to the bus is lost/)
        await untilHealth(writer.client, /readers get no events since \d+ s, and miss \d+/)
        for (const { client } of others) await untilHealth(client, /the writer is silent since/)
        while (performance.now() < endMs) {
          expect(await statusOf(cutOff.client, '/api/v1/market?limit=1')).toBe(503)
          expect(await statusOf(writer.client, '/readyz')).toBe(200)
          for (const { client } of others) {
            const answer = await fetch(`${client.url}/api/v1/market?limit=1`)
            await answer.body?.cancel()
            const leftMs = endMs - performance.now()
            expect(answer.status).toBe(200)
            expect(Number(answer.headers.get('x-lag-ms'))).toBeGreaterThan(AWAY_MS - leftMs - 5_000)
          }
          await pause(1_000)
        }
        proxy?.heal()
        ofReader.heal()
        for (const { client } of [writer, ...running.readers])
          await untilHealth(client, /"status":"ready"/, 40_000)
        expect(await statusOf(cutOff.client, '/api/v1/market?limit=1')).toBe(200)
      },
    ),
  )
})
