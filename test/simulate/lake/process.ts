// The lake process, modelled: plain tables instead of DuckDB and Parquet, behind the real protocol. It reads the real log and the real
// journal. Each request can fail, hang, be slow, or end the process; what was recorded before stays.

import type { EventBatch } from '../../../src/journal/event-batch.ts'
import { readJournal } from '../../../src/journal/reader.ts'
import type { SegmentDamage } from '../../../src/lib/segments/types.ts'
import {
  compareKeys,
  LISTED_COLUMNS,
  type ListedRow,
  OUTCOME_LABELS,
  type OutcomeLabels,
  type SubmissionPage,
  type SubmissionQuery,
  submissionKeyOf,
} from '../../../src/schema/api/submission-list.ts'
import { type Row, type SubmissionRow, TABLES, type TableName } from '../../../src/schema/tables.ts'
import { TIMEFRAMES } from '../../../src/schema/timeframe.ts'
import { HORIZON_NAMES, HORIZONS } from '../../../src/schema/vocabulary.ts'
import { EventWindows } from '../../../src/store/events/event-windows.ts'
import type { SeqRange } from '../../../src/store/lake/lake-files.ts'
import { LABEL_DELAY_MS } from '../../../src/store/limits.ts'
import { readLog } from '../../../src/store/log/reader.ts'
import { BAR_NUMBER_COUNT, BAR_NUMBERS } from '../../../src/store/market-data/bar-batch.ts'
import { type BarAccount, emptyAccount } from '../../../src/store/market-data/bar-counts.ts'
import type { BarDelivery } from '../../../src/store/market-data/bar-store.ts'
import { lastVersions, ProfileBuffer } from '../../../src/store/market-data/profile-buffer.ts'
import { journalFolder, logFolder } from '../../../src/store/paths.ts'
import type {
  EventsAnswer,
  FlushAnswer,
  LakeProcessOptions,
  Reply,
  Request,
  RequestKind,
  Requests,
} from '../../../src/store/process/protocol.ts'
import type { StatePiece } from '../../../src/store/state/read-state.ts'
import { completeRow } from '../../../src/store/state/recovered.ts'
import { applyCommit, STATE_TABLES, StoreState } from '../../../src/store/state/state.ts'
import type { ChildSide } from '../machine/child-process.ts'
import type { Draws, Machine, SimulatedProcess } from '../machine/machine.ts'
import type { LakeBar, LakeContents, LakeRow } from './contents.ts'
import { basePriceOf, labelsOf, minutesOf, type OpenOutcome, unknownLabels } from './labels.ts'
import { BesideModel, Crashed, type RealWorld } from './real/beside.ts'
import { Upkeep } from './upkeep.ts'

export type LakeFault = 'fails' | 'hangs' | 'slow' | 'killed'

const barKey = (mint: string, tf: number, t: number): string => `${mint} ${tf} ${t}`

/** How the lake processes of a run misbehave. */
export interface LakeTroubles {
  /** How often a request meets each fault. */
  rates: Partial<Record<LakeFault, number>>
  readonly counts: Record<LakeFault, number>
  /** Requests that hang go on when these are called. */
  readonly held: Set<() => void>
}

interface Commit {
  lsn: number
  knownAtMs: number
  rows: [TableName, Row][]
}

const openOutcome = (row: Row): OpenOutcome => ({
  ...{ analysisId: String(row.analysis_id), mint: String(row.mint), submittedAtMs: Number(row.submitted_at) },
  ...{ base: (row.price_at_submission_usd as number | undefined) ?? null, done: 0, labels: {} },
})

const shownLabels = (row: Row | undefined): OutcomeLabels | null =>
  row === undefined
    ? null
    : (Object.fromEntries(
        OUTCOME_LABELS.map((name) => [name, row[name] ?? null]),
      ) as unknown as OutcomeLabels)

