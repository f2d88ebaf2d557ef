// A cluster under load, a fault in the middle of it, and everything that must hold meanwhile and afterwards.
import { expect } from 'vitest'
import type { ServerProcess, Settings } from '../../support/test-server.ts'
import { type NatsOptions, type NodeOptions, TestCluster } from '../support.ts'
import { SubmittingAgents } from './agents.ts'
import { PageSampler, rowsOf, untilEqual } from './equality.ts'
import { Follower } from './follower.ts'
import { Nodes, pause } from './nodes.ts'
import { checkStored } from './stored.ts'
import { Trades } from './trades.ts'

const AGENTS = 4
const FOLLOWERS = 3
const COMPARE_EVERY_MS = 15
const SETTLE_MS_MAX = 20_000

/** Agents submit as often as they like, but each token once a minute. */
const WRITER_SETTINGS: Settings = {
  'submit-limits': 'rate=0,cooldown-ms=60000',
}

interface FaultOptions {
  /** How often pages of all nodes are compared; as often as they can be, nearly, unless set. */
  compareEveryMs?: number
  nats?: NatsOptions
  writer?: Settings
  /** Of the first reader alone. */
  firstReader?: NodeOptions
}

/** What a fault may use. */
export interface Running {
  cluster: TestCluster
  nodes: Nodes
  writer: ServerProcess
  readers: ServerProcess[]
  trades: Trades
  agents: SubmittingAgents
  followers: Follower[]
  /** Lets the load go on until so many more submissions are acknowledged. */
  untilAcknowledged(more: number): Promise<void>
  /** Kills the writer; nobody reaches it any more. */
  killWriter(): Promise<void>
  /** Starts a writer on the folder of the one before. */
  restartWriter(): Promise<void>
  addReader(settings?: Settings, options?: NodeOptions): Promise<ServerProcess>
  removeReader(reader: ServerProcess): void
}

async function untilTrue(what: string, isTrue: () => boolean, msMax: number): Promise<void> {
  const untilMs = performance.now() + msMax
  while (!isTrue()) {
    if (performance.now() > untilMs) throw new Error(`${what} did not come within ${msMax} ms`)
    await pause(50)
  }
}

/** Waits until the body of /health of a node matches. Returns it. */
export async function untilHealth(node: { url: string }, said: RegExp, msMax = 20_000): Promise<string> {
  const untilMs = performance.now() + msMax
  for (;;) {
    const text = await fetch(`${node.url}/health`, { signal: AbortSignal.timeout(3_000) })
      .then((answer) => answer.text())
      .catch(() => '')
    if (said.test(text)) return text
    if (performance.now() > untilMs) throw new Error(`/health does not say ${said}: ${text}`)
    await pause(50)
  }
}

export async function statusOf(node: { url: string }, path: string): Promise<number> {
  const answer = await fetch(node.url + path, { signal: AbortSignal.timeout(5_000) }).catch(() => null)
  await answer?.body?.cancel()
  return answer?.status ?? 0
}

async function startAll(cluster: TestCluster, options: FaultOptions): Promise<Running> {
  const nodes = new Nodes()
  const writerSettings: Settings = { ...WRITER_SETTINGS, ...options.writer }
  const writer = await cluster.writer(writerSettings)
  nodes.writer = writer.client
  const trades = new Trades(nodes)
  await trades.start()
  const running: Running = {
    ...{ cluster, nodes, writer, readers: [], trades, followers: [] },
    agents: new SubmittingAgents(nodes, AGENTS),
    untilAcknowledged: async (more) => {
      const enough = running.agents.acknowledged + more
      await untilTrue(`${more} submissions`, () => running.agents.acknowledged >= enough, 40_000)
    },
    killWriter: async () => {
      await running.writer.kill()
      nodes.writer = null
    },
    restartWriter: async () => {
      const { dataDir } = running.writer
      running.writer = await cluster.writer(writerSettings, { dataDir })
      nodes.writer = running.writer.client
    },
    addReader: async (settings, nodeOptions) => {
      const reader = await cluster.reader(settings, nodeOptions)
      running.readers.push(reader)
      nodes.readers.push(reader.client)
      return reader
    },
    removeReader: (reader) => {
      running.readers = running.readers.filter((other) => other !== reader)
      nodes.readers = nodes.readers.filter((other) => other !== reader.client)
    },
  }
  await running.addReader({}, options.firstReader)
  await running.addReader()
  return running
}

/** Everybody who follows has been told all. */
async function checkFollowers(running: Running): Promise<void> {
  const rows = await rowsOf(running.writer.client)
  const behind = (follower: Follower) =>
    [...rows].filter(([mint, row]) => follower.rows.get(mint) !== row).map(([mint]) => mint)
  for (const follower of running.followers) {
    await untilTrue('the last change', () => behind(follower).length === 0, SETTLE_MS_MAX).catch(
      () => undefined,
    )
    const [mint] = behind(follower)
    expect(mint && [follower.rows.get(mint), rows.get(mint)], 'a row that was not told').toBeUndefined()
    expect(follower.rows.size).toBe(rows.size)
    expect(follower.faults).toEqual([])
  }
}

/** Starts everything, causes the fault, and checks what must hold. */
export async function underLoad(
  options: FaultOptions,
  cause: (running: Running) => Promise<void>,
): Promise<void> {
  const cluster = await TestCluster.start(options.nats)
  try {
    const running = await startAll(cluster, options)
    const { nodes, trades, agents } = running
    await agents.start()
    const sampler = new PageSampler(nodes, options.compareEveryMs ?? COMPARE_EVERY_MS)
    const followers = Array.from({ length: FOLLOWERS }, (_, turn) => new Follower(nodes, turn, turn === 0))
    running.followers = followers
    await running.untilAcknowledged(20)
    await cause(running)
    await running.untilAcknowledged(20)
    for (const follower of followers) follower.move()
    await running.untilAcknowledged(10)
    await agents.end()
    await trades.end()
    await sampler.end()
    for (const { client } of running.readers) await untilEqual(running.writer.client, client)
    await checkFollowers(running)
    for (const follower of followers) await follower.end()
    expect(agents.faults).toEqual([])
    expect(sampler.faults).toEqual([])
    expect(sampler.compared).toBeGreaterThan(0)
    expect(sampler.comparedCursors).toBeGreaterThan(0)
    expect(sampler.walked).toBeGreaterThan(0)
    expect(await running.writer.terminate()).toBe(0)
    await checkStored(running.writer.dataDir, agents.sent)
  } finally {
    await cluster.remove()
  }
}
