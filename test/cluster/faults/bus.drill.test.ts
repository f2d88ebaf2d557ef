// @module-tag drill
// NATS has little room, while the cluster is under load. That it ends, with its data: short.test.ts; that it cannot be reached:
// cut-off.drill.test.ts; that it forgets: the simulation, ../writer/faults.drill.test.ts and ../reader/replica.test.ts.
import { describe, expect, test } from 'vitest'
import { hasNats, skipped, TestCluster } from '../support.ts'
import { rowsOf } from './equality.ts'
import { statusOf, underLoad, untilHealth } from './run.ts'
import { fillers } from './trades.ts'

describe.skipIf(!hasNats)(`NATS under load${skipped}`, () => {
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
