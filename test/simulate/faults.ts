// What goes wrong: each run has some of the faults, each with a rate of its own.

import { HORIZON_NAMES, HORIZONS } from '../../src/schema/vocabulary.ts'
import type { Cast, LifeEnd } from './actors/cast.ts'
import { HEAL_MS } from './at-rest.ts'
import type { Cluster } from './cluster.ts'
import type { LakeFault } from './lake/process.ts'
import type { DiskMode } from './machine/files.ts'
import type { Draws } from './machine/machine.ts'
import type { Way } from './machine/network.ts'
import type { OtherWriters } from './other-writers.ts'
import type { SimulatedNode } from './server.ts'
import { check, count, drawsFor, note, type World } from './world.ts'

export const FAULT_KINDS = [
  'crash',
  'cut',
  'stop',
  'disk full',
  'disk failing',
  'disk hanging',
  'disk slow',
  'lake fails',
  'lake hangs',
  'lake slow',
  'lake killed',
  'child killed',
  'clock',
  'flipped byte',
  'flipped journal',
  'flipped log',
  'absence',
  'reader killed',
  'bus killed',
  'bus loses its last',
  'bus emptied',
  'way held',
  'way closed',
  'way slow',
  'frozen',
  'standby',
  'second writer',
  'other folder',
  'machine lost',
] as const
export type FaultKind = (typeof FAULT_KINDS)[number]
/** Of runs with readers. */
const IN_CLUSTERS: ReadonlySet<FaultKind> = new Set<FaultKind>([
  ...(['reader killed', 'bus killed', 'bus loses its last', 'bus emptied'] as const),
  ...(['way held', 'way closed', 'way slow', 'frozen'] as const),
  ...(['standby', 'second writer', 'other folder', 'machine lost'] as const),
])
/** Of clusters with other writers beside the server. */
const OF_OTHER_WRITERS: ReadonlySet<FaultKind> = new Set<FaultKind>([
  ...(['standby', 'second writer', 'other folder', 'machine lost'] as const),
])

/** How often a fault happens at a step, at its highest rate. */
const RATE_MAX = 0.02
const RATE_MIN = 0.002
/** Of what few runs have at all. */
const RARE_RATE_MIN = 0.01
const HAS_FAULT = 0.5
/** Much is not compared where the clock was wrong, or what was recorded is damaged. */
const HAS_SELDOM: Partial<Record<FaultKind, number>> = {
  clock: 0.15,
  'flipped journal': 0.15,
  'flipped log': 0.15,
  absence: 0.3,
}
const DISK_FAULT_MS_MAX = 40_000
const CLUSTER_FAULT_MS_MAX = 30_000
/** The longest time that nobody starts the server. */
const ABSENT_MS_MAX = 4 * 86_400_000
/** The program ends itself where its stop takes longer, ms. */
const STOP_MS_MAX = 24_000
/** A start that takes longer has failed. */
const START_MS_MAX = 200_000
/** A disk that takes nothing for so long is told in /health. */
const TOLD_WITHIN_MS = 15_000
/** A life that is up for so long has synced what those before it have written. */
const SYNCED_WITHIN_MS = 15_000
/** A write that has not ended for so long hangs. */
const NOTICED_WITHIN_MS = 7_000
/** What /health says of a journal that nothing can be written to. */
const NOT_RECORDED = /market events/

export class Faults {
  readonly rates = new Map<FaultKind, number>()
  readonly #world: World
  readonly #cast: Cast
  readonly #draws: Draws
  /** Whether each kind happens: without one, the others happen as they did. */
  readonly #drawn = new Map<FaultKind, Draws>()
  /** When the disk is well again. */
  #diskUntilMs = 0
  #diskSinceMs = 0
  #restartAtMs = 0
  /** The last life of which everything is synced that lives before it have written. */
  #syncedLife = 0
  /** Files of which a byte was flipped. */
  readonly #flipped = new Set<string>()
  /** When faults ended last. */
  #endedMs = 0

