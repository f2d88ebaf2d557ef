// What the rest of the server needs after a start, taken from the state.
import { type Column, type Row, TABLES, type TableName, type TableRow } from '../../schema/tables.ts'
import { IDEMPOTENCY_KEPT_MS, STRIKES_RECOVERED_MS, SUBMIT_ATTEMPTS_RECOVERED_MS } from '../limits.ts'
import type { Recovered } from '../types.ts'
import type { AgingQueue } from './aging-queue.ts'
import type { PlacedRow, StoreState } from './state.ts'

/**
 * Adds the columns that the row lacks, as null, and `known_at`. The row was checked against its table when it was written, so
 * the cast states what is already true.
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

const byCommit = (a: PlacedRow, b: PlacedRow): number => a.lsn - b.lsn || a.index - b.index

const completeRows = <Name extends TableName>(table: Name, placed: Iterable<PlacedRow>): TableRow<Name>[] =>
  [...placed].sort(byCommit).map(({ row, knownAtMs }) => completeRow(table, row, knownAtMs))

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** The values of a time after `sinceMs`. In one pass, because there may be a million. */
function valuesSince<Value extends { atMs: number }>(queue: AgingQueue<Value>, sinceMs: number): Value[] {
  const found: Value[] = []
  for (const [, value] of queue.entries()) if (value.atMs > sinceMs) found.push(value)
  return found
}

/** Rows are in the order of their commits, sums in the order of their keys. Entries too old at `nowMs` are left out. */
export function recoverFrom(state: StoreState, nowMs: number): Recovered {
  const { cooldownKeptMs } = state.options
  return {
    agents: completeRows('agents', state.agents.values()),
    agentKeys: completeRows('agent_keys', state.agentKeys.values()),
    agentEvents: completeRows('agent_events', state.agentEvents.values()),
    submitAttempts: valuesSince(state.submitAttempts, nowMs - SUBMIT_ATTEMPTS_RECOVERED_MS).map(
      ({ agentId, atMs }) => ({ agent_id: agentId, at: atMs }),
    ),
    idempotency: completeRows(
      'idempotency',
      [...state.idempotency.values()].filter(({ row }) => row.at > nowMs - IDEMPOTENCY_KEPT_MS),
    ),
    xpTotals: Array.from(state.agentTotals.entries(), ([agentId, total]) => ({ agentId, ...total })).sort(
      (a, b) => byText(a.agentId, b.agentId),
    ),
    outcomeCounts: Array.from(state.agentOutcomes.entries(), ([agentId, counts]) => ({
      agentId,
      ...counts,
    })).sort((a, b) => byText(a.agentId, b.agentId)),
    coverage: Array.from(state.mintTotals.entries(), ([mint, total]) => ({
      mint,
      count: total.count,
      lastSentiment: total.lastSentiment === '' ? null : total.lastSentiment,
      lastScore: total.lastSentiment === '' ? null : total.lastScore,
    })).sort((a, b) => byText(a.mint, b.mint)),
    recentLabels: valuesSince(state.recentLabels, Number.NEGATIVE_INFINITY),
    cooldowns: valuesSince(state.cooldowns, nowMs - cooldownKeptMs),
    strikes: valuesSince(state.strikes, nowMs - STRIKES_RECOVERED_MS),
  }
}
