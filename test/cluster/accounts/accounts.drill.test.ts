// @module-tag drill
// The writer's accounts on the real bus, as readers know them.
import { Kvm } from '@nats-io/kv'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { COMPLETE_KEY } from '../../../src/cluster/accounts/account-entry.ts'
import { AccountPublisher } from '../../../src/cluster/accounts/account-publisher.ts'
import { AccountReplica } from '../../../src/cluster/accounts/account-replica.ts'
import { type Bus, connectBus } from '../../../src/cluster/bus.ts'
import { createLog } from '../../../src/lib/log.ts'
import { AgentRegistry } from '../../../src/submissions/accounts/agent-registry.ts'
import { SteppedClock } from '../../support/clock.ts'
import { busSettings } from '../proxy/support.ts'
import { hasNats, type Nats, skipped, startNats } from '../support.ts'

const log = createLog('warn')
const START_MS = 1_800_000_000_000
const DAY_MS = 86_400_000

let nats: Nats
const toClose: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  if (hasNats) nats = await startNats()
}, 30_000)
afterAll(async () => nats?.remove())
afterEach(async () => {
  for (const close of toClose.splice(0).reverse()) await close()
})

async function connect(name: string): Promise<Bus> {
  const bus = await connectBus({ ...busSettings(nats.url), name }, 'test')
  toClose.push(() => bus.close())
  return bus
}

interface Writer {
  agents: AgentRegistry
  publisher: AccountPublisher
  clock: SteppedClock
  bus: Bus
}

/** Agents over a store that takes everything at once. */
async function startWriter(name: string, agentCount = 0): Promise<Writer> {
  const clock = new SteppedClock(START_MS)
  let publisher: AccountPublisher | null = null
  const agents = new AgentRegistry({
    recovered: { agents: [], agentKeys: [], agentEvents: [] },
    store: { commit: async () => {} },
    clock,
    randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
    random: Math.random,
    registrationOpen: true,
    onChanged: (agentId) => publisher?.change(agentId),
  })
  for (let index = 0; index < agentCount; index++) await agents.register({ name: `agent ${index}` })
  const bus = await connect(name)
  publisher = new AccountPublisher(bus, agents, 1, log)
  toClose.push(() => publisher!.stop())
  return { agents, publisher, clock, bus }
}

async function startReader(
  name: string,
  tellUse: (key: string) => Promise<unknown> = async () => {},
): Promise<{ replica: AccountReplica; clock: SteppedClock }> {
  const bus = await connect(name)
  // Ten seconds beside the writer's clock, and another monotonic clock.
  const clock = new SteppedClock(START_MS - 10_000)
  clock.pass(77_777)
  const replica = new AccountReplica({ bus, clock, log, tellUse })
  toClose.push(() => replica.stop())
  return { replica, clock }
}

const codeOf = (act: () => unknown): string => {
  try {
    act()
    return 'none'
  } catch (error) {
    return (error as { code: string }).code
  }
}

/** Resolves when a reader knows all accounts. */
const known = (replica: AccountReplica) =>
  vi.waitFor(() => expect(replica.isReady).toBe(true), { timeout: 15_000, interval: 5 })

const followed = async ({ publisher }: Writer, replica: AccountReplica) => {
  const revision = await publisher.settled(5_000)
  await replica.until(revision, 5_000)
  expect(replica.revision).toBeGreaterThanOrEqual(revision)
}

