// @module-tag drill
// NATS is three servers that keep the streams together, and one of them ends while the cluster is under load.
import { describe, expect, test } from 'vitest'
import { connectBus } from '../../../src/cluster/bus.ts'
import { busSettingsOf, hasNats, type Nats, skipped, type TestCluster } from '../support.ts'
import { statusOf, underLoad, untilHealth } from './run.ts'

/** The server that takes the events, and how many keep each stream. */
async function placesOf({ nats, otherNats }: TestCluster): Promise<{ leader: Nats; replicas: number[] }> {
  const bus = await connectBus(busSettingsOf(nats.url), 'test')
  try {
    const { stream, accounts, checkpoints } = bus.names
    const names = [stream, `KV_${accounts}`, `OBJ_${checkpoints}`]
    const infos = await Promise.all(names.map((name) => bus.manager.streams.info(name)))
    const leader = Number(infos[0].cluster?.leader?.replace('server-', ''))
    return {
      leader: [nats, ...otherNats][leader],
      replicas: infos.map(({ config }) => config.num_replicas),
    }
  } finally {
    await bus.close()
  }
}

describe.skipIf(!hasNats)(`three NATS servers under load${skipped}`, () => {
  test('the one that takes the events is killed and started again', { timeout: 240_000 }, () =>
    underLoad({ natsServers: 3, writer: { 'bus-stream': 'max-mb=256,replicas=3' } }, async (running) => {
      const { cluster, writer, readers } = running
      // The first checkpoint is made some seconds after the start.
      await expect
        .poll(() => placesOf(cluster).then(({ replicas }) => replicas), { timeout: 40_000 })
        .toEqual([3, 3, 3])
      const { leader } = await placesOf(cluster)
      await leader.kill()
      for (const { client } of [writer, ...readers]) {
        await untilHealth(client, /"status":"ready"/, 40_000)
        expect(await statusOf(client, '/readyz')).toBe(200)
      }
      await running.untilAcknowledged(20)
      await leader.start()
      for (const { client } of [writer, ...readers]) await untilHealth(client, /"status":"ready"/, 40_000)
    }),
  )
})
