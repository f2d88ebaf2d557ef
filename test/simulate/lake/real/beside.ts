// A real lake process beside a modelled one: it gets the same requests at the same moments, and both have to say the same.
import type { CrashPoint } from '../../../../src/store/process/crash-points.ts'
import type { LakeProcessOptions, RequestKind, Requests } from '../../../../src/store/process/protocol.ts'
import { restoreState, type StatePiece } from '../../../../src/store/state/read-state.ts'
import {
  STATE_TABLES,
  type StateAges,
  type StateTable,
  type StoreState,
} from '../../../../src/store/state/state.ts'
import type { LakeTrouble } from '../../../../src/store/types.ts'
import type { Draws, SimulatedProcess } from '../../machine/machine.ts'
import type { RealLake, RealLakeProcess } from './real-lake.ts'
import { findDifference } from './same.ts'

/** What the model and the real one disagree on. */
export interface Disagreements {
  /** The first one; null: there is none. */
  first: string | null
}

/** Points within a request before its transaction is over, and behind it; those of upkeep are behind what leaves. */
const BEFORE = [
  ...(['flush:read', 'flush:copied', 'flush:synced', 'flush:published', 'flush:recorded'] as const),
  ...(['events:read', 'events:copied', 'events:synced', 'events:published', 'events:recorded'] as const),
] as const satisfies readonly CrashPoint[]
const BEHIND = [
  ...(['flush:listed', 'flush:linked', 'events:listed', 'events:linked'] as const),
  ...(['merge:planned', 'merge:copied', 'merge:published', 'merge:listed', 'merge:linked'] as const),
  ...(['retain:listed', 'retain:linked', 'expire:removed', 'expire:forgotten'] as const),
] as const satisfies readonly CrashPoint[]
/** How many processes end within a request. */
const CRASHES = 0.4

/** The real process has ended within a request, as it was meant to. */
export class Crashed extends Error {
  /** What the request changes is done. */
  readonly isDone: boolean

  constructor(at: CrashPoint) {
    super(`the real lake process has ended at ${at}`)
    this.isDone = BEHIND.some((point) => point === at)
  }
}

/** Ends of processes within a request. */
export class Crashes {
  readonly #draws: Draws
  readonly #meant = new Set<SimulatedProcess>()
  #areOver = false

  constructor(draws: Draws) {
    this.#draws = draws
  }

  /** Where the real process of this one is to end; null: nowhere. */
  draw(process: SimulatedProcess): CrashPoint | null {
    if (this.#areOver || !this.#draws.chance(CRASHES)) return null
    this.#meant.add(process)
    process.onEnd(() => this.#meant.delete(process))
    return this.#draws.of<CrashPoint>([...BEFORE, ...BEHIND])
  }

  /** Faults have ended: a process that is still to end does so now. */
  end(): void {
    this.#areOver = true
    for (const process of [...this.#meant]) process.kill()
  }

  resume(): void {
    this.#areOver = false
  }
}

export interface RealWorld {
  lake: RealLake
  disagreements: Disagreements
  /** Null: processes end between requests alone. */
  crashes: Crashes | null
  /** Called with where one has ended. */
  onCrash(at: CrashPoint): void
}

/** Requests that the model answers in its own way, since the server makes nothing of the answer. */
type Compared = Exclude<RequestKind, 'state' | 'close'>

export class BesideModel {
  readonly #lake: RealLake
  readonly #started: Promise<RealLakeProcess>
  readonly #disagreements: Disagreements
  readonly #onCrash: (at: CrashPoint) => void
  /** Where it is meant to end; null: nowhere. */
  readonly #crash: CrashPoint | null
  hasCrashed = false
  /** Files that it has found damaged. */
  setAside: LakeTrouble['setAside'] = []

  constructor(
    { lake, disagreements, crashes, onCrash }: RealWorld,
    options: LakeProcessOptions,
    process: SimulatedProcess,
  ) {
    this.#crash = crashes?.draw(process) ?? null
    process.onEnd(() => this.kill())
    this.#lake = lake
    const crash = this.#crash && { at: this.#crash, withServer: false }
    this.#started = lake.start({ ...options, crash })
    this.#disagreements = disagreements
    this.#onCrash = onCrash
  }

  /** The real answer. @throws Crashed @throws Error where there is none, though the model has one */
  async ask<K extends RequestKind>(kind: K, ask: Requests[K]['ask']): Promise<Requests[K]['answer']> {
    const process = await this.#started
    const reply = await process.ask(kind, ask)
    this.setAside = process.trouble?.setAside ?? []
    if (reply?.ok === true) return reply.answer as Requests[K]['answer']
    if (reply === null && this.#crash !== null && !this.hasCrashed) {
      this.hasCrashed = true
      this.#onCrash(this.#crash)
      throw new Crashed(this.#crash)
    }
    const log = process.log.slice(-3).map((line) => JSON.stringify(line))
    throw this.#disagree(
      `${kind}: the real one ${reply === null ? 'has ended' : `says ${reply.message}`}; ${log}`,
    )
  }

  /** Notes where the two answers differ. @returns the real one */
  agree<K extends Compared>(kind: K, real: Requests[K]['answer'], model: unknown): Requests[K]['answer'] {
    const difference = findDifference(real, model)
    if (difference !== null) this.#disagree(`${kind}: the real one and the model answer ${difference}`)
    return real
  }

  /** The saved state, in the pieces that the model cuts it into. */
  async readState(
    position: Requests['open']['answer']['position'],
    ages: StateAges,
    model: StoreState,
  ): Promise<StatePiece[]> {
    const pieces: StatePiece[] = []
    for (;;) {
      const { piece } = await this.ask('state', {})
      if (piece === null) break
      pieces.push(piece)
    }
    const read = await restoreState(
      position,
      (async function* () {
        yield* pieces
      })(),
      ages,
      false,
    )
    for (const table of STATE_TABLES) {
      const difference = findDifference(entriesOf(read, table), entriesOf(model, table))
      if (difference !== null)
        this.#disagree(`the saved ${table}: the real one and the model have ${difference}`)
    }
    return [...Map.groupBy(pieces, ({ table }) => table)].map(([table, ofTable]) => ({
      table,
      entryCount: ofTable.reduce((sum, { entryCount }) => sum + entryCount, 0),
      json: JSON.stringify(ofTable.flatMap(({ json }) => JSON.parse(json))),
    }))
  }

  /** Copies the real lake to the folder that stands for one of the simulated disk. */
  snapshot({ to, nowMs }: Requests['snapshot']['ask']): Promise<Requests['snapshot']['answer']> {
    return this.ask('snapshot', { to: this.#lake.copyFolder(to), nowMs })
  }

  kill(): void {
    void this.#started.then((process) => process.kill())
  }

  #disagree(what: string): Error {
    this.#disagreements.first ??= what
    return new Error(what)
  }
}

/** Entries of a table by their keys, or in their order where they have none. */
function entriesOf(state: StoreState, table: StateTable): unknown {
  const entries = [...state[table].entries()] as [string | number, unknown][]
  return typeof entries[0]?.[0] === 'string' ? Object.fromEntries(entries) : entries
}
