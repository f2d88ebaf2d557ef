// What the rest of the server needs after a start, taken from the state.
import type { Recovered } from '../../schema/recovered.ts'
import { type Column, type Row, TABLES, type TableName, type TableRow } from '../../schema/tables.ts'
import type { AgingQueue } from './aging-queue.ts'
import type { PlacedRow, StateTable, StoreState } from './state.ts'

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

const byAgent = (a: { agentId: string }, b: { agentId: string }): number => byText(a.agentId, b.agentId)

/** In one pass, because there may be a million. */
const valuesOf = <Value>(queue: AgingQueue<Value>): Value[] =>
  Array.from(queue.entries(), ([, value]) => value)

/**
 * Rows are in the order of their commits, sums in the order of their keys. Each table is emptied once it is read, so that a
 * million agents are not twice in memory.
 */
export function recoverFrom(state: StoreState): Recovered {
  const take = <Name extends StateTable, Taken>(
    name: Name,
    read: (table: StoreState[Name]) => Taken,
  ): Taken => {
    const taken = read(state[name])
    state[name].clear()
    return taken
  }
  return {
    agents: take('agents', (table) => completeRows('agents', table.values())),
    agentKeys: take('agentKeys', (table) => completeRows('agent_keys', table.values())),
    agentEvents: take('agentEvents', (table) => completeRows('agent_events', table.values())),
    submitAttempts: take('submitAttempts', (queue) =>
      valuesOf(queue).map(({ agentId, atMs }) => ({ agent_id: agentId, at: atMs })),
    ),
    idempotency: take('idempotency', (table) => completeRows('idempotency', table.values())),
    xpTotals: take('agentTotals', (table) =>
      Array.from(table.entries(), ([agentId, total]) => ({ agentId, ...total })).sort(byAgent),
    ),
    outcomeCounts: take('agentOutcomes', (table) =>
      Array.from(table.entries(), ([agentId, counts]) => ({ agentId, ...counts })).sort(byAgent),
    ),
    coverage: take('mintTotals', (table) =>
      Array.from(table.entries(), ([mint, { count, lastSentiment, lastScore }]) => ({
        mint,
        count,
        lastSentiment: lastSentiment === '' ? null : lastSentiment,
        lastScore: lastSentiment === '' ? null : lastScore,
      })).sort((a, b) => byText(a.mint, b.mint)),
    ),
    recentLabels: take('recentLabels', valuesOf),
    cooldowns: take('cooldowns', valuesOf),
    strikes: take('strikes', valuesOf),
  }
}
