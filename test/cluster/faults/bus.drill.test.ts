// @module-tag drill
// NATS ends, forgets, is full or cannot be reached, while the cluster is under load.
import { describe, expect, test } from 'vitest'
import { hasNats, skipped, TestCluster } from '../support.ts'
import { rowsOf } from './equality.ts'
import { pause } from './nodes.ts'
import { statusOf, underLoad, untilHealth } from './run.ts'
import { fillers } from './trades.ts'

/** Longer than lag-max-ms of the tests' readers. */
const AWAY_MS = 4_000

describe.skipIf(!hasNats)(`NATS under load${skipped}`, () => {
  // With its data: short.test.ts.
  test('is killed and started again, without its data', { timeout: 180_000 }, () =>
    underLoad({}, async (running) => {
      const { cluster, writer, readers } = running
      await cluster.nats.kill()
      await pause(AWAY_MS)
      for (const { client } of readers) {
        await untilHealth(client, /NATS|bus/)
        expect(await statusOf(client, '/readyz')).toBe(503)
        expect(await statusOf(client, '/api/v1/market')).toBe(503)
      }
      // The writer needs none of it to go on.
      await untilHealth(writer.client, /"status":"degraded"/)
      expect(await statusOf(writer.client, '/readyz')).toBe(200)
      await cluster.nats.start({ keepData: false })
      for (const { client } of [writer, ...readers]) await untilHealth(client, /"status":"ready"/, 40_000)
    }),
  )

  // By a network that swallows, for longer, and a reader too: cut-off.drill.test.ts.
  test('the writer’s connection is cut for a while', { timeout: 180_000 }, () =>
    underLoad({ writerBehindProxy: true }, async (running) => {
      const { proxy, readers, writer } = running
      proxy!.cut()
      await untilHealth(writer.client, /"status":"degraded"/, 30_000)
      expect(await statusOf(writer.client, '/readyz')).toBe(200)
      for (const { client } of readers) expect(await statusOf(client, '/readyz')).toBe(200)
      await pause(2_000)
      proxy!.heal()
      for (const { client } of [writer, ...readers]) await untilHealth(client, /"status":"ready"/, 40_000)
    }),
  )

  test('the stream may be a megabyte only: who is behind restores a checkpoint', { timeout: 180_000 }, () =>
    underLoad({ writer: { 'bus-stream': 'max-mb=1' } }, async (running) => {
      // More than a megabyte of events, which the new reader and the one that wakes up have not seen.
      running.readers[0].process.kill('SIGSTOP')
      for (let round = 0; round < 5; round++) await running.writer.client.push(...fillers(4_000))
      running.readers[0].process.kill('SIGCONT')
      await running.addReader()
      for (const { client } of running.readers) await untilHealth(client, /"status":"ready"/, 40_000)
    }),
  )

  test('has no room for the stream: the writer says so and goes on; readers begin once there is room', {
    timeout: 120_000,
  }, async () => {
    const cluster = await TestCluster.start({ storageBytesMax: 3_000_000 })
    try {
      const writer = await cluster.writer()
      await writer.client.push(...fillers(1_000))
      await untilHealth(writer.client, /"status":"degraded"/)
      expect(await statusOf(writer.client, '/readyz')).toBe(200)
      await cluster.nats.start({ keepData: true, storageBytesMax: 1_000_000_000 })
      await untilHealth(writer.client, /"status":"ready"/, 40_000)
      const reader = await cluster.reader()
      expect(await rowsOf(reader.client)).toEqual(await rowsOf(writer.client))
    } finally {
      await cluster.remove()
    }
  })
})
