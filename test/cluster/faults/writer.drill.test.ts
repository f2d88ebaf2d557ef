// @module-tag drill
// The writer is killed and started again, another one is started beside it, and a standby takes over, while the cluster is under load.
import { describe, expect, test } from 'vitest'
import { hasNats, skipped } from '../support.ts'
import { pause } from './nodes.ts'
import { statusOf, underLoad, untilHealth } from './run.ts'

describe.skipIf(!hasNats)(`the writer under load${skipped}`, () => {
  test('is killed and started again', { timeout: 180_000 }, () =>
    underLoad({}, async (running) => {
      await running.killWriter()
      const [{ client }] = running.readers
      await untilHealth(client, /"status":"degraded"/)
      // Reads go on, and are ready; what writes is told when to come again.
      expect(await statusOf(client, '/readyz')).toBe(200)
      expect(await statusOf(client, '/api/v1/market?limit=5')).toBe(200)
      const refused = await fetch(`${client.url}/api/v1/keys/register`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{"name":"late"}',
      })
      expect(refused.status).toBe(503)
      expect(refused.headers.get('retry-after')).not.toBeNull()
      await running.restartWriter()
      await untilHealth(client, /"status":"ready"/)
    }),
  )

  test(
    'refuses another one with a folder of its own, stops in order and is started again',
    {
      timeout: 180_000,
    },
    () =>
      underLoad({}, async (running) => {
        const { cluster, writer, nodes } = running
        const other = cluster.launch({ role: 'writer' })
        const client = await other.listening.catch(() => null)
        if (client === null) {
          expect(await other.exited).toBe(1)
          expect(other.errorLines.join('\n')).toMatch(/writer|another data folder/)
        } else await untilHealth(client, /another data folder/)
        await other.kill()
        expect(await statusOf(writer.client, '/readyz')).toBe(200)

        await running.untilAcknowledged(10)
        nodes.writer = null
        expect(await writer.terminate()).toBe(0)
        await running.restartWriter()
      }),
  )

  test('a standby takes over its folder when it is killed', { timeout: 180_000 }, () =>
    underLoad({}, async (running) => {
      const { cluster, writer, nodes } = running
      const standby = cluster.launch(
        { role: 'standby', 'submit-limits': 'rate=0,cooldown-ms=60000' },
        { dataDir: writer.dataDir },
      )
      await pause(2_000)
      const killedAtMs = performance.now()
      await running.killWriter()
      const client = await standby.listening
      await expect.poll(() => statusOf(client, '/readyz'), { timeout: 30_000 }).toBe(200)
      console.info(`the standby was ready after ${Math.round(performance.now() - killedAtMs)} ms`)
      running.writer = { ...standby, client }
      nodes.writer = client
    }),
  )
})
