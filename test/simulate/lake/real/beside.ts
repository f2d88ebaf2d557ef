// A real lake process beside a modelled one: it gets the same requests at the same moments, and both have to say the same.
import type { LakeProcessOptions, RequestKind, Requests } from '../../../../src/store/process/protocol.ts'
import { restoreState, type StatePiece } from '../../../../src/store/state/read-state.ts'
import {
  STATE_TABLES,
  type StateAges,
  type StateTable,
  type StoreState,
} from '../../../../src/store/state/state.ts'
import type { RealLake, RealLakeProcess } from './real-lake.ts'
import { findDifference } from './same.ts'

/** What keeps what the model and the real one disagree on. */
export interface Disagreements {
  /** The first one; null: there is none. */
  first: string | null
}

/** Requests that the model answers in its own way, since the server makes nothing of the answer. */
type Compared = Exclude<RequestKind, 'state' | 'close'>

export class BesideModel {
  readonly #lake: RealLake
  readonly #started: Promise<RealLakeProcess>
  readonly #disagreements: Disagreements

  constructor(lake: RealLake, options: LakeProcessOptions, disagreements: Disagreements) {
    this.#lake = lake
    this.#started = lake.start(options)
    this.#disagreements = disagreements
  }

  /** The real answer. @throws Error where there is none, though the model has one */
  async ask<K extends RequestKind>(kind: K, ask: Requests[K]['ask']): Promise<Requests[K]['answer']> {
    const process = await this.#started
    const reply = await process.ask(kind, ask)
    if (reply?.ok === true) return reply.answer as Requests[K]['answer']
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
    const options = { ...ages, isSaved: false }
    const read = await restoreState(
      position,
      (async function* () {
        yield* pieces
      })(),
      options,
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
  snapshot(to: string): Promise<Requests['snapshot']['answer']> {
    return this.ask('snapshot', { to: this.#lake.copyFolder(to) })
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
