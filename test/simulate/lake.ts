// The lake process, modelled: plain tables instead of DuckDB and Parquet, behind the real protocol. It reads the real log and the real
// journal. Each request can fail, hang, be slow, or end the process; what was recorded before stays.

import type { EventBatch } from '../../src/journal/event-batch.ts'
import { readJournal } from '../../src/journal/reader.ts'
import type { SegmentDamage } from '../../src/lib/segments/types.ts'
import {
  compareKeys,
  LISTED_COLUMNS,
  type ListedRow,
  type SubmissionPage,
  type SubmissionQuery,
  submissionKeyOf,
} from '../../src/schema/api/submission-list.ts'
import type { Row, SubmissionRow, TableName } from '../../src/schema/tables.ts'
import { readLog } from '../../src/store/log/reader.ts'
import { BAR_NUMBER_COUNT, BAR_NUMBERS } from '../../src/store/market-data/bar-batch.ts'
import { type BarAccount, copyAccount, emptyAccount } from '../../src/store/market-data/bar-counts.ts'
import type { BarDelivery } from '../../src/store/market-data/bar-store.ts'
import { ProfileBuffer } from '../../src/store/market-data/profile-buffer.ts'
import { journalFolder, logFolder } from '../../src/store/paths.ts'
import type {
  EventsAnswer,
  FlushAnswer,
  LakeProcessOptions,
  Reply,
  Request,
  RequestKind,
  Requests,
} from '../../src/store/process/protocol.ts'
import type { StatePiece } from '../../src/store/state/read-state.ts'
import { completeRow } from '../../src/store/state/recovered.ts'
import { applyCommit, STATE_TABLES, type StateAges, StoreState } from '../../src/store/state/state.ts'
import type { ChildSide } from './machine/child-process.ts'
import type { Draws, Machine } from './machine/machine.ts'

export type LakeFault = 'fails' | 'hangs' | 'slow' | 'killed'

/** A row of a table, as the log has it. */
export interface LakeRow {
  lsn: number
  knownAtMs: number
  row: Row
}

export type LakeBar = Record<(typeof BAR_NUMBERS)[number], number> & { mint: string }

const barKey = (mint: string, tf: number, t: number): string => `${mint} ${tf} ${t}`

/** What the lake has: all of it is durable, and each request that changes it does so in one step. */
export class LakeContents {
  logId: string | null = null
  state: StoreState | null = null
  ages: Required<StateAges> | null = null
  readonly tables = new Map<TableName, LakeRow[]>()
  readonly bars = new Map<string, LakeBar>()
  readonly accounts = new Map<string, BarAccount>()
  readonly profiles: Row[] = []
  readonly batches: EventBatch[] = []
  eventNo = 0
  /** Numbers that the journal does not have, inclusive. */
  readonly lostEvents: { from: number; to: number }[] = []
  lostRows = 0

  rows(table: TableName): readonly LakeRow[] {
    return this.tables.get(table) ?? []
  }

  get eventsLost(): number {
    return this.lostEvents.reduce((sum, { from, to }) => sum + to - from + 1, 0)
  }
}

/** How the lake processes of a run misbehave. */
export interface LakeTroubles {
  /** How often a request meets each fault. */
  rates: Partial<Record<LakeFault, number>>
  readonly counts: Record<LakeFault, number>
  /** Requests that hang go on when these are called. */
  readonly held: Set<() => void>
}

type Handlers = { [K in RequestKind]?: (ask: Requests[K]['ask']) => Promise<Requests[K]['answer']> }

const SLOW_MS_MAX = 20_000

/** One lake process. */
class LakeProcess {
  readonly #child: ChildSide
  readonly #lake: LakeContents
  readonly #options: LakeProcessOptions
  readonly #machine: Machine
  readonly #troubles: LakeTroubles
  readonly #draws: Draws
  readonly #profiles = new ProfileBuffer()
  /** Bars that were delivered and are in no file. */
  #bars: LakeBar[] = []
  #account = emptyAccount()
  #takenBars = 0
  #inLakeBars = 0
  #pieces: StatePiece[] = []
  #flushing: Promise<unknown> = Promise.resolve()

