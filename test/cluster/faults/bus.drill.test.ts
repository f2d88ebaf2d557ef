// @module-tag drill
// NATS has little room, or takes small messages only. That it ends, with its data: short.drill.test.ts; that it cannot be reached, and that it forgets: the simulation,
// ../writer/faults.drill.test.ts and ../reader/replica.test.ts.
import { describe, expect, test } from 'vitest'
import { untilReady } from '../../support/test-server.ts'
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

  test('takes smaller messages than those of a cluster: all say so, and no reader shows an empty market', {
    timeout: 120_000,
  }, async () => {
    const cluster = await TestCluster.start({ config: 'max_payload: 65536' })
    try {
      const reason = /max_payload of NATS is 65536 bytes: set it to 1048576 or more/
      const writer = await cluster.writer({ 'log-level': 'info' })
      await writer.client.push(...fillers(1_000))
      await untilHealth(writer.client, reason)
      expect(await statusOf(writer.client, '/readyz')).toBe(200)
      await writer.client.register('the writer goes on')
      const reader = cluster.launch({ role: 'reader', reader: 'lag-max-ms=1000' })
      const client = await reader.listening
      await expect.poll(async () => (await client.get('/readyz')).body.error).toMatch(reason)
      expect((await client.get('/api/v1/market')).body).toMatchObject({ status: 503, code: 'warming_up' })
      await cluster.nats.start({ config: '' })
      await untilReady(reader)
      expect(await rowsOf(client)).toEqual(await rowsOf(writer.client))
      // Nothing is brought to a NATS that cannot take all.
      expect(writer.lines.filter((line) => line.includes('a checkpoint is on the bus')).length).toBeLessThan(
        3,
      )
    } finally {
      await cluster.remove()
    }
  })
})