  constructor(world: World, cast: Cast, without: readonly FaultKind[]) {
    this.#world = world
    this.#cast = cast
    this.#draws = drawsFor(world, 'faults')
    const draws = drawsFor(world, 'fault rates')
    for (const kind of FAULT_KINDS) {
      this.#drawn.set(kind, drawsFor(world, `fault ${kind}`))
      const [isIn, rate] = [draws.chance(HAS_SELDOM[kind] ?? HAS_FAULT), RATE_MAX * draws.next() ** 2]
      // A crash happens in every run.
      const isPossible =
        (world.cluster !== null || !IN_CLUSTERS.has(kind)) &&
        (world.otherWriters !== null || !OF_OTHER_WRITERS.has(kind))
      if ((isIn || kind === 'crash') && isPossible && !without.includes(kind))
        this.rates.set(kind, rate + (OF_OTHER_WRITERS.has(kind) ? RARE_RATE_MIN : RATE_MIN))
    }
    const ofLake = ['fails', 'hangs', 'slow', 'killed'] as const
    world.troubles.rates = Object.fromEntries(
      ofLake.map((fault) => [fault, this.rates.get(`lake ${fault}`) ?? 0]),
    ) as Record<LakeFault, number>
  }

  /** What may go wrong at a step, and what ends. */
  async act(): Promise<void> {
    await this.#keepUp()
    for (const kind of FAULT_KINDS) {
      const rate = this.rates.get(kind) ?? 0
      const isDrawn = this.#drawn.get(kind)!.chance(rate)
      if (isDrawn && !kind.startsWith('lake ')) await this.#happen(kind)
    }
  }

  async #happen(kind: FaultKind): Promise<void> {
    const world = this.#world
    const { machine } = world
    const draws = this.#draws
    if (kind === 'crash' || kind === 'cut') return this.#endLife(kind)
    if (kind === 'stop') return this.#stop()
    if (kind === 'absence') return this.#leaveAlone()
    if (kind === 'clock') return this.#setClock(draws.of([-1, 1]) * this.#drawClockError())
    if (kind === 'child killed') return this.#killChild()
    if (kind === 'flipped byte') return this.#flipSpare()
    if (world.otherWriters !== null && OF_OTHER_WRITERS.has(kind))
      return this.#happenBeside(kind, world.otherWriters)
    if (world.cluster !== null && IN_CLUSTERS.has(kind)) return this.#happenInCluster(kind, world.cluster)
    if (kind === 'flipped journal' || kind === 'flipped log') return this.#flipRecorded(kind)
    if (machine.nowMs < this.#diskUntilMs) return
    this.#tell(kind)
    this.#cast.hasBadDisk = true
    this.#diskSinceMs = machine.nowMs
    this.#diskUntilMs = machine.nowMs + draws.between(200, DISK_FAULT_MS_MAX)
    this.#world.files.setMode(kind.slice('disk '.length) as DiskMode)
  }

