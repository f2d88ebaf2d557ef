// Writers beside the server of a cluster: a standby that waits for its end, writers that were started by mistake, and the server of before
// on a machine that stood still until another one had taken its place.

import { decodeMessage } from '../../src/cluster/messages.ts'
import type { Cluster } from './cluster.ts'
import type { SimulatedFiles } from './machine/files.ts'
import { type Draws, drawsOf } from './machine/machine.ts'
import { type NodeWorld, SimulatedNode, type SimulatedServer } from './server.ts'
import { check, count, drawsFor, note, type World } from './world.ts'

type ServerWorld = NodeWorld<NonNullable<SimulatedServer['app']>>

/** How many clusters have such writers, and standbys as writers. */
const HAS_OTHER_WRITERS = 0.34
export const hasOtherWriters = (seed: number): boolean =>
  drawsOf(seed, 'several writers').chance(HAS_OTHER_WRITERS)

/** The stream of events on the bus. */
const EVENTS = 'mintlake-events'
/** Ports of those that are started beside the server. */
const PORTS_FROM = 9_010
/** The machines that the data folder moves between. */
const HOSTS = ['server', 'server 2'] as const
const LAKE_PROGRAM = 'main.ts'
/** How often it is looked whether a machine that stands still goes on, ms. */
const STILL_LOOK_MS = 500
/** How long after its successor has begun a machine may stand still, ms. */
const STILL_MS_MAX = 15_000
/** Within this a writer that reaches the bus has found out that another one publishes, ms: it connects again, and looks. */
const FENCED_WITHIN_MS = 20_000
/** A refusal to start takes no longer, ms. */
const REFUSED_WITHIN_MS = 30_000
/** How long everybody must have reached the bus until a writer of another folder has found out, ms. */
const MISTAKEN_MS = 10_000
const FENCED = /another writer publishes on the bus in place of this one, which therefore stops/
const LOCKED = /the data folder .* is in use by another process \(process \d+\)/
const FENCED_BY_STRANGER = /a writer with another data folder publishes on the bus/

export interface OtherWritersOptions {
  /** Disks of machines that have one of their own. */
  disks: Map<string, SimulatedFiles>
  /** Where a writer of another folder has that. */
  otherFolder: string
  /** A server with these settings besides those that all have. */
  launch(settings: Readonly<Record<string, string>>): ServerWorld['launch']
  /** What a standby says, which may be the server soon. */
  onLog(level: string, message: string): void
}

export class OtherWriters {
  /** The server of before, on a machine that was lost; null: there is none. */
  left: SimulatedServer | null = null
  readonly #world: World
  readonly #cluster: Cluster
  readonly #options: OtherWritersOptions
  readonly #draws: Draws
  #standby: SimulatedServer | null = null
  /** A writer of another folder. */
  #mistaken: SimulatedServer | null = null
  #leftRun = ''
  /** When the machine that was lost goes on; null: nobody has taken its place. */
  #returnsMs: number | null = null
  #started = 0

  constructor(world: World, cluster: Cluster, options: OtherWritersOptions) {
    this.#world = world
    this.#cluster = cluster
    this.#options = options
    this.#draws = drawsFor(world, 'acts of other writers')
  }