type Handlers = {
  [K in RequestKind]?: (ask: Requests[K]['ask'], askedMs: number) => Promise<Requests[K]['answer']>
}

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
  /** Every bar that ended by this market time was delivered, and is in files. */
  #takenToMs = 0
  #inLakeToMs = 0
  #account = emptyAccount()
  #takenBars = 0
  #inLakeBars = 0
  #pieces: StatePiece[] = []
  #flushing: Promise<unknown> = Promise.resolve()
  readonly #upkeep: Upkeep
  /** Null: the model is alone. */
  readonly #real: BesideModel | null
  /** What the real one is told once the flush that runs is over; null: none runs. */
  #toldLater: (() => Promise<unknown>)[] | null = null
  #retentionHeld: string | null = null

  constructor(child: ChildSide, lake: LakeContents, options: LakeProcessOptions, world: LakeWorld) {
    this.#child = child
    this.#lake = lake
    this.#options = options
    this.#machine = world.machine
    this.#troubles = world.troubles
    this.#draws = world.draws
    this.#real = world.real && new BesideModel(world.real, options, child.process)
    this.#upkeep = new Upkeep({
      ...{ lake, options, real: this.#real, crash: () => this.#crash() },
      trueMs: () => world.machine.trueMs,
      work: () => this.#sleep(this.#draws.between(0, 20)),
      onHeld: (reasons) => {
        this.#retentionHeld = reasons === null ? null : `no row leaves the lake for its age: ${reasons}`
        this.#tellTrouble()
      },
    })
  }

  async answer({ id, kind, ask }: Request): Promise<void> {
    const askedMs = this.#machine.nowMs
    const fault = this.#drawFault(kind)
    if (fault !== null) this.#troubles.counts[fault]++
    if (fault === 'hangs') await new Promise<void>((resolve) => this.#hold(resolve))
    if (fault === 'slow') await this.#sleep(this.#draws.between(0, SLOW_MS_MAX))
    const isLate = this.#draws.chance(0.5)
    if (fault === 'killed' && !isLate) return this.#child.exit()
    let reply: Reply
    try {
      if (fault === 'fails' && !isLate) throw new Error('simulated: the lake cannot be written')
      const handle = this.#handlers[kind] as ((ask: unknown, askedMs: number) => Promise<unknown>) | undefined
      if (handle === undefined) throw new Error(`simulated: no ${kind}`)
      reply = { id, ok: true, answer: await handle(ask, askedMs) }
      // What it did is done, and its caller does not hear of it.
      if (fault === 'fails') throw new Error('simulated: a later step failed')
    } catch (error) {
      reply = { id, ok: false, code: 'unavailable', message: String(error) }
    }
    if (fault === 'killed') return this.#child.exit()
    await this.#sleep(this.#draws.between(0, 5))
    if (this.#real !== null) this.#tellTrouble()
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
    open: (ask) => this.#open(ask),
    state: async () => ({ piece: this.#pieces.shift() ?? null }),
    flush: ({ nowMs, ...ask }, askedMs) =>
      this.#inTurn(() => {
        const flushed = this.#flush({ ...ask, nowMs: nowMs + Math.floor(this.#machine.nowMs - askedMs) })
        return this.#real === null ? flushed : flushed.finally(() => this.#tellWhatWaits())
      }),
    events: (ask) => this.#inTurn(() => this.#events(ask)),
    bars: (delivery) => this.#deliver('bars', delivery, this.#takeBars(delivery)),
    tokens: (delivery) =>
      this.#deliver('tokens', delivery, {
        taken: this.#profiles.take(delivery),
        inLake: this.#profiles.inLake,
      }),
    find: (ask) => this.#compare('find', ask, this.#find(ask.analysisId)),
    list: (ask) => this.#compare('list', ask, this.#list(ask.query)),
    compact: ({ now, quietMs }) => this.#upkeep.compact(now, quietMs),
    retire: async ({ now }) => ({ files: await this.#upkeep.retire(now) }),
    repair: (ask) => this.#repair(ask),
    snapshot: (ask) => this.#inTurn(() => this.#snapshot(ask)),
    files: async () => [],
    status: async () => [],
    close: async () => {
      if (this.#real !== null) await this.#real.ask('close', {})
      return null
    },
  }

  /** What the real one answers, where there is one. It has to be the model's answer. */
  async #compare<K extends 'find' | 'list'>(
    kind: K,
    ask: Requests[K]['ask'],
    model: Requests[K]['answer'],
  ): Promise<Requests[K]['answer']> {
    return this.#real === null ? model : this.#real.agree(kind, await this.#real.ask(kind, ask), model)
  }

  /** Has the real one do a step. @returns its answer; null: it has ended behind the step, and this one does so when it has done it too */
  async #doReally<K extends 'flush' | 'events'>(
    kind: K,
    ask: Requests[K]['ask'],
  ): Promise<Requests[K]['answer'] | null> {
    try {
      return await this.#real!.ask(kind, ask)
    } catch (error) {
      if (!(error instanceof Crashed)) throw error
      return error.isDone ? null : this.#crash()
    }
  }

  /** Ends this process. Nothing of it goes on. */
  #crash(): Promise<never> {
    this.#child.exit()
    return new Promise(() => {})
  }

  /** What is delivered while a flush runs is for the next one, also of the real one, whose flush takes no time. */
  async #deliver<K extends 'bars' | 'tokens'>(
    kind: K,
    delivery: Requests[K]['ask'],
    model: Requests[K]['answer'],
  ): Promise<Requests[K]['answer']> {
    const real = this.#real
    if (real === null) return model
    const deliver = async () => {
      const { taken } = await real.ask(kind, delivery)
      return real.agree(kind, { ...model, taken }, model)
    }
    if (this.#toldLater === null) await deliver()
    else this.#toldLater.push(deliver)
    return model
  }

  #inTurn<Result>(act: () => Promise<Result>): Promise<Result> {
    const turn = this.#flushing.then(act)
    this.#flushing = turn.catch(() => undefined)
    return turn
  }

  async #open(ask: Requests['open']['ask']): Promise<Requests['open']['answer']> {
    const real = this.#real && (await this.#real.ask('open', ask))
    const opened = this.#openModel()
    if (this.#real === null || real === null) return opened
    this.#pieces = await this.#real.readState(real.position, real.ages, this.#lake.state!)
    return this.#real.agree('open', real, opened)
  }

  #openModel(): Requests['open']['answer'] {
    const lake = this.#lake
    const { ages, logId, runId } = this.#options
    if (lake.logId !== null && lake.logId !== logId && lake.state!.lsn > 0)
      throw new Error('the lake is of another log')
    lake.logId = logId
    const kept = { cooldownKeptMs: 60_000, labelsDelayMs: 0, ...lake.ages, ...ages }
    lake.state ??= new StoreState(kept, false)
    lake.ages = kept
    this.#account = structuredClone(lake.accounts.get(runId) ?? emptyAccount())
    this.#pieces = STATE_TABLES.flatMap((table) => {
      const entries = [...lake.state![table].entries()]
      return entries.length === 0
        ? []
        : [{ table, entryCount: entries.length, json: JSON.stringify(entries) }]
    })
    this.#tellTrouble()
    const { lsn, knownAtMs, agedToMs } = lake.state
    return { position: { lsn, knownAtMs, agedToMs, eventNo: lake.eventNo, ages: kept }, ages: kept }
  }

  async #flush({ nowMs, throughLsn }: Requests['flush']['ask']): Promise<FlushAnswer> {
    const lake = this.#lake
    const state = lake.state!
    // Copies: what is delivered while this waits is for the next flush, as its account is.
    const [bars, takenBars, takenToMs] = [[...this.#bars], this.#takenBars, this.#takenToMs]
    const profiles = this.#profiles.held
    const account = structuredClone(this.#account)
    this.#toldLater = []
    const { commits, damage } = await this.#readCommits(throughLsn)
    await this.#sleep(this.#draws.between(0, 20))
    const real = this.#real && (await this.#doReally('flush', { nowMs, throughLsn }))
    // One transaction.
    const range = { first: state.lsn + 1, last: Math.max(state.lsn, throughLsn) }
    for (const commit of commits) applyCommit(state, commit)
    this.#addCommits(commits, nowMs, range)
    state.lsn = range.last
    this.#addProfiles(profiles, nowMs)
    this.#recordBars(bars, account, nowMs)
    this.#addLabels(nowMs)
    this.#bars = this.#bars.slice(bars.length)
    this.#inLakeBars = Math.max(this.#inLakeBars, takenBars)
    this.#inLakeToMs = Math.min(takenToMs, this.#takenToMs)
    const inLake = { bars: this.#inLakeBars, profiles: this.#profiles.inLake }
    if (this.#real?.hasCrashed === true) await this.#crash()
    // As it is recorded: what was delivered meanwhile is not in it.
    const recorded = lake.accounts.get(this.#options.runId) ?? emptyAccount()
    const answer = { deadRows: 0, damage, bars: structuredClone(recorded), inLake }
    if (this.#real === null || real === null) {
      await this.#sleep(this.#draws.between(0, 5))
      this.#labelDue(nowMs)
      return answer
    }
    // The real one has made its labels by now.
    this.#labelDue(nowMs)
    await this.#tellWhatWaits()
    await this.#sleep(this.#draws.between(0, 5))
    return this.#real.agree('flush', real, answer)
  }

  /** The files of plain tables are none that could be copied. */
  async #snapshot(ask: Requests['snapshot']['ask']): Promise<Requests['snapshot']['answer']> {
    if (this.#real === null) throw new Error('simulated: no snapshot')
    await this.#sleep(this.#draws.between(0, 20))
    const real = await this.#real.snapshot(ask)
    return this.#real.agree('snapshot', real, { ...real, lsn: this.#lake.state!.lsn })
  }

  /** Nor are they any that could be damaged. */
  async #repair(ask: Requests['repair']['ask']): Promise<Requests['repair']['answer']> {
    if (this.#real === null) throw new Error('simulated: no repair')
    const repaired = await this.#real.ask('repair', ask)
    if (ask.settles) this.#lake.lostEvents.length = 0
    return repaired
  }

  async #tellWhatWaits(): Promise<void> {
    const waiting = this.#toldLater ?? []
    this.#toldLater = null
    for (const tell of waiting) await tell()
  }

  async #readCommits(throughLsn: number): Promise<{ commits: Commit[]; damage: FlushAnswer['damage'] }> {
    const { lsn } = this.#lake.state!
    const commits: Commit[] = []
    if (throughLsn <= lsn) return { commits, damage: [] }
    const { dataDir, logId } = this.#options
    const read = { folder: logFolder(dataDir), logId, afterLsn: lsn, throughLsn }
    const { damage } = await readLog(read, (record) => {
      const { lsn, knownAtMs } = record
      commits.push({ lsn, knownAtMs, rows: record.rows() })
    })
    return { commits, damage }
  }

  /** Lists the rows of commits, and opens an outcome for each submission that was accepted. */
  #addCommits(commits: readonly Commit[], nowMs: number, range: SeqRange): void {
    const lake = this.#lake
    const rows = commits.flatMap((commit) =>
      commit.rows.map(([table, row]) => ({ table, of: { ...commit, row } })),
    )
    for (const { table, of } of rows) lake.addRow(table, of)
    for (const [table, found] of Map.groupBy(rows, (each) => each.table)) {
      const { lakeDateColumn: column } = TABLES[table]
      if (column === null) continue
      const content = found.map(({ of: { lsn, row } }) => ({ seq: lsn, dateMs: Number(row[column]), row }))
      lake.files.add(table, content, nowMs, range)
    }
    for (const { table, of } of rows) if (table === 'training') lake.openOutcomes.push(openOutcome(of.row))
  }

  #addProfiles(count: number, nowMs: number): void {
    const rows = lastVersions(this.#profiles.waiting().slice(0, count))
    this.#lake.profiles.push(...rows)
    this.#profiles.release(count)
    this.#addNumbered('tokens', rows, ({ updated_at }) => Number(updated_at), nowMs)
  }

  /** Labels that the flush before has made. */
  #addLabels(nowMs: number): void {
    const lake = this.#lake
    const labels = lake.waitingLabels
    lake.waitingLabels = []
    for (const label of labels) lake.addRow('outcomes', label)
    const rows = labels.map(({ row }) => row)
    this.#addNumbered('outcomes', rows, ({ submitted_at }) => Number(submitted_at), nowMs)
  }

  /** Lists rows that have numbers of their table alone. */
  #addNumbered(table: TableName, rows: readonly Row[], dateOf: (row: Row) => number, nowMs: number): void {
    const { files } = this.#lake
    const first = files.nextSeq(table)
    const content = rows.map((row, index) => ({ seq: first + index, dateMs: dateOf(row), row }))
    files.add(table, content, nowMs)
  }

  /** Labels the submissions of which a horizon has passed, by the bars that are in files. */
  #labelDue(nowMs: number): void {
    const lake = this.#lake
    const isDue = ({ done, submittedAtMs }: OpenOutcome): boolean =>
      submittedAtMs <= this.#inLakeToMs - HORIZONS[HORIZON_NAMES[done]] - LABEL_DELAY_MS
    if (!lake.openOutcomes.some(isDue)) return
    const bars = lake.files.rows('bars').map(({ row }) => row as unknown as LakeBar)
    const minutes = minutesOf(bars.filter(({ tf }) => TIMEFRAMES[tf] === '1m'))
    for (const open of lake.openOutcomes) {
      while (open.done < HORIZON_NAMES.length && isDue(open)) {
        if (open.done === 0) open.base = basePriceOf(open, minutes)
        const horizon = HORIZON_NAMES[open.done++]
        const toMs = open.submittedAtMs + HORIZONS[horizon]
        const isKnown = !lake.files.haveLeft('bars', open.submittedAtMs, toMs)
        Object.assign(open.labels, isKnown ? labelsOf(open, horizon, minutes) : unknownLabels(horizon))
        const { analysisId, mint, submittedAtMs, base, labels } = open
        const row = {
          ...{ analysis_id: analysisId, mint, submitted_at: submittedAtMs, base_price_usd: base, ...labels },
          labelled_to: horizon,
        }
        lake.waitingLabels.push({ lsn: 0, knownAtMs: nowMs, row })
      }
    }
    lake.openOutcomes = lake.openOutcomes.filter(({ done }) => done < HORIZON_NAMES.length)
  }

  /** Of bars with the same place the first one counts. */
  #recordBars(bars: readonly LakeBar[], account: BarAccount, nowMs: number): void {
    const { accounts, bars: known } = this.#lake
    const before = accounts.get(this.#options.runId) ?? emptyAccount()
    const written = [...before.written]
    const added: LakeBar[] = []
    for (const bar of bars) {
      const key = barKey(bar.mint, bar.tf, bar.t)
      if (known.has(key)) {
        account.repeated[bar.tf]++
        this.#account.repeated[bar.tf]++
        continue
      }
      known.set(key, bar)
      written[bar.tf]++
      added.push(bar)
    }
    this.#addNumbered('bars', added, ({ t }) => Number(t), nowMs)
    this.#account.written = written
    accounts.set(this.#options.runId, { ...account, written })
  }

  #takeBars({ first, batch, completeToMs, dropped }: BarDelivery): Requests['bars']['answer'] {
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
    this.#takenToMs = completeToMs
    this.#inLakeToMs = Math.min(this.#inLakeToMs, completeToMs)
    return { taken: true, inLakeBars: this.#inLakeBars, held: this.#bars.length }
  }

  async #events({ nowMs, throughEventNo }: Requests['events']['ask']): Promise<EventsAnswer> {
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
    const real = this.#real && (await this.#doReally('events', { nowMs, throughEventNo }))
    lake.batches.push(...batches)
    this.#addEvents(batches, nowMs)
    lake.lostEvents.push(...lost)
    lake.eventNo = nextNo - 1
    if (this.#real?.hasCrashed === true) await this.#crash()
    this.#tellTrouble()
    const answer = { eventNo: lake.eventNo, retainedFrom: lake.files.retainedFrom, damage }
    return this.#real === null || real === null ? answer : this.#real.agree('events', real, answer)
  }

  /** Lists recorded events in a file of each of their dates and tables. */
  #addEvents(batches: readonly EventBatch[], nowMs: number): void {
    const windows = new EventWindows()
    for (const batch of batches) windows.add(batch, batch.firstEventNo)
    const trades = batches.flatMap(({ trades: { eventNo, count } }) => [...eventNo.slice(0, count)])
    const events = batches.flatMap(({ events }) => events.map(({ eventNo }) => eventNo))
    for (const { date, ...window } of windows.list)
      for (const [table, numbers] of Object.entries({ trades, events })) {
        const within = numbers.filter((seq) => seq >= window.first && seq <= window.last)
        const content = within.map((seq) => ({ seq, dateMs: Date.parse(date), row: null }))
        this.#lake.files.add(table as TableName, content, nowMs, window)
      }
  }

  #tellTrouble(): void {
    const { eventsLost } = this.#lake
    const setAside = this.#real?.setAside ?? []
    const trouble = { setAside, retentionHeld: this.#retentionHeld, eventsLost }
    const text = JSON.stringify(trouble)
    if (text !== this.#told) this.#child.send({ trouble })
    this.#told = text
  }

  #told = JSON.stringify({ setAside: [], retentionHeld: null, eventsLost: 0 })

  /** Those of a table of the log that have not left. */
  #liveRows(table: TableName): LakeRow[] {
    const live = new Set(this.#lake.files.rows(table).map(({ row }) => row))
    return this.#lake.rows(table).filter(({ row }) => live.has(row))
  }

  #find(analysisId: string): SubmissionRow | null {
    for (const table of ['training', 'rejections'] as const) {
      const found = this.#liveRows(table).find(({ row }) => row.analysis_id === analysisId)
      if (found !== undefined) return completeRow(table, found.row, found.knownAtMs)
    }
    return null
  }

  #list({ agentId, mint, before, limit }: SubmissionQuery): SubmissionPage {
    const found = (['training', 'rejections'] as const)
      .flatMap((table) =>
        this.#liveRows(table).map(
          ({ row, knownAtMs }) => completeRow(table, row, knownAtMs) as unknown as Row,
        ),
      )
      .filter((row) => (agentId === null || row.agent_id === agentId) && (mint === null || row.mint === mint))
      .map((row) => Object.fromEntries(LISTED_COLUMNS.map((name) => [name, row[name] ?? null])))
      .map((row) => row as unknown as ListedRow)
      .filter((row) => before === null || compareKeys(before, submissionKeyOf(row)) < 0)
      .sort((a, b) => compareKeys(submissionKeyOf(a), submissionKeyOf(b)))
    const page = found.slice(0, limit)
    const xp = new Map(this.#lake.rows('xp_ledger').map(({ row }) => [row.analysis_id, Number(row.xp)]))
    const outcomes = new Map(this.#lake.files.rows('outcomes').map(({ row }) => [row!.analysis_id, row!]))
    const submissions = page.map((row) => ({
      ...{ row, xp: row.outcome === 'rejected' ? 0 : (xp.get(row.analysis_id) ?? null) },
      outcomes: shownLabels(outcomes.get(row.analysis_id)),
    }))
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
  /** Null: the model is alone. */
  real: RealWorld | null
}

/**
 * The program of the lake process: takes its options, then requests.
 * @param lakeOf the lake of a data folder; null: the machine of the process does not have it
 */
export const lakeProgram =
  (lakeOf: (process: SimulatedProcess, dataDir: string) => LakeContents | null, world: LakeWorld) =>
  (child: ChildSide): void => {
    let opened: LakeProcess | null = null
    child.onMessage((message: LakeProcessOptions | Request) => {
      if (opened !== null) return void opened.answer(message as Request)
      const options = message as LakeProcessOptions
      const lake = lakeOf(child.process, options.dataDir)
      if (lake === null) child.exit()
      else opened = new LakeProcess(child, lake, options, world)
    })
  }
