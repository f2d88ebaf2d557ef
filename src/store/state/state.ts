// The state: what the commits add up to, as far as the server needs it at a start. It depends on the commits alone, not on a
// clock or a file, so that the server and the lake process derive the same state from the same log.
import { IDEMPOTENCY_RESPONSES_MAX, IDEMPOTENCY_TTL_MS } from '../../schema/api/submissions.ts'
import {
  COOLDOWNS_MAX,
  COVERED_MINTS_MAX,
  type CooldownMoment,
  LABELS_WITHHELD_MAX,
  type Moment,
  type RecentLabels,
} from '../../schema/recovered.ts'
import type { NewRow, Row, TableName } from '../../schema/tables.ts'
import type { Outcome, OutcomeCounts } from '../../schema/vocabulary.ts'
import {
  AGING_COMMITS_MIN,
  STRIKES_MAX,
  STRIKES_RECOVERED_MS,
  SUBMIT_ATTEMPTS_MAX,
  SUBMIT_ATTEMPTS_RECOVERED_MS,
} from '../limits.ts'
import { AgingQueue } from './aging-queue.ts'
import { KeyedTable } from './keyed-table.ts'
import { Columns } from './value-list.ts'

/** A commit, as the log keeps it. */
export interface CommitRecord {
  /** Number of the commit: rises by one. */
  lsn: number
  /** When it became durable, Unix ms. Rises from commit to commit, even if the clock is set back. */
  knownAtMs: number
  rows: readonly (readonly [table: TableName, row: Row])[]
}

/** A row with its position in the order of all commits, and the time of its commit. Saved as JSON in this form. */
export interface PlacedRow<RowType = Row> {
  lsn: number
  /** Position within the commit. */
  index: number
  knownAtMs: number
  row: RowType
}

export interface AgentTotal {
  xp: number
  /** Accepted analyses. */
  analyses: number
}

export interface MintTotal {
  /** Accepted analyses. */
  count: number
  /** Of the latest analysis whose labels are no longer in `recentLabels`; empty: there is none. */
  lastSentiment: string
  lastScore: number
}

type AgentEvent = PlacedRow<NewRow<'agent_events'>>

/** How old a state lets its entries become, where a setting of the server says it. */
export interface StateAges {
  /** How long the start of a cooldown is remembered: the longest cooldown in use. */
  cooldownKeptMs: number
  /** How long labels are withheld from others; 0: not at all. */
  labelsDelayMs: number
}

/** Tables are saved under the names of these fields. */
export class StoreState {
  readonly ages: StateAges
  readonly ageLimits: Readonly<Record<AgingTable, AgeLimit>>
  /** The last commit applied; 0: none. */
  lsn = 0
  knownAtMs = 0
  /** By table, the time by which its entries age; null: `knownAtMs` for all. */
  agedToMs: Record<AgingTable, number> | null = null
  readonly agents: KeyedTable<PlacedRow<NewRow<'agents'>>>
  readonly agentKeys: KeyedTable<PlacedRow<NewRow<'agent_keys'>>>
  /** Those that still have an effect; see `applyAgentEvent`. */
  readonly agentEvents: KeyedTable<AgentEvent>
  readonly submitAttempts: AgingQueue<Moment>
  /** The latest one of an agent and a mint counts. */
  readonly cooldowns: AgingQueue<CooldownMoment>
  readonly strikes: AgingQueue<Moment>
  readonly idempotency: KeyedTable<PlacedRow<NewRow<'idempotency'>>>
  readonly agentTotals: KeyedTable<AgentTotal>
  readonly agentOutcomes: KeyedTable<OutcomeCounts>
  readonly mintTotals: KeyedTable<MintTotal>
  readonly recentLabels: AgingQueue<RecentLabels>
  /** Number of rows committed, by table. */
  readonly rowTotals: KeyedTable<number>

