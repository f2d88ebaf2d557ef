// @module-tag drill
// One of each in a cluster under load: a reader is killed, the writer is killed, NATS is killed. Faults of NATS and of clocks: the drills
// beside this. Faults of the network and of disks: the simulation.
import { describe, expect, test } from 'vitest'
import { hasNats, skipped } from '../support.ts'
import { statusOf, underLoad, untilHealth } from './run.ts'

const BACK_MS_MAX = 60_000

describe.skipIf(!hasNats)(`a cluster under load${skipped}`, () => {
  test(
    'loses a reader, its writer and NATS, one after another, and nothing that was acknowledged',
    {
      timeout: 180_000,
    },
    () =>
      underLoad({ compareEveryMs: 200 }, async (running) => {
        const { cluster } = running
        const [reader] = running.readers
        await reader.kill()
        running.removeReader(reader)
        await running.addReader()
        await running.killWriter()
        const [{ client }] = running.readers
        // Reads go on without a writer.
        await untilHealth(client, /"status":"degraded"/, BACK_MS_MAX)
        expect(await statusOf(client, '/api/v1/market?limit=5')).toBe(200)
        await running.restartWriter()
        await running.untilAcknowledged(5)
        await cluster.nats.kill()
        await untilHealth(client, /NATS|bus/, BACK_MS_MAX)
        await cluster.nats.start()
        for (const node of [running.writer, ...running.readers])
          await untilHealth(node.client, /"status":"ready"/, BACK_MS_MAX)
      }),
  )
})
