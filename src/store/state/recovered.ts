// In: a state. Out: what the rest of the server must know again after a start. Never changes the state.
import { type Column, type Row, TABLES, type TableName, type TableRow } from '../../schema/tables.ts'
import { IDEMPOTENCY_KEPT_MS, STRIKES_RECOVERED_MS, SUBMIT_ATTEMPTS_RECOVERED_MS } from '../limits.ts'
import type { Recovered } from '../types.ts'
import type { PlacedRow, StoreState } from './state.ts'

/**
 * A row with every column of its table: one that was left out is null. The row was checked against its table when it was
 * written, so this is where it gets the type of its table.
 */
export function completeRow<Name extends TableName>(
  table: Name,
  row: Row,
  knownAtMs: number,
): TableRow<Name> {
  const columns: readonly Column[] = TABLES[table].columns
  const cell = ({ name }: Column) => (name === 'known_at' ? knownAtMs : (row[name] ?? null))
  return Object.fromEntries(columns.map((column) => [column.name, cell(column)])) as TableRow<Name>
}

const inOrder = (a: PlacedRow, b: PlacedRow): number => a.lsn - b.lsn || a.index - b.index

const rows = <Name extends TableName>(table: Name, placed: Iterable<PlacedRow>): TableRow<Name>[] =>
  [...placed].sort(inOrder).map(({ row, knownAtMs }) => completeRow(table, row, knownAtMs))

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Each value that is younger than so long, as `told`. One after the other: there may be a million. */
function young<Value extends { knownAtMs: number }, Told>(
  values: Iterable<Value>,
  sinceMs: number,
  told: (value: Value) => Told,
): Told[] {
  const found: Told[] = []
  for (const value of values) if (value.knownAtMs > sinceMs) found.push(told(value))
  return found
}

/** Everything in order of its commits, sums in order of their keys; at `nowMs`, as far as that is behind the last commit. */
export function recoverFrom(state: StoreState, nowMs: number): Recovered {
  const { cooldownKeptMs } = state.options
  return {
    agents: rows('agents', state.agents.values()),
    agentKeys: rows('agent_keys', state.agentKeys.values()),
    agentEvents: rows('agent_events', state.agentEvents.values()),
    submitAttempts: young(
      state.submitAttempts.values(),
      nowMs - SUBMIT_ATTEMPTS_RECOVERED_MS,
      ({ agentId, atMs }) => ({ agent_id: agentId, at: atMs }),
    ),
    idempotency: rows(
      'idempotency',
      young(state.idempotency.values(), nowMs - IDEMPOTENCY_KEPT_MS, (placed) => placed),
    ),
    xpTotals: Array.from(state.agentTotals.entries(), ([agentId, total]) => ({ agentId, ...total })).sort(
      (a, b) => byText(a.agentId, b.agentId),
    ),
    coverage: Array.from(state.mintTotals.entries(), ([mint, total]) => ({ mint, ...total })).sort((a, b) =>
      byText(a.mint, b.mint),
    ),
    cooldowns: young(state.cooldowns.values(), nowMs - cooldownKeptMs, ({ agentId, mint, atMs }) => ({
      agentId,
      mint,
      atMs,
    })),
    strikes: young(state.strikes.values(), nowMs - STRIKES_RECOVERED_MS, ({ agentId, atMs }) => ({
      agentId,
      atMs,
    })),
  }
}
