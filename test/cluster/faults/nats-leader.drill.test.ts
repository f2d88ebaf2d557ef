// @module-tag drill
// Of three NATS servers the one ends that leads the stream: the others take seconds to agree on another, and readers wait for that.
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterEach, describe, expect, test } from 'vitest'
import { LAG_MAX_MS_DEFAULT } from '../../../src/cluster/limits.ts'
import type { Client } from '../../support/test-server.ts'
import { hasNats, skipped, startNatsMembers, TestCluster } from '../support.ts'

const WRITER = { feed: 'simulator', simulator: 'tokens=20', 'bus-stream': 'max-mb=256,replicas=3' }
const READER = { reader: `lag-max-ms=${LAG_MAX_MS_DEFAULT}`, 'log-level': 'info' }

let cluster: TestCluster
afterEach(() => cluster.remove())

/** The name of the server that leads the stream. */
async function leaderOf(servers: string[]): Promise<string | undefined> {
  const connection = await connect({ servers })
  const { cluster: members } = await (await jetstreamManager(connection)).streams.info('mintlake-events')
  await connection.close()
  return members?.leader
}

const behindMsOf = async (client: Client): Promise<number> =>
  (await client.get('/health')).body.cluster.behindMs

describe.skipIf(!hasNats)(`three NATS servers${skipped}`, () => {
  // The servers draw how long they wait; that both draw the same, and then again, is possible.
  test('the end of the one that leads makes no reader refuse anything', {
    timeout: 90_000,
    retry: 1,
  }, async () => {
    const [first, ...others] = await startNatsMembers(3)
    cluster = new TestCluster(first, others)
    await cluster.writer(WRITER)
    const readers = [await cluster.reader(READER), await cluster.reader(READER)]
    const all = [first, ...others]
    const leader = await leaderOf(all.map(({ url }) => url))
    const [end] = all.filter((_, index) => leader === `server-${index}`)
    await end.kill()
    for (const { client } of readers)
      await expect.poll(() => behindMsOf(client), { timeout: 20_000, interval: 50 }).toBeGreaterThan(2_000)
    for (const { client, lines } of readers) {
      await expect.poll(() => behindMsOf(client), { timeout: 20_000, interval: 50 }).toBeLessThan(500)
      expect(lines.join('\n')).not.toContain('refuses reads')
    }
  })
})
