// The parts that the tests of the cluster are made of: the real nats-server, and the proxy before it.

import { jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { afterEach, describe, expect, test } from 'vitest'
import { type BusProxy, hasNats, type Nats, skipped, startNats, startProxy } from './support.ts'

let nats: Nats
let proxy: BusProxy | null = null
const connections: NatsConnection[] = []
afterEach(async () => {
  for (const connection of connections.splice(0)) await connection.close()
  await proxy?.close()
  proxy = null
  await nats.remove()
})

async function connected(url: string): Promise<NatsConnection> {
  const connection = await connect({ servers: url, maxReconnectAttempts: -1, reconnectTimeWait: 50 })
  connections.push(connection)
  return connection
}

describe.skipIf(!hasNats)(`nats-server${skipped}`, () => {
  test.each([
    [true, ['events']],
    [false, []],
  ])('killed and started again on its port, with its data %s', async (keepData, expected) => {
    nats = await startNats()
    const { url } = nats
    const manager = await jetstreamManager(await connected(url))
    await manager.streams.add({ name: 'events', subjects: ['events'] })
    await nats.kill()
    await nats.start({ keepData })
    expect(nats.url).toBe(url)
    const names = await (await jetstreamManager(await connected(url))).streams.list().next()
    expect(names.map(({ config }) => config.name)).toEqual(expected)
  })

  test('a proxy that swallows keeps the connection and carries nothing; one that is cut ends it', async () => {
    nats = await startNats()
    proxy = await startProxy(nats.port)
    const connection = await connected(proxy.url)
    connection.subscribe('echo', { callback: (_, message) => void message.respond('yes') })
    expect((await connection.request('echo', '', { timeout: 2_000 })).string()).toBe('yes')
    proxy.swallow()
    await expect(connection.request('echo', '', { timeout: 100 })).rejects.toThrow()
    proxy.heal()
    await expect
      .poll(() =>
        connection.request('echo', '', { timeout: 500 }).then(
          (answer) => answer.string(),
          () => 'no',
        ),
      )
      .toBe('yes')
    proxy.cut()
    await expect(connection.request('echo', '', { timeout: 100 })).rejects.toThrow()
    await expect(connect({ servers: proxy.url, timeout: 500 })).rejects.toThrow()
    proxy.heal()
    await expect
      .poll(() =>
        connection.request('echo', '', { timeout: 500 }).then(
          (answer) => answer.string(),
          () => 'no',
        ),
      )
      .toBe('yes')
  })
})