  constructor(child: ChildSide, lake: LakeContents, options: LakeProcessOptions, world: LakeWorld) {
    this.#child = child
    this.#lake = lake
    this.#options = options
    this.#machine = world.machine
    this.#troubles = world.troubles
    this.#draws = world.draws
  }

  async answer({ id, kind, ask }: Request): Promise<void> {
    const fault = this.#drawFault(kind)
    if (fault !== null) this.#troubles.counts[fault]++
    if (fault === 'hangs') await new Promise<void>((resolve) => this.#hold(resolve))
    if (fault === 'slow') await this.#sleep(this.#draws.between(0, SLOW_MS_MAX))
    const isLate = this.#draws.chance(0.5)
    if (fault === 'killed' && !isLate) return this.#child.exit()
    let reply: Reply
    try {
      if (fault === 'fails' && !isLate) throw new Error('simulated: the lake cannot be written')
      const handle = this.#handlers[kind] as ((ask: unknown) => Promise<unknown>) | undefined
      if (handle === undefined) throw new Error(`simulated: no ${kind}`)
      reply = { id, ok: true, answer: await handle(ask) }
      // What it did is done, and its caller does not hear of it.
      if (fault === 'fails') throw new Error('simulated: a later step failed')
    } catch (error) {
      reply = { id, ok: false, code: 'unavailable', message: String(error) }
    }
    if (fault === 'killed') return this.#child.exit()
    await this.#sleep(this.#draws.between(0, 5))
    this.#child.send(reply)
    if (kind === 'close') this.#machine.after(1, () => this.#child.exit())
  }

  #hold(goOn: () => void): void {
    this.#troubles.held.add(() => this.#machine.after(1, goOn, this.#child.process))
  }

  #drawFault(kind: RequestKind): LakeFault | null {
    if (kind === 'close') return null
    const { rates } = this.#troubles
    for (const fault of ['fails', 'hangs', 'slow', 'killed'] as const)
      if (this.#draws.chance(rates[fault] ?? 0)) return fault
    return null
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#machine.after(ms, resolve, this.#child.process))
  }