  /** @param isSaved false where the state is not saved again, so that changes need not be tracked */
  constructor(ages: StateAges, isSaved = true) {
    this.ages = ages
    this.ageLimits = ageLimits(ages)
    this.agents = new KeyedTable(isSaved)
    this.agentKeys = new KeyedTable(isSaved)
    this.agentEvents = new KeyedTable(isSaved)
    this.submitAttempts = new AgingQueue(isSaved, new Columns(['agentId'], ['atMs']))
    this.cooldowns = new AgingQueue(isSaved, new Columns(['agentId', 'mint'], ['atMs']))
    this.strikes = new AgingQueue(isSaved, new Columns(['agentId'], ['atMs']))
    this.idempotency = new KeyedTable(isSaved)
    this.agentTotals = new KeyedTable(isSaved, new Columns([], ['xp', 'analyses']))
    this.agentOutcomes = new KeyedTable(isSaved, new Columns([], ['validated', 'unvalidated', 'rejected']))
    this.recentLabels = new AgingQueue(
      isSaved,
      new Columns(['analysisId', 'mint', 'sentiment'], ['score', 'atMs']),
    )
    this.mintTotals = new KeyedTable(isSaved, new Columns(['lastSentiment'], ['count', 'lastScore']))
    this.rowTotals = new KeyedTable(isSaved)
  }
}

/** The tables of a state that are saved entry by entry. */
export const LASTING_TABLES = [
  'agents',
  'agentKeys',
  'agentEvents',
  'agentTotals',
  'agentOutcomes',
  'mintTotals',
  'rowTotals',
] as const satisfies readonly (keyof StoreState)[]
/** Those whose entries end by their age, and are never looked up by a key. */
export const QUEUES = [
  'submitAttempts',
  'cooldowns',
  'strikes',
  'recentLabels',
] as const satisfies readonly (keyof StoreState)[]
/** The tables whose entries end by their age. They are saved flush by flush. */
export const AGING_TABLES = [...QUEUES, 'idempotency'] as const
export type AgingTable = (typeof AGING_TABLES)[number]
export const STATE_TABLES = [...LASTING_TABLES, ...AGING_TABLES] as const
export type StateTable = (typeof STATE_TABLES)[number]
/**
 * What the commits to come change or add to. Of the other tables a process that saves the state holds only what is new: a million
 * agents and their remembered answers would be twice in memory.
 */
export const SUMMED_TABLES = [
  'agentEvents',
  'agentTotals',
  'agentOutcomes',
  'mintTotals',
  'rowTotals',
  'recentLabels',
] as const satisfies readonly StateTable[]

/** The time by which the entries of a table age, and which they have from their commit: from commit to commit it rises as `knownAtMs`
 *  does, but by a part of what they are kept at most. So one that was committed by a wrong clock ends none. */
export const agedToMs = (state: StoreState, name: AgingTable): number =>
  state.agedToMs?.[name] ?? state.knownAtMs

function age(state: StoreState, elapsedMs: number): void {
  const aged = AGING_TABLES.map((name) => {
    const mostMs = state.ageLimits[name].keptMs / AGING_COMMITS_MIN
    return [name, agedToMs(state, name) + Math.min(elapsedMs, mostMs)]
  })
  state.agedToMs = Object.fromEntries(aged)
}

/** How old entries of a table may be, counted by `agedToMs`, and how many there may be. */
export interface AgeLimit {
  keptMs: number
  entriesMax: number
}

const ageLimits = ({ cooldownKeptMs, labelsDelayMs }: StateAges): Record<AgingTable, AgeLimit> => ({
  submitAttempts: { keptMs: SUBMIT_ATTEMPTS_RECOVERED_MS, entriesMax: SUBMIT_ATTEMPTS_MAX },
  cooldowns: { keptMs: cooldownKeptMs, entriesMax: COOLDOWNS_MAX },
  strikes: { keptMs: STRIKES_RECOVERED_MS, entriesMax: STRIKES_MAX },
  idempotency: { keptMs: IDEMPOTENCY_TTL_MS, entriesMax: IDEMPOTENCY_RESPONSES_MAX },
  recentLabels: { keptMs: labelsDelayMs, entriesMax: LABELS_WITHHELD_MAX },
})

const addOne = (count: number): number => count + 1

