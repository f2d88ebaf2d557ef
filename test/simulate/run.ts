// One run: a server, its clients and its faults, all drawn from a seed.

import { nuid } from '@nats-io/transport-node'
import { Cast, type Sizes } from './actors/cast.ts'
import { checkAtRest } from './at-rest.ts'
import { CHAIN_PORT, ChainEndpoint } from './chain/endpoint.ts'
import { Cluster, writerSettingsOf } from './cluster.ts'
import { type FaultKind, Faults } from './faults.ts'
import { LakeContents } from './lake/contents.ts'
import { lakeProgram } from './lake/process.ts'
import { verifyRealLake } from './lake/real/at-rest.ts'
import { LakeAuditor } from './lake/real/auditor.ts'
import { Crashes } from './lake/real/beside.ts'
import { checkDamage } from './lake/real/damage.ts'
import { RealLake } from './lake/real/real-lake.ts'
import { SimulatedFiles } from './machine/files.ts'
import { plugIn } from './machine/install.ts'
import { drawsOf, Machine, type SimulatedProcess } from './machine/machine.ts'
import { Network } from './machine/network.ts'
import { hasOtherWriters, OtherWriters } from './other-writers.ts'
import { PositionSources } from './positions.ts'
import { checkpointProgram, uploadProgram } from './programs.ts'
import { launchServer, SimulatedNode } from './server.ts'
import { takeStep } from './steps.ts'
import { Trace, Violation } from './trace.ts'
import { check, count, type MarketFeed, note, type World } from './world.ts'

/** What a disk that takes nothing makes of what the server found damaged. */
const LOSSES_NOT_NOTED = 'what was lost could not be read or noted (losses.json); a restart may forget it'

/** How many runs have readers, and NATS. */
const HAS_CLUSTER = 0.15
const SERVER_PORT = 9_000
/** How many of the others have a simulated market, and how many one from the chain. */
const HAS_SIMULATOR = 0.12
const HAS_CHAIN = 0.08
/** How many runs have more tokens than the market holds, and how many have more than a follower is sent at once. */
const KINDS = { few: 0.65, evicted: 0.2, many: 0.15 }

export interface RunOptions {
  seed: number
  steps: number
  /** At most so many of each; by default as the seed says. */
  agentsMax?: number
  /** Faults that do not happen. */
  without?: readonly FaultKind[]
  /** Whether DuckDB and Parquet stand beside the modelled lake. */
  hasRealLake?: boolean
  /** Whether there is, besides, what the model alone cannot do: backups, repairs, and ends of the lake process within a request. */
  goesBeyond?: boolean
}

export interface Failure {
  seed: number
  step: number
  invariant: string
  detail: string
  last: readonly string[]
}

export interface RunResult {
  seed: number
  steps: number
  hash: string
  events: number
  virtualMs: number
  counts: Map<string, number>
  failure: Failure | null
}

let runs = 0