describe.skipIf(!hasNats)(`accounts on the bus${skipped}`, () => {
  it('are known to a reader that begins before and to one that begins after them', async () => {
    const early = await startReader('order')
    expect(codeOf(() => early.replica.authenticate('ps_unknown'))).toBe('warming_up')
    const writer = await startWriter('order', 200)
    await known(early.replica)
    const { key, agentId } = await writer.agents.register({ name: 'latest' })
    await followed(writer, early.replica)
    const late = await startReader('order')
    await known(late.replica)
    for (const { replica } of [early, late]) {
      expect(replica.authenticate(key).agent).toMatchObject({ agentId, name: 'latest', type: 'agent' })
      expect(codeOf(() => replica.authenticate(''))).toBe('missing_key')
      expect(codeOf(() => replica.authenticate('ps_unknown'))).toBe('invalid_key')
      expect(replica.name(agentId)).toBe('latest')
      expect(replica.name('ag_unknown')).toBe('ag_unknown')
    }
    await writer.agents.setProfile(writer.agents.authenticate(key), { name: 'renamed' })
    await followed(writer, early.replica)
    expect(early.replica.name(agentId)).toBe('renamed')
  })

  it('tell types, revocations at once, and the later end of a rotated key by the time that is left', async () => {
    const writer = await startWriter('keys')
    const { replica, clock } = await startReader('keys')
    await known(replica)
    const lab = await writer.agents.register({ name: 'Lab', type: 'researcher' }, true)
    const rotated = await writer.agents.rotate(writer.agents.authenticate(lab.key))
    await followed(writer, replica)
    expect(replica.authenticate(lab.key).agent.type).toBe('researcher')
    expect(replica.authenticate(rotated.key).agent.type).toBe('researcher')
    clock.pass(DAY_MS - 1_000)
    expect(codeOf(() => replica.authenticate(lab.key))).toBe('none')
    clock.pass(2_000)
    expect(codeOf(() => replica.authenticate(lab.key))).toBe('revoked_key')
    const startedAtMs = performance.now()
    await writer.agents.revoke(writer.agents.authenticate(rotated.key))
    await vi.waitFor(() => expect(codeOf(() => replica.authenticate(rotated.key))).toBe('revoked_key'), {
      timeout: 1_000,
      interval: 5,
    })
    expect(performance.now() - startedAtMs).toBeLessThan(1_000)
  })

  it('tell the use of a new key where the one that it replaced may still rotate, and no longer', async () => {
    const writer = await startWriter('ended')
    const told: string[] = []
    const { replica, clock } = await startReader('ended', async (key) => told.push(key))
    await known(replica)
    const rotated = async (isRevoked: boolean) => {
      const old = writer.agents.authenticate((await writer.agents.register({ name: 'x' })).key)
      const { key } = await writer.agents.rotate(old)
      if (isRevoked) await writer.agents.revoke(old)
      await followed(writer, replica)
      const isUsed = writer.agents.account(old.agent.agentId)!.keys.map((each) => each.isUsed)
      return { key, isUsed }
    }
    const revoked = await rotated(true)
    expect(revoked.isUsed).toEqual([true, true])
    replica.authenticate(revoked.key)
    expect(told).toEqual([])
    const [first, second] = [await rotated(false), await rotated(false)]
    expect(first.isUsed).toEqual([true, false])
    replica.authenticate(first.key)
    clock.pass(DAY_MS)
    replica.authenticate(second.key)
    expect(told).toEqual([first.key])
  })

  it('tell the use of a new key until the writer knows it, with a pause, however often it is used', async () => {
    const writer = await startWriter('refused')
    let isRefused = true
    const told: boolean[] = []
    const { replica } = await startReader('refused', async (key) => {
      told.push(isRefused)
      if (isRefused) throw new Error('the writer answered 503')
      writer.agents.authenticate(key)
    })
    await known(replica)
    const old = writer.agents.authenticate((await writer.agents.register({ name: 'x' })).key)
    const { key } = await writer.agents.rotate(old)
    await followed(writer, replica)
    for (let read = 0; read < 50; read++) {
      replica.authenticate(key)
      await new Promise(setImmediate)
    }
    expect(told).toEqual([true])
    isRefused = false
    const isUsed = () => writer.agents.account(old.agent.agentId)!.keys.map((each) => each.isUsed)
    await vi.waitFor(() => expect(isUsed()).toEqual([true, true]), 10_000)
    expect(told).toEqual([true, false])
  })

  it('count the time of an entry by the clock of the bus, for a reader that begins later', async () => {
    const writer = await startWriter('age')
    const { key } = await writer.agents.register({ name: 'x' })
    await writer.agents.rotate(writer.agents.authenticate(key))
    await writer.publisher.settled(5_000)
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    const { replica, clock } = await startReader('age')
    await known(replica)
    clock.pass(DAY_MS - 3_000)
    expect(codeOf(() => replica.authenticate(key))).toBe('none')
    clock.pass(1_700)
    expect(codeOf(() => replica.authenticate(key))).toBe('revoked_key')
  })

  it('are compared by a writer that begins: what differs is put, what belongs to nobody is deleted', async () => {
    const first = await startWriter('other')
    const gone = await first.agents.register({ name: 'of another folder' })
    await first.publisher.settled(5_000)
    const { replica } = await startReader('other')
    await known(replica)
    expect(codeOf(() => replica.authenticate(gone.key))).toBe('none')
    await first.publisher.stop()
    const second = await startWriter('other')
    const made = await second.agents.register({ name: 'of this folder' })
    await vi.waitFor(() => expect(codeOf(() => replica.authenticate(gone.key))).toBe('invalid_key'), 5_000)
    await followed(second, replica)
    expect(codeOf(() => replica.authenticate(made.key))).toBe('none')
    // A writer that finds everything as it is puts nothing.
    await second.publisher.stop()
    const bus = await connect('other')
    const kv = await new Kvm(bus.client).open(bus.names.accounts)
    const before = (await kv.status()).streamInfo.state.last_seq
    const third = new AccountPublisher(bus, second.agents, 1, log)
    toClose.push(() => third.stop())
    await third.settled(5_000)
    expect((await kv.status()).streamInfo.state.last_seq).toBe(before)
  })
})