/** Applies a commit. One that was applied before changes nothing. */
export function applyCommit(state: StoreState, record: CommitRecord): void {
  if (record.lsn <= state.lsn) return
  age(state, Math.max(0, record.knownAtMs - state.knownAtMs))
  state.lsn = record.lsn
  state.knownAtMs = record.knownAtMs
  const { lsn, knownAtMs } = record
  record.rows.forEach(([table, row], index) => {
    // Every row was checked against its table when it was written.
    const apply = APPLY[table] as ApplyRow<Row> | undefined
    apply?.(state, { lsn, index, knownAtMs, row })
    state.rowTotals.update(table, 0, addOne)
  })
  forgetOld(state)
}

/** The columns that the state needs of tables with many rows, the identity of a submission and the time that decides the date of a
 *  row in the lake. A start and a flush read no others, and find these fastest in the order in which the rows have them. */
export const STATE_COLUMNS = {
  training: [
    'analysis_id',
    'agent_id',
    'mint',
    'submitted_at',
    'received_at',
    'sentiment',
    'score',
    'outcome',
  ],
  rejections: ['analysis_id', 'agent_id', 'mint', 'submitted_at', 'received_at'],
  xp_ledger: ['agent_id', 'awarded_at', 'kind', 'xp'],
  submit_attempts: ['agent_id', 'at'],
} as const satisfies Partial<Record<TableName, readonly string[]>>

/** What the state reads of a row: the columns above of the tables with many rows, all columns of the others. */
type StateRow<Name extends TableName> = Name extends keyof typeof STATE_COLUMNS
  ? Pick<NewRow<Name>, keyof NewRow<Name> & (typeof STATE_COLUMNS)[Name][number]>
  : NewRow<Name>

type ApplyRow<RowType> = (state: StoreState, placed: PlacedRow<RowType>) => void

type Submission = PlacedRow<Pick<StateRow<'rejections'>, 'agent_id' | 'mint' | 'received_at'>>

/** When a submission came, by the wall clock. Its other times are market times, which differ in a replay. */
const getReceivedAtMs = ({ row, knownAtMs }: Submission): number => row.received_at ?? knownAtMs

const makePositionKey = ({ lsn, index }: { lsn: number; index: number }): string => `${lsn}.${index}`

function startCooldown(state: StoreState, placed: Submission): void {
  const { agent_id: agentId, mint } = placed.row
  state.cooldowns.push(agedToMs(state, 'cooldowns'), { agentId, mint, atMs: getReceivedAtMs(placed) })
}

const NO_SUBMISSIONS: OutcomeCounts = { validated: 0, unvalidated: 0, rejected: 0 }
const NO_XP: AgentTotal = { xp: 0, analyses: 0 }
const NO_ANALYSES: MintTotal = { count: 0, lastSentiment: '', lastScore: 0 }

function countOutcome(state: StoreState, agentId: string, outcome: Outcome): void {
  state.agentOutcomes.update(agentId, NO_SUBMISSIONS, (counts) => ({
    ...counts,
    [outcome]: counts[outcome] + 1,
  }))
}

const APPLY: { readonly [Name in TableName]?: ApplyRow<StateRow<Name>> } = {
  training(state, placed) {
    const { analysis_id: analysisId, agent_id: agentId, mint, outcome, sentiment, score } = placed.row
    if (state.mintTotals.size < COVERED_MINTS_MAX || state.mintTotals.has(mint))
      state.mintTotals.update(mint, NO_ANALYSES, (total) => ({ ...total, count: total.count + 1 }))
    const atMs = getReceivedAtMs(placed)
    state.recentLabels.push(agedToMs(state, 'recentLabels'), { analysisId, mint, sentiment, score, atMs })
    countOutcome(state, agentId, outcome === 'validated' ? 'validated' : 'unvalidated')
    startCooldown(state, placed)
  },
  rejections(state, placed) {
    const agentId = placed.row.agent_id
    state.strikes.push(agedToMs(state, 'strikes'), { agentId, atMs: getReceivedAtMs(placed) })
    countOutcome(state, agentId, 'rejected')
    startCooldown(state, placed)
  },
  xp_ledger(state, { row }) {
    const counted = row.kind === 'analysis' ? 1 : 0
    state.agentTotals.update(row.agent_id, NO_XP, ({ xp, analyses }) => ({
      xp: xp + row.xp,
      analyses: analyses + counted,
    }))
  },
  agents: (state, placed) => state.agents.set(placed.row.agent_id, placed),
  agent_keys: (state, placed) => state.agentKeys.set(placed.row.key_hash, placed),
  agent_events: applyAgentEvent,
  submit_attempts(state, { row }) {
    state.submitAttempts.push(agedToMs(state, 'submitAttempts'), { agentId: row.agent_id, atMs: row.at })
  },
  idempotency(state, placed) {
    const knownAtMs = agedToMs(state, 'idempotency')
    state.idempotency.set(`${placed.row.agent_id} ${placed.row.idempotency_key}`, { ...placed, knownAtMs })
  },
}