/** Runs a seed to its end, or to the first invariant that does not hold. Never rejects. */
export async function simulate(options: RunOptions): Promise<RunResult> {
  const { seed } = options
  const machine = new Machine(seed)
  const files = new SimulatedFiles(machine, drawsOf(seed, 'disk'))
  const lake = new LakeContents()
  const trace = new Trace()
  const isCluster = drawsOf(seed, 'nodes as well').chance(HAS_CLUSTER)
  const feed = isCluster ? 'push' : feedOf(seed)
  const sizes = sizesOf(options, feed)
  const retain = retentionOf(seed)
  const counts = new Map<string, number>()
  const network = new Network(machine, drawsOf(seed, 'ways'))
  // No two runs of this process share a path: some modules remember what they did to one.
  const name = String(++runs).padStart(6, '0')
  const [dataDir, otherFolder] = [`/simulated/${name}/data`, `/simulated/${name}/other`]
  const real =
    options.hasRealLake === true || options.goesBeyond === true
      ? {
          lake: new RealLake(machine, files, dataDir, name),
          auditor: new LakeAuditor(),
          disagreements: { first: null },
          crashes: options.goesBeyond === true ? new Crashes(drawsOf(seed, 'crashes within')) : null,
          onCrash: (at: string) => {
            count(world, 'fault: lake ends within a request')
            note(world, 'the lake process ends at', at)
          },
        }
      : null
  const troubles = {
    rates: {},
    counts: { fails: 0, hangs: 0, slow: 0, killed: 0 },
    held: new Set<() => void>(),
  }
  // The real lake has one folder, of one machine.
  const withOthers = isCluster && real === null && hasOtherWriters(seed)
  // A standby waits until its folder is there.
  if (withOthers) files.makeFolder(dataDir)
  const disks = new Map<string, SimulatedFiles>()
  const lakeOf = ({ host }: SimulatedProcess, ofFolder: string): LakeContents | null =>
    disks.has(host) ? null : ofFolder === dataDir ? lake : new LakeContents()
  plugIn({
    ...{ machine, files, network, disks, tellsStarts: withOthers },
    programs: {
      'store/process/main.ts': lakeProgram(lakeOf, { machine, troubles, draws: drawsOf(seed, 'lake'), real }),
      'checkpoint/checkpoint-process.ts': checkpointProgram,
      'writer/upload-process.ts': uploadProgram,
    },
  })
  // The library draws its first name when it is asked for one, and counts on from it: in each run anew, as if it were the first.
  Object.assign(nuid, { inited: false })
  const onLog = (level: string, message: string) => note(world, level, message)
  const cluster = isCluster ? new Cluster({ seed, machine, network, onLog }) : null
  const settings = {
    ...{ ...settingsOf(seed, sizes, feed), 'data-dir': dataDir },
    ...(retain.setting !== '' && { retain: retain.setting }),
    ...(isCluster && writerSettingsOf(seed, withOthers)),
    ...(feed === 'simulator' && simulatorSettingsOf(sizes.tokens)),
    ...(feed === 'solana' && CHAIN_SETTINGS),
  }
  const draws = drawsOf(seed, 'network')
  const positions = new PositionSources()
  const onServerLog = (level: string, message: string) => {
    positions.noteLog(message)
    if (message === LOSSES_NOT_NOTED) world.mayForgetLosses = true
    onLog(level, message)
  }
  const followFlushMs = drawsOf(seed, 'follow').of([20, 100])
  const launch = (more: Readonly<Record<string, string>>) =>
    launchServer({ ...settings, ...more }, followFlushMs, draws.next)
  const server = new SimulatedNode({
    ...{ machine, network, name: 'server', port: SERVER_PORT, draws, onLog: onServerLog },
    launch: launch({}),
  })
  const openChain = () =>
    new ChainEndpoint({
      ...{ seed, machine, network },
      onFault: (name) => {
        count(world, `fault: chain ${name}`)
        note(world, 'chain', name)
      },
    })
  const world: World = {
    ...{ seed, machine, files, lake, real, troubles, server, positions, cluster, trace, counts },
    ...{ feed, chain: feed === 'solana' ? openChain() : null, simulatorTokens: sizes.tokens },
    otherWriters: null,
    ...{
      hadWrongClock: false,
      hadWrongBegin: false,
      retain: retain.days,
      hasDamagedJournal: false,
      hasDamagedLog: false,
      mayForgetLosses: false,
    },
  }
  if (cluster !== null && withOthers)
    world.otherWriters = new OtherWriters(world, cluster, { disks, otherFolder, launch, onLog: onServerLog })
  const cast = new Cast(world, sizes, options.goesBeyond === true)
  const faults = new Faults(world, cast, options.without ?? [])
  let step = 0
  let failure: Failure | null = null
  const guard = new UncaughtErrors()
  try {
    cluster?.keepUp()
    server.start()
    for (; step < options.steps; step++) {
      await takeStep(world, cast, faults, step)
      guard.check()
      checkAgreement(world)
    }
    await faults.end()
    await checkAtRest(world, cast)
    guard.check()
    if (options.goesBeyond === true) await checkDamage(world, cast)
    guard.check()
    server.crash()
    await verifyRealLake(world)
  } catch (error) {
    const invariant = error instanceof Violation ? error.invariant : 'the simulation itself works'
    const detail = error instanceof Violation ? error.message : String((error as Error).stack ?? error)
    failure = { seed, step, invariant, detail, last: [...trace.last] }
  } finally {
    guard.end()
    server.crash()
    world.otherWriters?.end()
    cluster?.end()
    world.chain?.end()
    await real?.lake.end()
    real?.lake.remove()
    real?.auditor.end()
  }
  for (const [kind, times] of Object.entries(troubles.counts)) counts.set(`fault: lake ${kind}`, times)
  counts.set('disk operations that failed or hung', files.faults)
  note(world, 'end', machine.tasks)
  return {
    ...{
      seed,
      steps: step,
      hash: trace.hash,
      events: machine.tasks,
      virtualMs: machine.nowMs,
      counts,
      failure,
    },
  }
}

