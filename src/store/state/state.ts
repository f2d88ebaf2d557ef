// In: commits, in the order of the log. Out: what they add up to: everything that a start must know and that is no row of
// the lake. Never reads a clock or a file: the same commits give the same state, whoever applies them.
import type { Row, TableName } from '../../schema/tables.ts'
import {
  IDEMPOTENCY_KEPT_MS,
  IDEMPOTENCY_RECOVERED_MAX,
  STRIKES_MAX,
  STRIKES_RECOVERED_MS,
  SUBMIT_ATTEMPTS_MAX,
  SUBMIT_ATTEMPTS_RECOVERED_MS,
} from '../limits.ts'
import { KeyedTable } from './keyed-table.ts'
import { Columns } from './value-list.ts'

/** A whole commit, as the log keeps it. */
export interface CommitRecord {
  /** Number of the commit: rises by one. */
  lsn: number
  /** When it became durable, Unix ms: rises from commit to commit, whatever the clock does. */
  knownAtMs: number
  rows: readonly (readonly [table: TableName, row: Row])[]
}

/** A row with its place in the order of all commits, and the time of its commit. */
export interface PlacedRow {
  lsn: number
  /** Place within the commit. */
  index: number
  knownAtMs: number
  row: Row
}

export interface AgentTotal {
  xp: number
  /** Accepted analyses. */
  analyses: number
}

export interface MintTotal {
  /** Accepted analyses. */
  count: number
  lastSentiment: string
  lastScore: number
}

/** A moment of the wall clock that a limit counts from. */
export interface Moment {
  agentId: string
  atMs: number
  knownAtMs: number
}

export interface CooldownStart extends Moment {
  mint: string
}

export interface StateOptions {
  /** How long the start of a cooldown is remembered, ms: the longest cooldown in use. */
  cooldownKeptMs: number
  /** False where the state is read and not saved again: then nothing has to be known of what changed. */
  isSaved?: boolean
}

/** What commits add up to. Tables are saved under their names here. */
export class StoreState {
  readonly options: StateOptions
  /** The last commit applied; 0: none. */
  lsn = 0
  knownAtMs = 0
  readonly agents: KeyedTable<PlacedRow>
  readonly agentKeys: KeyedTable<PlacedRow>
  /** Those that still mean something; see `applyAgentEvent`. */
  readonly agentEvents: KeyedTable<PlacedRow>
  readonly submitAttempts: KeyedTable<Moment>
  readonly cooldowns: KeyedTable<CooldownStart>
  readonly strikes: KeyedTable<Moment>
  readonly idempotency: KeyedTable<PlacedRow>
  readonly agentTotals: KeyedTable<AgentTotal>
  readonly mintTotals: KeyedTable<MintTotal>
  /** Rows committed, by table. */
  readonly rowTotals: KeyedTable<number>

  constructor(options: StateOptions) {
    this.options = options
    const isSaved = options.isSaved ?? true
    this.agents = new KeyedTable(isSaved)
    this.agentKeys = new KeyedTable(isSaved)
    this.agentEvents = new KeyedTable(isSaved)
    this.submitAttempts = new KeyedTable(isSaved, new Columns(['agentId'], ['atMs', 'knownAtMs']))
    this.cooldowns = new KeyedTable(isSaved, new Columns(['agentId', 'mint'], ['atMs', 'knownAtMs']))
    this.strikes = new KeyedTable(isSaved, new Columns(['agentId'], ['atMs', 'knownAtMs']))
    this.idempotency = new KeyedTable(isSaved)
    this.agentTotals = new KeyedTable(isSaved, new Columns([], ['xp', 'analyses']))
    this.mintTotals = new KeyedTable(isSaved, new Columns(['lastSentiment'], ['count', 'lastScore']))
    this.rowTotals = new KeyedTable(isSaved)
  }
}

/** The tables of a state that are saved entry by entry. */
export const STATE_TABLES = [
  'agents',
  'agentKeys',
  'agentEvents',
  'submitAttempts',
  'cooldowns',
  'strikes',
  'idempotency',
  'agentTotals',
  'mintTotals',
  'rowTotals',
] as const satisfies readonly (keyof StoreState)[]
export type StateTable = (typeof STATE_TABLES)[number]

/** Applies a commit. Commits that were applied before change nothing. */
export function applyCommit(state: StoreState, record: CommitRecord): void {
  if (record.lsn <= state.lsn) return
  state.lsn = record.lsn
  state.knownAtMs = record.knownAtMs
  const { lsn, knownAtMs } = record
  record.rows.forEach(([table, row], index) => {
    APPLY[table]?.(state, { lsn, index, knownAtMs, row })
    state.rowTotals.replace(table, (state.rowTotals.get(table) ?? 0) + 1)
  })
  forgetOld(state)
}

type Apply = (state: StoreState, placed: PlacedRow) => void