/**
 * Keeps only the events of an agent that still have an effect: its last profile, the earliest expiry of each key, whether it was
 * used, and the sanctions since the last lift.
 */
function applyAgentEvent(state: StoreState, placed: AgentEvent): void {
  const { agent_id: agentId, kind, data } = placed.row
  if (kind === 'profile') {
    state.agentEvents.set(`${agentId} profile`, placed)
    return
  }
  if (kind === 'key_expires') {
    expireKey(state, placed, `${agentId} key ${JSON.parse(data).keyHash}`)
    return
  }
  if (kind === 'key_unused' || kind === 'key_used') {
    state.agentEvents.set(`${agentId} used ${JSON.parse(data).keyHash}`, placed)
    return
  }
  const sanctions = `${agentId} sanction `
  if (kind === 'unbanned') {
    for (const [key] of state.agentEvents.entries())
      if (key.startsWith(sanctions)) state.agentEvents.delete(key)
  }
  state.agentEvents.set(`${sanctions}${makePositionKey(placed)}`, placed)
}

const readExpiryMs = ({ row }: AgentEvent): number => JSON.parse(row.data).atMs

function expireKey(state: StoreState, placed: AgentEvent, key: string): void {
  const earlier = state.agentEvents.get(key)
  if (earlier === undefined || readExpiryMs(placed) < readExpiryMs(earlier))
    state.agentEvents.set(key, placed)
}

/** Deletes entries that no limit needs any more. */
function forgetOld(state: StoreState): void {
  const shownToMs = agedToMs(state, 'recentLabels') - state.ageLimits.recentLabels.keptMs
  deleteEnded(state, (atMs, labels) => {
    // Labels that gave way to too many others must not be shown too early, so they never are.
    if (atMs <= shownToMs) showLabels(state, labels)
  })
}

/**
 * Deletes the entries of a loaded state that had ended when it was saved: a chunk stays until its last entry has ended. What has
 * ended only by the ages of this run ends as it does after a commit: labels that were withheld for longer are shown.
 * @param saved the ages of the process that saved it
 */
export function dropEnded(state: StoreState, saved: StateAges): void {
  deleteEnded(state, null, ageLimits(saved))
  forgetOld(state)
}

function deleteEnded(
  state: StoreState,
  onLabels: ((atMs: number, labels: RecentLabels) => void) | null,
  limits = state.ageLimits,
): void {
  for (const name of QUEUES) {
    const { keptMs, entriesMax } = limits[name]
    const endedAtMs = agedToMs(state, name) - keptMs
    if (name === 'recentLabels') state[name].deleteEnded(endedAtMs, entriesMax, onLabels)
    else state[name].deleteEnded(endedAtMs, entriesMax)
  }
  const { keptMs, entriesMax } = limits.idempotency
  const endedAtMs = agedToMs(state, 'idempotency') - keptMs
  state.idempotency.deleteOldest(({ knownAtMs }, size) => size > entriesMax || knownAtMs <= endedAtMs)
}

/** The labels of an analysis become the latest of its mint. */
function showLabels(state: StoreState, { mint, sentiment, score }: RecentLabels): void {
  if (state.mintTotals.has(mint))
    state.mintTotals.update(mint, NO_ANALYSES, ({ count }) => ({
      count,
      lastSentiment: sentiment,
      lastScore: score,
    }))
}
