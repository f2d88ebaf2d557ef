// @module-tag drill
// NATS has little room. That it ends, with its data: short.test.ts; that it cannot be reached, and that it forgets: the simulation,
// ../writer/faults.drill.test.ts and ../reader/replica.test.ts.
import { describe, expect, test } from 'vitest'
import { hasNats, skipped, TestCluster } from '../support.ts'
import { rowsOf } from './equality.ts'
import { statusOf, untilHealth } from './run.ts'
import { fillers } from './trades.ts'

describe.skipIf(!hasNats)(`NATS${skipped}`, () => {
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
