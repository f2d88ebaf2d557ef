// What must be so of the readers of a cluster once faults have ended: each is level with the writer, and shows the same.
import type { Market } from '../../src/market/market.ts'
import type { Cast } from './actors/cast.ts'
import type { Cluster } from './cluster.ts'
import type { SimulatedNode, SimulatedReader } from './server.ts'
import { check, type World } from './world.ts'

/** Within this a reader is level with a writer that is well: at most two attempts to restore a checkpoint that stalls, the pauses
 *  between attempts, and a look at the writer. */
const LEVEL_MS = 40_000
/** How long it may take until two nodes have told the same position. */
const SAME_POSITION_MS = 5_000
const HEALTH_MS_MAX = 2_000
const LIST = 'limit=100&sort=market_cap'

export async function checkReplicas(
  world: World,
  cast: Cast,
  { readers }: Cluster,
  compare: (market: Market) => void,
): Promise<void> {
  for (const reader of readers) {
    await untilLevel(world, reader)
    compare(reader.app!.market)
    await checkSamePage(world, cast, reader)
  }
}

// biome-ignore lint/suspicious/noExplicitAny: checks look into JSON freely
async function healthOf({ machine }: World, node: SimulatedNode<never>): Promise<any> {
  const sent = node.send({ method: 'GET', path: '/health' })
  await machine.until(() => sent.answer !== null || sent.isLost, HEALTH_MS_MAX)
  return sent.answer?.body ?? null
}

/** It keeps up, says so, and has the writer's last event. */
async function untilLevel(world: World, reader: SimulatedReader): Promise<void> {
  const { machine } = world
  let told = ''
  const isLevel = async (): Promise<boolean> => {
    const writer = await healthOf(world, world.server as never)
    const health = await healthOf(world, reader as never)
    told = JSON.stringify({ reader: health, writer: writer?.cluster })
    if (writer === null || health === null || health.status !== 'ready' || health.reasons.length > 0)
      return false
    const { publishedEventNo, writtenEventNo } = writer.cluster
    return publishedEventNo === writtenEventNo && health.cluster.eventNo === writtenEventNo
  }
  const untilMs = machine.nowMs + LEVEL_MS
  let level = await isLevel()
  while (!level && machine.nowMs < untilMs) {
    await machine.pass(500)
    level = await isLevel()
  }
  check(
    world,
    'every reader is level with the writer in time',
    level,
    () => `${reader.name}: ${told.slice(0, 2_500)}`,
  )
}

/** At the same position both send the same bytes. */
async function checkSamePage(world: World, cast: Cast, reader: SimulatedReader): Promise<void> {
  const { machine, server } = world
  const request = { method: 'GET', path: '/api/v1/market', query: LIST } as const
  const etags = { reader: new Set<string | undefined>(), writer: new Set<string | undefined>() }
  const isSame = (): boolean => [...etags.reader].some((etag) => etags.writer.has(etag))
  for (const untilMs = machine.nowMs + SAME_POSITION_MS; !isSame() && machine.nowMs < untilMs; ) {
    for (const [name, node] of [
      ['writer', server],
      ['reader', reader],
    ] as const)
      node.send(request, (answer) => {
        cast.replicas?.checkPage(node as never, LIST, answer)
        if (answer.status === 200) etags[name].add(answer.headers.etag)
      })
    await machine.pass(50)
  }
  check(world, 'a reader comes to the position of the writer', isSame(), () => {
    const told = Object.entries(etags).map(([name, all]) => `${name}: ${[...all].slice(-3).join(' ')}`)
    return `${reader.name}; ${told.join('; ')}`
  })
}