describe.skipIf(!hasNats)(`accounts while the bus is away${skipped}`, () => {
  it('stay known, and come back in all, also after it has lost its data', async () => {
    const writer = await startWriter('loss', 300)
    const { replica } = await startReader('loss')
    await known(replica)
    const { key } = await writer.agents.register({ name: 'before' })
    await followed(writer, replica)
    for (const keepData of [true, false]) {
      await nats.kill()
      const during = await writer.agents.register({ name: 'meanwhile' })
      expect(codeOf(() => replica.authenticate(key))).toBe('none')
      await nats.start({ keepData })
      await vi.waitFor(() => expect(codeOf(() => replica.authenticate(during.key))).toBe('none'), 15_000)
      expect(codeOf(() => replica.authenticate(key))).toBe('none')
      const late = await startReader('loss')
      await known(late.replica)
      expect(codeOf(() => late.replica.authenticate(key))).toBe('none')
      expect(codeOf(() => late.replica.authenticate(during.key))).toBe('none')
    }
  }, 60_000)

  it('of which none is told any more are forgotten, though others came and went before all were told', async () => {
    const writer = await startWriter('stale')
    const made = [await writer.agents.register({ name: 'a' }), await writer.agents.register({ name: 'b' })]
    const { replica } = await startReader('stale')
    await known(replica)
    await followed(writer, replica)
    await writer.publisher.stop()
    const { client, names } = writer.bus
    const before = await new Kvm(client).open(names.accounts)
    const keys: string[] = []
    for await (const key of await before.keys()) if (key !== COMPLETE_KEY) keys.push(key)
    const entry = await before.get(keys[0]!)
    await before.destroy()
    const isKnown = () => made.map(({ key }) => codeOf(() => replica.authenticate(key)) === 'none')
    const kv = await new Kvm(client).create(names.accounts)
    const revision = await kv.put(entry!.key, entry!.value)
    await vi.waitFor(() => expect(replica.revision).toBe(revision), 15_000)
    await kv.delete(entry!.key)
    await vi.waitFor(() => expect(isKnown().filter(Boolean)).toHaveLength(1), 5_000)
    await kv.put(COMPLETE_KEY, '')
    await vi.waitFor(() => expect(isKnown()).toEqual([false, false]), 5_000)
  }, 60_000)

  it('come back when somebody has deleted them', async () => {
    const writer = await startWriter('deleted', 3)
    const { replica } = await startReader('deleted')
    await known(replica)
    const { key } = await writer.agents.register({ name: 'x' })
    await followed(writer, replica)
    await (await new Kvm(writer.bus.client).open(writer.bus.names.accounts)).destroy()
    const late = await startReader('deleted')
    await known(late.replica)
    const { key: other } = await writer.agents.register({ name: 'y' })
    await vi.waitFor(() => expect(codeOf(() => replica.authenticate(other))).toBe('none'), 15_000)
    expect(codeOf(() => replica.authenticate(key))).toBe('none')
  }, 60_000)
})
