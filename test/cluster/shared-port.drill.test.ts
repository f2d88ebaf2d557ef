// @module-tag drill
// Several readers of one machine on one port: connections reach all of them.
import { afterEach, describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { hasNats, skipped, TestCluster } from './support.ts'

let cluster: TestCluster
afterEach(() => cluster.remove())

describe.skipIf(!hasNats)(`--reader share-port=true${skipped}`, () => {
  test('two readers answer on one port, and a cursor of one is good at the other', async () => {
    cluster = await TestCluster.start()
    const writer = await cluster.writer({ feed: 'simulator', simulator: 'tokens=50' })
    // A port that the system chooses cannot be shared.
    const port = `${await freePort()}`
    const first = await cluster.reader({ reader: 'lag-max-ms=1000,share-port=true', port })
    const second = await cluster.reader({ reader: 'lag-max-ms=1000,share-port=true', port })
    expect(second.client.url).toBe(first.client.url)
    // Each connection is a new one: the kernel assigns it to one of the two.
    const read = (path: string) => fetch(second.client.url + path, { headers: { Connection: 'close' } })
    const nodes = new Set<string>()
    const untilMs = performance.now() + 30_000
    while (nodes.size < 2 && performance.now() < untilMs) {
      const health = (await (await read('/health')).json()) as { status: string; cluster: { nodeId: string } }
      // The second one listens before it has the market.
      if (health.status === 'ready') nodes.add(health.cluster.nodeId)
    }
    expect(nodes.size).toBe(2)
    for (let turn = 0; turn < 8; turn++) {
      const page = (await (await read('/api/v1/market?limit=5')).json()) as { meta: { nextCursor: string } }
      const next = await read(`/api/v1/market?limit=5&cursor=${page.meta.nextCursor}`)
      expect([next.status, await next.text()][next.status === 200 ? 0 : 1]).toBe(200)
    }
    expect(writer.process.exitCode).toBeNull()
  })
})