function checkAgreement(world: World): void {
  if (world.real === null) return
  const { first } = world.real.disagreements
  check(world, 'the modelled lake answers as the real one', first === null, () => `${first}`)
}

/** Errors that no code of the server has caught: the program would end by them. */
class UncaughtErrors {
  readonly #errors: unknown[] = []
  readonly #note = (error: unknown): void => void this.#errors.push(error)

  constructor() {
    process.on('unhandledRejection', this.#note)
    process.on('uncaughtException', this.#note)
  }

  check(): void {
    const [error] = this.#errors
    if (error !== undefined)
      throw new Violation('no error is left uncaught', String((error as Error).stack ?? error))
  }

  end(): void {
    process.off('unhandledRejection', this.#note)
    process.off('uncaughtException', this.#note)
  }
}

function feedOf(seed: number): MarketFeed {
  const draw = drawsOf(seed, 'what trades').next()
  if (draw < HAS_SIMULATOR) return 'simulator'
  return draw < HAS_SIMULATOR + HAS_CHAIN ? 'solana' : 'push'
}

function sizesOf({ seed, agentsMax = Number.POSITIVE_INFINITY }: RunOptions, feed: MarketFeed): Sizes {
  const draws = drawsOf(seed, 'sizes')
  const drawn = draws.weighted(KINDS)
  // A simulated market launches tokens of its own beside those that it begins with.
  const kind = feed === 'push' ? drawn : 'few'
  return {
    tokens: kind === 'few' ? draws.whole(2, 10) : kind === 'evicted' ? 22 : 150,
    tokensMax: kind === 'many' || feed !== 'push' ? 160 : 16,
    agents: Math.min(agentsMax, draws.whole(2, 8)),
    followers: draws.whole(1, 4),
  }
}

/** How long rows stay: in half of the runs for ever. */
function retentionOf(seed: number): { setting: string; days: Record<string, number> } {
  const draws = drawsOf(seed, 'retention')
  if (draws.chance(0.5)) return { setting: '', days: {} }
  const days = {
    ...{ training: draws.whole(1, 3), rejections: draws.whole(1, 3), bars: draws.whole(2, 3) },
    ...{ outcomes: draws.whole(1, 3), trades: draws.whole(1, 3) },
  }
  const named = Object.entries(days).map(([table, kept]) => `${table}=${kept}d`)
  return { setting: [...named, `unasked=${draws.of([10, 60, 100])}%`].join(','), days }
}

/** As few tokens and trades as there can be: the model computes all of them anew. */
const simulatorSettingsOf = (tokens: number): Record<string, string> => ({
  ...{ feed: 'simulator', record: 'true', simulator: `tokens=${tokens},trades-per-second=1` },
})

const CHAIN_SETTINGS = {
  ...{ feed: 'solana', 'solana-rpc': `http://127.0.0.1:${CHAIN_PORT}` },
  ...{ 'solana-ws': `ws://127.0.0.1:${CHAIN_PORT}`, 'solana-rps': '50' },
}

function settingsOf(seed: number, { tokensMax }: Sizes, feed: MarketFeed): Record<string, string> {
  const draws = drawsOf(seed, 'settings')
  const flushMs = draws.of(['2000', '10000', '30000'])
  const checkpointMs = draws.of(['5000', '20000', '60000'])
  return {
    'tokens-max': String(tokensMax),
    'lake-flush-ms': flushMs,
    // A simulated market has none: it begins anew.
    ...(feed !== 'simulator' && { record: `checkpoint-ms=${checkpointMs}` }),
    'lake-tidy': `every-ms=${draws.of([5_000, 20_000, 60_000])}`,
  }
}