  readonly #handlers: Handlers = {
    open: async () => this.#open(),
    state: async () => ({ piece: this.#pieces.shift() ?? null }),
    flush: (ask) => this.#inTurn(() => this.#flush(ask)),
    events: (ask) => this.#inTurn(() => this.#events(ask)),
    bars: async (delivery) => this.#takeBars(delivery),
    tokens: async (delivery) => ({ taken: this.#profiles.take(delivery), inLake: this.#profiles.inLake }),
    find: async ({ analysisId }) => this.#find(analysisId),
    list: async ({ query }) => this.#list(query),
    compact: async () => ({ merged: 0, removed: 0 }),
    repair: async () => {
      throw new Error('simulated: no repair')
    },
    files: async () => ({ files: [] }),
    status: async () => ({ lake: [] }),
    close: async () => null,
  }

  #inTurn<Result>(act: () => Promise<Result>): Promise<Result> {
    const turn = this.#flushing.then(act)
    this.#flushing = turn.catch(() => undefined)
    return turn
  }

  #open(): Requests['open']['answer'] {
    const lake = this.#lake
    const { ages, logId, runId } = this.#options
    if (lake.logId !== null && lake.logId !== logId && lake.state!.lsn > 0)
      throw new Error('the lake is of another log')
    lake.logId = logId
    const kept = { cooldownKeptMs: 60_000, labelsDelayMs: 0, ...lake.ages, ...ages }
    lake.state ??= new StoreState({ ...kept, isSaved: false })
    lake.ages = kept
    this.#account = copyAccount(lake.accounts.get(runId) ?? emptyAccount())
    this.#pieces = STATE_TABLES.flatMap((table) => {
      const entries = [...lake.state![table].entries()]
      return entries.length === 0
        ? []
        : [{ table, entryCount: entries.length, json: JSON.stringify(entries) }]
    })
    this.#tellLosses()
    const { lsn, knownAtMs, agedToMs } = lake.state
    return { position: { lsn, knownAtMs, agedToMs, eventNo: lake.eventNo, ages: kept }, ages: kept }
  }

  async #flush({ throughLsn }: Requests['flush']['ask']): Promise<FlushAnswer> {
    const lake = this.#lake
    const state = lake.state!
    // A copy: what is delivered while this waits is for the next flush, as its account is.
    const [bars, takenBars, profiles] = [[...this.#bars], this.#takenBars, this.#profiles.held]
    const account = copyAccount(this.#account)
    const commits: { lsn: number; knownAtMs: number; rows: [TableName, Row][] }[] = []
    let damage: FlushAnswer['damage'] = []
    if (throughLsn > state.lsn) {
      const { dataDir, logId } = this.#options
      const read = { folder: logFolder(dataDir), logId, afterLsn: state.lsn, throughLsn }
      const report = await readLog(read, (record) => {
        const { lsn, knownAtMs } = record
        commits.push({ lsn, knownAtMs, rows: record.rows() })
      })
      damage = report.damage
    }
    await this.#sleep(this.#draws.between(0, 20))
    // One transaction.
    for (const commit of commits) {
      applyCommit(state, commit)
      for (const [table, row] of commit.rows) this.#addRow(table, { ...commit, row })
    }
    state.lsn = Math.max(state.lsn, throughLsn)
    lake.profiles.push(...this.#profiles.waiting().slice(0, profiles))
    this.#profiles.release(profiles)
    this.#recordBars(bars, account)
    this.#bars = this.#bars.slice(bars.length)
    this.#inLakeBars = Math.max(this.#inLakeBars, takenBars)
    const inLake = { bars: this.#inLakeBars, profiles: this.#profiles.inLake }
    return { lsn: state.lsn, files: 0, rows: 0, deadRows: 0, damage, bars: this.#account, inLake }
  }

  #addRow(table: TableName, { lsn, knownAtMs, row }: LakeRow): void {
    const rows = this.#lake.tables.get(table) ?? []
    this.#lake.tables.set(table, rows)
    rows.push({ lsn, knownAtMs, row })
  }

  /** Of bars with the same place the first one counts. */
  #recordBars(bars: readonly LakeBar[], account: BarAccount): void {
    const { accounts, bars: known } = this.#lake
    const before = accounts.get(this.#options.runId) ?? emptyAccount()
    const written = [...before.written]
    for (const bar of bars) {
      const key = barKey(bar.mint, bar.tf, bar.t)
      if (known.has(key)) {
        account.repeated[bar.tf]++
        this.#account.repeated[bar.tf]++
        continue
      }
      known.set(key, bar)
      written[bar.tf]++
    }
    this.#account.written = written
    accounts.set(this.#options.runId, { ...account, written })
  }

  #takeBars({ first, batch, dropped }: BarDelivery): Requests['bars']['answer'] {
    if (this.#takenBars <= first) {
      batch.mints.forEach((mint, index) => {
        const numbers = batch.numbers.slice(index * BAR_NUMBER_COUNT, (index + 1) * BAR_NUMBER_COUNT)
        const bar = {
          ...Object.fromEntries(BAR_NUMBERS.map((name, at) => [name, numbers[at]])),
          mint,
        } as LakeBar
        const account = this.#account
        const skipped = bar.close_no - account.closed[bar.tf] - 1
        if (skipped < 0) return
        account.closed[bar.tf] += skipped + 1
        account.dropped[bar.tf] = Math.min(account.dropped[bar.tf] + skipped, dropped[bar.tf])
        this.#bars.push(bar)
      })
      this.#takenBars += batch.mints.length
    }
    return { taken: true, inLakeBars: this.#inLakeBars, held: this.#bars.length }
  }

  async #events({ throughEventNo }: Requests['events']['ask']): Promise<EventsAnswer> {
    const lake = this.#lake
    const { dataDir, logId } = this.#options
    const damage: SegmentDamage[] = []
    const batches: EventBatch[] = []
    const lost: { from: number; to: number }[] = []
    let nextNo = lake.eventNo + 1
    const options = {
      throughEventNo,
      folderId: logId,
      onDamage: (found: SegmentDamage) => damage.push(found),
    }
    for await (const batch of readJournal(journalFolder(dataDir), lake.eventNo, options)) {
      if (batch.lastEventNo < nextNo) continue
      if (batch.firstEventNo > nextNo) lost.push({ from: nextNo, to: batch.firstEventNo - 1 })
      batches.push(batch)
      nextNo = batch.lastEventNo + 1
    }
    const last = Math.max(0, ...damage.map(({ missing }) => missing?.to ?? 0))
    if (last >= nextNo) {
      lost.push({ from: nextNo, to: last })
      nextNo = last + 1
    }
    await this.#sleep(this.#draws.between(0, 20))
    lake.batches.push(...batches)
    lake.lostEvents.push(...lost)
    lake.eventNo = nextNo - 1
    this.#tellLosses()
    return { eventNo: lake.eventNo, retainedFrom: 1, files: 0, rows: 0, damage }
  }

  #tellLosses(): void {
    const { eventsLost } = this.#lake
    if (eventsLost > 0) this.#child.send({ trouble: { setAside: [], retentionHeld: null, eventsLost } })
  }

  #find(analysisId: string): SubmissionRow | null {
    for (const table of ['training', 'rejections'] as const) {
      const found = this.#lake.rows(table).find(({ row }) => row.analysis_id === analysisId)
      if (found !== undefined) return completeRow(table, found.row, found.knownAtMs)
    }
    return null
  }

  #list({ agentId, mint, before, limit }: SubmissionQuery): SubmissionPage {
    const found = (['training', 'rejections'] as const)
      .flatMap((table) =>
        this.#lake
          .rows(table)
          .map(({ row, knownAtMs }) => completeRow(table, row, knownAtMs) as unknown as Row),
      )
      .filter((row) => (agentId === null || row.agent_id === agentId) && (mint === null || row.mint === mint))
      .map((row) => Object.fromEntries(LISTED_COLUMNS.map((name) => [name, row[name] ?? null])))
      .map((row) => row as unknown as ListedRow)
      .filter((row) => before === null || compareKeys(before, submissionKeyOf(row)) < 0)
      .sort((a, b) => compareKeys(submissionKeyOf(a), submissionKeyOf(b)))
    const page = found.slice(0, limit)
    const xp = new Map(this.#lake.rows('xp_ledger').map(({ row }) => [row.analysis_id, Number(row.xp)]))
    const submissions = page.map((row) => ({ row, xp: xp.get(row.analysis_id) ?? null, outcomes: null }))
    const last = page.at(-1)
    return {
      submissions,
      next: found.length > limit && last !== undefined ? submissionKeyOf(last) : null,
      searchedToMs: null,
    }
  }
}

export interface LakeWorld {
  machine: Machine
  troubles: LakeTroubles
  draws: Draws
}

/** The program of the lake process: takes its options, then requests. */
export const lakeProgram =
  (lake: LakeContents, world: LakeWorld) =>
  (child: ChildSide): void => {
    let opened: LakeProcess | null = null
    child.onMessage((message: LakeProcessOptions | Request) => {
      if (opened === null) opened = new LakeProcess(child, lake, message as LakeProcessOptions, world)
      else void opened.answer(message as Request)
    })
  }