  /** Beside the server, with its data folder. @returns whether it was started */
  startStandby(): boolean {
    if (this.#standby !== null || this.#world.server.app === null) return false
    this.#standby = this.#start('standby', {}, this.#options.onLog)
    return true
  }

  /** Where the server has ended, a standby beside it is the server from now on. @returns whether there was one */
  takeOver(): boolean {
    const { server } = this.#world
    const standby = this.#standby
    if (server.life !== null || standby === null) return false
    count(this.#world, 'standbys that took over')
    note(this.#world, 'the standby takes over')
    server.goOnAs(standby)
    this.#standby = null
    return true
  }

  /** A second writer is started with the data folder of the server, and refuses to begin. @returns whether it was tried */
  async startOnSameFolder(): Promise<boolean> {
    const { machine, server } = this.#world
    const { life } = server
    if (life === null || life.app === null || life.stoppingMs !== null) return false
    const second = this.#start('second writer', { role: 'writer' })
    const { life: started } = second
    await machine.until(() => !started?.process.isAlive || !life.process.isAlive, REFUSED_WITHIN_MS)
    const { failure = '' } = started ?? {}
    second.crash()
    if (!life.process.isAlive || life.stoppingMs !== null || this.#world.files.mode !== 'ok') return true
    check(
      this.#world,
      'a second writer does not begin with the folder of another',
      LOCKED.test(failure ?? ''),
      () => `it ended with ${failure}`,
    )
    return true
  }

  /** A writer of another folder is started on the same bus, and refuses to begin. @returns whether it was started */
  startOnOtherFolder(): boolean {
    const isStreaming = (this.#cluster.streams.get(EVENTS)?.messages.length ?? 0) > 0
    if (this.#mistaken !== null || !isStreaming || !this.#isWell) return false
    const settings = { role: 'writer', 'data-dir': this.#options.otherFolder }
    this.#mistaken = this.#start('mistaken writer', settings)
    return true
  }

  /**
   * The machine of the server stands still, and its disk goes to another machine, where the server is to be started. The one before keeps a copy,
   * and goes on some time after another writer has taken its place. @returns whether it was so
   */
  loseMachine(): boolean {
    const { files, machine, server } = this.#world
    const { life, host } = server
    if (this.left !== null || life === null || life.app === null || life.stoppingMs !== null) return false
    this.endBeside()
    this.#options.disks.set(host, files.moveOn())
    // What it had not brought to the lake is brought there from the log, by the next one.
    for (const process of [...machine.processes.values()])
      if (process.host === host && process.name === LAKE_PROGRAM) process.kill()
    this.#leftRun = life.app.store.runId
    this.#returnsMs = null
    this.left = server.leaveBehind()
    server.host = HOSTS.find((each) => each !== host) ?? host
    server.port = this.#newPort()
    this.#standStill(this.left)
    return true
  }

  /** Ends what has ended, and what was a mistake; looks whether the server of before has. */
  keepUp(): void {
    if (this.#standby !== null && !this.#standby.life?.process.isAlive) {
      note(this.#world, 'the standby has ended')
      this.#standby = null
    }
    this.#lookAtLeft()
    if (this.#mistaken !== null) this.#lookAtMistaken(this.#mistaken)
  }

  /** The operator waits until the server of before has ended. The bus is well. */
  async heal(): Promise<void> {
    this.endMistaken()
    const { left } = this
    if (left === null) return
    await this.#world.machine.until(
      () => !left.life?.process.isAlive,
      2 * STILL_LOOK_MS + STILL_MS_MAX + FENCED_WITHIN_MS,
    )
    this.#lookAtLeft()
    const isOver = this.left === null
    check(this.#world, 'a writer that returns ends', isOver, () => `run ${this.#leftRun} goes on`)
  }

  /** Whoever empties the bus ends first what might begin it again. */
  endLeft(): void {
    this.left?.crash()
    this.#forgetLeft()
  }

  endMistaken(): void {
    const { files } = this.#world
    const { otherFolder } = this.#options
    this.#mistaken?.crash()
    this.#mistaken = null
    const isWithin = (name: string): boolean => name === otherFolder || name.startsWith(`${otherFolder}/`)
    for (const name of [...files.names.keys()].filter(isWithin).reverse()) files.unlink(name)
  }

  /** The machine of the server ends, or is lost. */
  endBeside(): void {
    this.#standby?.crash()
    this.#standby = null
    this.endMistaken()
  }

  /** Ends all of it. */
  end(): void {
    this.endBeside()
    this.endLeft()
  }

  #newPort(): number {
    return PORTS_FROM + ++this.#started
  }

  #start(
    name: string,
    settings: Readonly<Record<string, string>>,
    onLog = (level: string, message: string) => note(this.#world, name, level, message),
  ): SimulatedServer {
    const { machine, seed, server } = this.#world
    const { network } = this.#cluster
    const { launch } = this.#options
    const draws = drawsOf(seed, `network of ${name}`)
    const port = this.#newPort()
    const node = new SimulatedNode({ machine, network, name, port, draws, onLog, launch: launch(settings) })
    node.host = server.host
    node.start()
    return node
  }

  /** The server is up, and everybody reaches the bus. */
  get #isWell(): boolean {
    const { nats, network } = this.#cluster
    const { server } = this.#world
    const isOpen = ['nats', server.host].every((host) => network.wayTo(host) === 'open')
    return server.app !== null && server.isUp && nats !== null && isOpen
  }

  /** All processes of its machine, until its successor has published for some time. */
  #standStill(left: SimulatedServer): void {
    const { machine } = this.#world
    const process = left.life?.process
    if (!process?.isAlive) return
    if (this.#hasSuccessor) this.#returnsMs ??= machine.nowMs + this.#draws.between(0, STILL_MS_MAX)
    if (this.#returnsMs !== null && machine.nowMs >= this.#returnsMs) {
      note(this.#world, 'the machine that was lost goes on')
      return
    }
    for (const each of machine.processes.values())
      if (each.host === process.host) each.frozenUntilMs = machine.nowMs + 2 * STILL_LOOK_MS
    machine.after(STILL_LOOK_MS, () => this.#standStill(left), machine.world)
  }

  /** Another run has published since. */
  get #hasSuccessor(): boolean {
    const newest = this.#cluster.streams.get(EVENTS)?.messages.at(-1)
    return newest !== undefined && decodeMessage(newest.payload).runId !== this.#leftRun
  }

  #lookAtLeft(): void {
    const { machine } = this.#world
    const { nats, network, disturbedMs } = this.#cluster
    const life = this.left?.life
    if (life == null) return
    if (life.process.isAlive) {
      const { host } = life.process
      const isCutOff = nats === null || [host, 'nats'].some((each) => network.wayTo(each) !== 'open')
      if (this.#returnsMs === null || isCutOff) return
      const sinceMs = Math.max(this.#returnsMs + 2 * STILL_LOOK_MS, disturbedMs)
      const forMs = machine.nowMs - sinceMs
      check(
        this.#world,
        'a writer that returns ends',
        forMs < FENCED_WITHIN_MS,
        () => `run ${this.#leftRun} goes on for ${forMs} ms`,
      )
      return
    }
    check(
      this.#world,
      'a writer that returns says why it ends',
      FENCED.test(life.failure ?? ''),
      () => `it ended with ${life.failure}`,
    )
    note(this.#world, 'the server of before has ended')
    this.#forgetLeft()
  }

  #forgetLeft(): void {
    const { left } = this
    if (left === null) return
    left.noteEnd()
    this.#options.disks.delete(left.host)
    this.left = null
  }

  #lookAtMistaken({ life }: SimulatedServer): void {
    const { files, machine, troubles } = this.#world
    const { disturbedMs } = this.#cluster
    const isAlive = life?.process.isAlive === true
    const aloneMs = machine.nowMs - Math.max(life?.startedMs ?? 0, disturbedMs)
    if (isAlive && this.#isWell && aloneMs <= MISTAKEN_MS) return
    // It asks its lake before it looks at the bus: one that fails, does not answer or was killed keeps it from beginning.
    const isLakeBad = Object.values(troubles.rates).some(Boolean)
    const isHeld =
      life?.app == null && (isAlive ? isLakeBad : life?.failure?.startsWith('StoreError') === true)
    const isExcused = !this.#isWell || files.mode !== 'ok' || isHeld
    check(
      this.#world,
      'a writer does not go on beside one of another folder',
      isExcused || FENCED_BY_STRANGER.test(life?.failure ?? ''),
      () => (isAlive ? 'it goes on' : `it ended with ${life?.failure}`),
    )
    this.endMistaken()
  }
}
