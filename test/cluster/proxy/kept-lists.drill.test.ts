// @module-tag drill
// A node whose user may not say which lists it keeps: it is told once, however many there are, and mended while it runs.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { type Bus, connectBus } from '../../../src/cluster/bus.ts'
import { KeptLists } from '../../../src/cluster/proxy/kept-lists.ts'
import { ask } from '../../../src/cluster/proxy/questions.ts'
import { busSettingsOf, hasNats, type Nats, skipped, startNats } from '../support.ts'

const DENY = ', deny: ["mintlake.list.>"]'
const CONFIG = `authorization { users: [
  { user: node, password: right, permissions: { publish: ">", subscribe: { allow: [">"]${DENY} } } } ] }`
const NAMES = ['a', 'b', 'c'].map((letter) => letter.repeat(22))

let nats: Nats | null = null
const buses: Bus[] = []
afterAll(async () => {
  for (const bus of buses) await bus.close()
  await nats?.remove()
})

it.skipIf(!hasNats)(
  `lists are told as soon as the bus permits it${skipped}`,
  { timeout: 40_000 },
  async () => {
    nats = await startNats({ config: CONFIG })
    const { url, port, server } = nats
    const connected = async () => {
      const settings = busSettingsOf(url)
      const login = { ...settings.login, user: 'node' }
      const bus = await connectBus({ ...settings, login, password: 'right' }, 'test')
      buses.push(bus)
      return bus
    }
    const [keeper, asker] = [await connected(), await connected()]
    const lists = new KeptLists()
    const told = { nodeId: 'keeper', url: 'http://10.0.0.1:8080', secret: 'secret' }
    lists.open(keeper, () => told)
    for (const name of NAMES) lists.kept(name)
    await expect
      .poll(() => keeper.watch.reasons)
      .toEqual([
        'NATS does not let this process subscribe to "mintlake.list.*": its user lacks the permission',
      ])
    lists.dropped(NAMES[2]!)

    const path = join(server.dir, 'nats.conf')
    // A port of 0 is another one at each reading.
    const permitted = readFileSync(path, 'utf8').replace(DENY, '').replace(':-1"', `:${port}"`)
    writeFileSync(path, permitted)
    server.child.kill('SIGHUP')
    const nodeOf = (name: string) =>
      ask(asker, asker.names.list(name), 'address', 500).then(
        (address) => address,
        (error: Error) => error.message,
      )
    for (const name of NAMES.slice(0, 2))
      await expect.poll(() => nodeOf(name), { timeout: 20_000 }).toMatchObject(told)
    expect(await nodeOf(NAMES[2]!)).toBe('no process answers to that name on the bus')
  },
)