  #happenInCluster(kind: FaultKind, cluster: Cluster): void {
    const draws = this.#draws
    const { machine, server } = this.#world
    this.#tell(kind)
    if (kind === 'reader killed') {
      cluster.killReader(draws.of(cluster.readers))
      return
    }
    if (kind.startsWith('bus ')) {
      this.#world.otherWriters?.endMistaken()
      if (kind !== 'bus killed') this.#world.otherWriters?.endLeft()
      cluster.killNats()
      if (kind !== 'bus killed') {
        cluster.loseStreams(kind === 'bus emptied' ? 'all' : draws.whole(1, 40))
        this.#cast.replicas?.forgetStream()
      }
      return
    }
    const untilMs = machine.nowMs + draws.between(100, draws.chance(0.5) ? 3_000 : CLUSTER_FAULT_MS_MAX)
    if (kind !== 'frozen') {
      const host = draws.of(['server', 'nats', ...cluster.readers.map(({ name }) => name)])
      cluster.setWay(host === 'server' ? server.host : host, kind.slice('way '.length) as Way, untilMs)
      return
    }
    const { life } = draws.of([server as SimulatedNode<never>, ...(cluster.readers as never[])])
    if (life === null || !life.process.isAlive || life.stoppingMs !== null) return
    life.process.frozenUntilMs = untilMs
    cluster.disturbedMs = untilMs
  }

  /** Another writer begins, or the server goes on as one. */
  async #happenBeside(kind: FaultKind, others: OtherWriters): Promise<void> {
    const acts: Partial<Record<FaultKind, () => boolean | Promise<boolean>>> = {
      standby: () => others.startStandby(),
      'second writer': () => others.startOnSameFolder(),
      'other folder': () => others.startOnOtherFolder(),
      'machine lost': () => this.#loseMachine(others),
    }
    if (await acts[kind]?.()) this.#tell(kind)
  }

  /** For who goes on with its disk it is a power cut. */
  #loseMachine(others: OtherWriters): boolean {
    if (!others.loseMachine()) return false
    this.#noteEnd('cut')
    this.#restartAtMs = this.#world.machine.nowMs + this.#draws.between(50, 8_000)
    return true
  }

  #tell(kind: string): void {
    count(this.#world, `fault: ${kind}`)
    note(this.#world, 'fault', kind)
  }

  #endLife(kind: 'crash' | 'cut'): void {
    const { files, server } = this.#world
    if (server.life === null && kind === 'crash') return
    this.#tell(kind)
    this.#noteEnd(kind)
    server.crash()
    if (kind === 'cut') {
      this.#world.otherWriters?.endBeside()
      files.cutPower()
    }
    this.#restartAtMs = this.#world.machine.nowMs + this.#draws.between(50, 8_000)
  }

  #noteEnd(kind: LifeEnd['kind']): void {
    const { machine, server, files } = this.#world
    // What lives before had not synced goes too, until one of them was up for so long that it has done so.
    for (let life = server.lives; kind === 'cut' && life > this.#syncedLife; life--) {
      const before = this.#cast.ends.get(life)
      if (before?.kind === 'crash') before.kind = kind
    }
    if (this.#cast.ends.has(server.lives)) return
    const atMs = machine.nowMs
    const feedUntilMs = server.life?.stoppingMs ?? atMs
    this.#cast.ends.set(server.lives, { kind, atMs, feedUntilMs, hadBadDisk: this.#cast.hasBadDisk })
    this.#cast.hasBadDisk = files.mode !== 'ok'
  }

  /** Stops the server in order, which it has to do within its time. */
  async #stop(): Promise<void> {
    const { machine, server } = this.#world
    const { life } = server
    if (life === null || life.app === null || life.stoppingMs !== null) return
    this.#tell('stop')
    server.stop()
    const isEnded = await machine.until(() => !life.process.isAlive, STOP_MS_MAX)
    const isExcused = this.#cast.hasBadDisk || this.#isLakeBad
    check(this.#world, 'a stop is over within its time', isEnded || isExcused, () => `life ${server.lives}`)
    // As the program does whose stop takes too long.
    if (!isEnded) return this.#endLife('crash')
    check(this.#world, 'a stop does not fail', life.failure === null, () => `${life.failure}`)
    this.#noteEnd('stop')
    server.noteEnd()
    this.#restartAtMs = machine.nowMs + this.#draws.between(50, 8_000)
  }

  /** Nobody starts the server for hours or days: horizons pass, and dates get old. */
  async #leaveAlone(): Promise<void> {
    const { cluster, machine } = this.#world
    this.#tell('absence')
    if (this.#draws.chance(0.5)) await this.#stop()
    this.#endLife('crash')
    this.#world.otherWriters?.end()
    cluster?.end()
    const draws = this.#draws
    // Often so that a horizon of what was submitted last passes once the server is back.
    const horizonMs = HORIZONS[draws.of(HORIZON_NAMES)] - draws.between(0, 120_000)
    await machine.pass(draws.chance(0.5) ? horizonMs : draws.between(600_000, ABSENT_MS_MAX))
    this.#restartAtMs = machine.nowMs
    this.#cast.agents.forgetOldKeys()
  }

  get #isLakeBad(): boolean {
    return Object.values(this.#world.troubles.rates).some(Boolean)
  }

  /** Where rows leave by their age also so much that the clock must not be believed: between the two lies more than a day. */
  #drawClockError(): number {
    const draws = this.#draws
    const isWild = Object.keys(this.#world.retain).length > 0 && draws.chance(0.5)
    return isWild ? draws.whole(2, 10) * 86_400_000 : draws.whole(1_000, 7_200_000)
  }

  #setClock(errorMs: number): void {
    this.#tell('clock')
    const { lake } = this.#world
    this.#turnClock(errorMs)
    this.#world.hadWrongClock = true
    this.#world.hadWrongBegin ||= lake.knownTimeMs === null
  }

  #turnClock(errorMs: number): void {
    const { machine, positions, server } = this.#world
    machine.clockErrorMs = errorMs
    positions.noteClock(errorMs, server.life !== null && server.app === null)
  }

  /** A byte at rest changes of a file without which nothing is lost: at most one checkpoint, until there are newer ones. */
  #flipSpare(): void {
    const { names } = this.#world.files
    const checkpoints = [...names.keys()].filter((name) => name.endsWith('.checkpoint')).sort()
    const others = [...names.keys()].filter((name) => /(positions|clock)\.json$|\.mark$/.test(name))
    const isAlone = checkpoints.length < 2 || checkpoints.some((name) => this.#flipped.has(name))
    this.#flipByte('flipped byte', this.#draws.of([...others, ...(isAlone ? [] : checkpoints.slice(-1))]))
  }

  /** A byte changes of what is recorded and is in no other place, perhaps: once in a run. */
  #flipRecorded(kind: 'flipped journal' | 'flipped log'): void {
    const world = this.#world
    const isJournal = kind === 'flipped journal'
    if (isJournal ? world.hasDamagedJournal : world.hasDamagedLog) return
    const folder = isJournal ? '/data/journal/' : '/data/log/'
    const files = [...world.files.names].filter(
      ([name, { live }]) => name.includes(folder) && live.length > 0,
    )
    const isFlipped = this.#flipByte(kind, this.#draws.of(files)?.[0])
    if (!isFlipped) return
    if (isJournal) world.hasDamagedJournal = true
    else world.hasDamagedLog = true
  }

  /** @returns whether there is such a file, with a byte */
  #flipByte(kind: FaultKind, name: string | undefined): boolean {
    const entry = this.#world.files.names.get(name ?? '')
    if (name === undefined || entry === undefined || entry.live.length === 0) return false
    this.#tell(kind)
    note(this.#world, 'flipped', name.replace(/^.*\//, ''))
    this.#flipped.add(name)
    const at = this.#draws.whole(0, entry.live.length - 1)
    const bit = 1 << this.#draws.whole(0, 7)
    for (const bytes of [entry.live, entry.durable]) if (at < bytes.length) bytes[at] ^= bit
    return true
  }

  /** A child of the server ends: its lake process, or the one that makes a checkpoint. */
  #killChild(): void {
    const children = [...this.#world.machine.processes.values()].filter(({ name }) => name.endsWith('.ts'))
    if (children.length === 0) return
    const child = this.#draws.of(children)
    this.#tell('child killed')
    note(this.#world, 'killed', child.name)
    child.kill()
  }

  /** Starts a server where none runs, and ends faults whose time is over. */
  async #keepUp(): Promise<void> {
    const { cluster, files, machine, otherWriters, server } = this.#world
    cluster?.keepUp()
    otherWriters?.keepUp()
    if (files.mode !== 'ok' && machine.nowMs >= this.#diskUntilMs) {
      files.setMode('ok')
      note(this.#world, 'the disk is well again')
    }
    this.#askWhetherTold()
    const isSynced = server.app !== null && machine.nowMs - server.life!.startedMs > SYNCED_WITHIN_MS
    if (isSynced && !this.#cast.hasBadDisk) this.#syncedLife = server.lives - 1
    if (server.life !== null && !server.life.process.isAlive) {
      note(this.#world, 'the server has ended', (server.life.failure ?? '').replace(/\/simulated\/\d+/g, ''))
      const isExcused = this.#cast.hasBadDisk || this.#isLakeBad || server.life.startedMs < this.#endedMs
      check(this.#world, 'a server starts where nothing is wrong', isExcused, () => `${server.life?.failure}`)
      this.#noteEnd('crash')
      server.noteEnd()
      this.#restartAtMs = machine.nowMs + 1_000
    }
    if (otherWriters?.takeOver()) this.#world.positions.begin(machine.clockErrorMs)
    if (server.life === null && machine.nowMs >= this.#restartAtMs) {
      count(this.#world, 'starts')
      this.#world.positions.begin(machine.clockErrorMs)
      server.start()
    }
  }

  /** A disk that takes nothing is told. */
  #askWhetherTold(): void {
    const { files, machine, server } = this.#world
    const sinceMs = this.#diskSinceMs
    const isBad = files.mode === 'full' || files.mode === 'hanging'
    const isSettled = machine.nowMs - Math.max(sinceMs, server.life?.startedMs ?? 0) > TOLD_WITHIN_MS
    const isWaiting = this.#cast.hasTakenWithin(sinceMs, machine.nowMs - NOTICED_WITHIN_MS)
    if (!isBad || !isSettled || !server.isUp || !isWaiting) return
    const mode = files.mode
    server.send({ method: 'GET', path: '/health' }, ({ body, status }) => {
      if (files.mode !== mode || this.#diskSinceMs !== sinceMs) return
      const said = `the disk is ${mode} for ${machine.nowMs - sinceMs} ms, and /health says`
      check(
        this.#world,
        'what is not well is told in /health',
        status !== 200 || body.reasons.length > 0 || body.status !== 'ready',
        () => `${said} ${body.status}`,
      )
      check(
        this.#world,
        'market events that are not recorded are told',
        status !== 200 ||
          body.status !== 'ready' ||
          body.reasons.some((text: string) => NOT_RECORDED.test(text)),
        () => `${said} ${JSON.stringify(body.reasons)}`,
      )
    })
  }

  /** All is well from now on, and the server up. */
  async end(): Promise<void> {
    const { files, machine, server, troubles } = this.#world
    note(this.#world, 'faults end')
    this.#endedMs = machine.nowMs
    this.#diskUntilMs = 0
    files.setMode('ok')
    this.#turnClock(0)
    await this.#world.cluster?.heal()
    this.#world.chain?.heal()
    const rates = troubles.rates
    troubles.rates = {}
    this.#world.real?.crashes?.end()
    for (const release of troubles.held) release()
    troubles.held.clear()
    await machine.until(() => server.isUp && server.life?.app != null, 1_000)
    const untilMs = machine.nowMs + START_MS_MAX
    while (!(server.isUp && server.life?.app != null) && machine.nowMs < untilMs) {
      this.#restartAtMs = 0
      await this.#keepUp()
      await machine.until(
        () => server.life === null || !server.life.process.isAlive || server.life.app !== null,
        500,
      )
    }
    check(
      this.#world,
      'a server starts again once faults have ended',
      server.isUp,
      () => `${server.life?.failure ?? 'it does not listen'} after ${HEAL_MS} ms`,
    )
    await this.#world.otherWriters?.heal()
    this.#ratesBefore = rates
  }

  #ratesBefore: World['troubles']['rates'] = {}

  /** Faults may happen again. */
  resume(): void {
    this.#world.troubles.rates = this.#ratesBefore
    this.#world.real?.crashes?.resume()
    if (this.#world.chain !== null) this.#world.chain.isWell = false
  }
}
