// In: examples and awards, of the lake and of what is not in it yet. Out: where they do not add up: an example without
// its award, an award without its example, a sum that a restart would get otherwise. Never trusts one side.
import { query } from './database.ts'
import { counted } from './findings.ts'
import { journalSelect, WAITING } from './journal.ts'
import { FINDING_EXAMPLES } from './limits.ts'
import { nextSeq } from './manifest.ts'
import { recover } from './recovery.ts'
import { lakeColumns, ROW_SEQ, relation } from './sql.ts'
import type { Look } from './verify-files.ts'
import { lakeRows, type ReadableTable } from './verify-rows.ts'

/** SQL of a table's rows. */
interface Rows {
  /** Those of the lake, and those of the store's table that are not in it yet. */
  moved: string
  /** And those that wait for the store's table. */
  all: string
}

async function rowsOf(look: Look, readable: ReadableTable): Promise<Rows> {
  const { table } = readable
  const first = await nextSeq(look.connection, table.name)
  const columns = lakeColumns(table)
  const moved = `${lakeRows(look, readable)} UNION ALL SELECT ${columns} FROM ${relation(table)} WHERE ${ROW_SEQ} >= ${first}`
  const waiting = `SELECT ${columns} FROM (${journalSelect(table, WAITING)})`
  return { moved: `(${moved})`, all: `(${moved} UNION ALL ${waiting})` }
}

const PAIR = 'hash(analysis_id, agent_id)'
const EXAMPLES = `array_to_string(min(analysis_id, ${FINDING_EXAMPLES}), ', ') AS examples`

interface Count {
  count: number
  examples: string | null
}

/** Rows of `ones` whose analysis and agent no row of `others` has. */
const alone = (ones: string, others: string): string => `SELECT count(*)::DOUBLE AS count, ${EXAMPLES}
  FROM (SELECT analysis_id, ${PAIR} AS pair FROM ${ones})
  ANTI JOIN (SELECT ${PAIR} AS pair FROM ${others}) USING (pair)`

/** Analyses for which there is more than one award. */
const twice = (awards: string): string => `SELECT count(*)::DOUBLE AS count, ${EXAMPLES} FROM (
  SELECT any_value(analysis_id) AS analysis_id FROM ${awards} GROUP BY hash(analysis_id) HAVING count(*) > 1)`

async function checkPairs(look: Look, examples: string, ledger: string): Promise<void> {
  const awards = `(SELECT * FROM ${ledger} WHERE kind = 'analysis')`
  const checks = [
    {
      table: 'training',
      sql: alone(examples, awards),
      noun: 'accepted submission',
      fault: 'without an award',
    },
    {
      table: 'xp_ledger',
      sql: alone(awards, examples),
      noun: 'award',
      fault: 'without an accepted submission',
    },
    { table: 'xp_ledger', sql: twice(awards), noun: 'submission', fault: 'with more than one award' },
  ]
  for (const { table, sql, noun, fault } of checks) {
    const [{ count, examples: among }] = await query<Count>(look.connection, sql)
    if (count > 0) look.findings.add(table, null, `${counted(count, noun)} ${fault}, among them ${among}`)
  }
}

/** What two countings of the same say, by agent or mint. */
type Sums = ReadonlyMap<string, number>

function checkSums({ findings }: Look, table: string, ofRows: Sums, afterRestart: Sums, what: string): void {
  for (const name of new Set([...ofRows.keys(), ...afterRestart.keys()])) {
    const [held, known] = [ofRows.get(name) ?? 0, afterRestart.get(name) ?? 0]
    if (held !== known)
      findings.add(table, null, `${name} has ${held} ${what} by its rows, and ${known} after a restart`)
  }
}

const sumsBy = async (look: Look, sql: string): Promise<Sums> =>
  new Map(
    (await query<{ name: string; sum: number }>(look.connection, sql)).map(({ name, sum }) => [name, sum]),
  )

/**
 * Checks that examples and awards belong together, and that their sums are those that a restart gets.
 * @param nowMs the time of the restart; sums do not depend on it.
 */
export async function verifyLedger(
  look: Look,
  training: ReadableTable,
  xpLedger: ReadableTable,
  nowMs: number,
): Promise<void> {
  if (!training.isWhole || !xpLedger.isWhole) {
    look.findings.notes.push('the XP ledger was not added up, since not every file can be read')
    return
  }
  const [examples, ledger] = [await rowsOf(look, training), await rowsOf(look, xpLedger)]
  await checkPairs(look, examples.all, ledger.all)
  const { xpTotals, coverage } = await recover(look.connection, nowMs)
  const points = await sumsBy(look, `SELECT agent_id AS name, sum(xp) AS sum FROM ${ledger.moved} GROUP BY 1`)
  checkSums(look, 'xp_ledger', points, new Map(xpTotals.map(({ agentId, xp }) => [agentId, xp])), 'XP')
  const counts = await sumsBy(
    look,
    `SELECT mint AS name, count(*)::DOUBLE AS sum FROM ${examples.moved} GROUP BY 1`,
  )
  const known = new Map(coverage.map(({ mint, count }) => [mint, count]))
  checkSums(look, 'training', counts, known, 'accepted submissions')
}