/** When a submission came, by the wall clock: its other times are those of its market. */
const receivedAtMs = ({ row, knownAtMs }: PlacedRow): number =>
  (row.received_at as number | undefined) ?? knownAtMs

const placeKey = ({ lsn, index }: PlacedRow): string => `${lsn}.${index}`

function startCooldown(state: StoreState, placed: PlacedRow): void {
  const { row, knownAtMs } = placed
  const [agentId, mint] = [row.agent_id as string, row.mint as string]
  state.cooldowns.set(`${agentId} ${mint}`, { agentId, mint, atMs: receivedAtMs(placed), knownAtMs })
}

const APPLY: Partial<Record<TableName, Apply>> = {
  training(state, placed) {
    const { mint, sentiment, score } = placed.row
    const count = (state.mintTotals.get(mint as string)?.count ?? 0) + 1
    state.mintTotals.replace(mint as string, {
      count,
      lastSentiment: sentiment as string,
      lastScore: score as number,
    })
    startCooldown(state, placed)
  },
  rejections(state, placed) {
    const agentId = placed.row.agent_id as string
    state.strikes.set(placeKey(placed), { agentId, atMs: receivedAtMs(placed), knownAtMs: placed.knownAtMs })
    startCooldown(state, placed)
  },
  xp_ledger(state, { row }) {
    const agentId = row.agent_id as string
    const { xp, analyses } = state.agentTotals.get(agentId) ?? { xp: 0, analyses: 0 }
    const counted = row.kind === 'analysis' ? 1 : 0
    state.agentTotals.replace(agentId, { xp: xp + (row.xp as number), analyses: analyses + counted })
  },
  agents: (state, placed) => state.agents.set(placed.row.agent_id as string, placed),
  agent_keys: (state, placed) => state.agentKeys.set(placed.row.key_hash as string, placed),
  agent_events: applyAgentEvent,
  submit_attempts(state, placed) {
    const { agent_id, at } = placed.row
    const moment = { agentId: agent_id as string, atMs: at as number, knownAtMs: placed.knownAtMs }
    state.submitAttempts.set(placeKey(placed), moment)
  },
  idempotency(state, placed) {
    state.idempotency.set(`${placed.row.agent_id} ${placed.row.idempotency_key}`, placed)
  },
}

/** The columns that the above reads, and a submission's identity, of tables of which it does not need the whole row: a start
 *  reads no others. */
export const STATE_COLUMNS = {
  training: ['analysis_id', 'agent_id', 'mint', 'received_at', 'sentiment', 'score'],
  rejections: ['analysis_id', 'agent_id', 'mint', 'received_at'],
  xp_ledger: ['agent_id', 'kind', 'xp'],
  submit_attempts: ['agent_id', 'at'],
} as const satisfies Partial<Record<TableName, readonly string[]>>

/** Keeps of an agent's events those that still say something: its last profile, the first end of each key, its sanctions
 *  since they were last lifted. */
export function applyAgentEvent(state: StoreState, placed: PlacedRow): void {
  const { agent_id: agentId, kind, data } = placed.row
  if (kind === 'profile') {
    state.agentEvents.set(`${agentId} profile`, placed)
    return
  }
  if (kind === 'key_expires') {
    endKey(state, placed, `${agentId} key ${JSON.parse(data as string).keyHash}`)
    return
  }
  const sanctions = `${agentId} sanction `
  if (kind === 'unbanned') {
    for (const [key] of state.agentEvents.entries())
      if (key.startsWith(sanctions)) state.agentEvents.delete(key)
  }
  state.agentEvents.set(`${sanctions}${placeKey(placed)}`, placed)
}

const endsAtMs = ({ row }: PlacedRow): number => JSON.parse(row.data as string).atMs

function endKey(state: StoreState, placed: PlacedRow, key: string): void {
  const earlier = state.agentEvents.get(key)
  if (earlier === undefined || endsAtMs(placed) < endsAtMs(earlier)) state.agentEvents.set(key, placed)
}

/** What no limit asks for any more goes, by the time of the commits themselves. */
function forgetOld(state: StoreState): void {
  const { knownAtMs, options } = state
  const isOlder = (keptMs: number) => (value: { knownAtMs: number }) => value.knownAtMs <= knownAtMs - keptMs
  const isOlderOrMany = (keptMs: number, max: number) => (value: { knownAtMs: number }, size: number) =>
    size > max || isOlder(keptMs)(value)
  state.submitAttempts.deleteOldest(isOlderOrMany(SUBMIT_ATTEMPTS_RECOVERED_MS, SUBMIT_ATTEMPTS_MAX))
  state.cooldowns.deleteOldest(isOlder(options.cooldownKeptMs))
  state.strikes.deleteOldest(isOlderOrMany(STRIKES_RECOVERED_MS, STRIKES_MAX))
  state.idempotency.deleteOldest(isOlderOrMany(IDEMPOTENCY_KEPT_MS, IDEMPOTENCY_RECOVERED_MAX))
}
