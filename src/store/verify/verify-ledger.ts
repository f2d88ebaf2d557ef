// In: examples and awards, of the lake and of what is not in it yet. Out: where they do not add up: an example without
// its award, an award without its example, a sum that a restart would get otherwise. Never trusts one side.
import { query } from '../duckdb/query.ts'
import { isRetained, removedOf } from '../lake/retention.ts'
import { FINDING_EXAMPLES } from '../limits.ts'
import { counted } from './findings.ts'
import type { VerifyContext } from './verify-files.ts'
import type { LogTail } from './verify-log.ts'
import { everyRow, type ReadableTable } from './verify-rows.ts'

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

/** Analyses for which there is more than one award; narrow hashes are counted first. */
const twice = (awards: string): string => `SELECT count(*)::DOUBLE AS count, ${EXAMPLES} FROM (
  SELECT analysis_id FROM ${awards} WHERE hash(analysis_id) IN
    (SELECT key FROM (SELECT hash(analysis_id) AS key FROM ${awards}) GROUP BY key HAVING count(*) > 1)
  GROUP BY analysis_id HAVING count(*) > 1)`

async function checkPairs(context: VerifyContext, examples: string, ledger: string): Promise<void> {
  const awards = `(SELECT * FROM ${ledger} WHERE kind = 'analysis')`
  // An award is of the moment of its submission, and stays when that leaves the lake for its age.
  const paired = `(SELECT * FROM ${awards} WHERE ${isRetained('training', 'awarded_at')})`
  const checks = [
    {
      table: 'training',
      sql: alone(examples, awards),
      noun: 'accepted submission',
      fault: 'without an award',
    },
    {
      table: 'xp_ledger',
      sql: alone(paired, examples),
      noun: 'award',
      fault: 'without an accepted submission',
    },
    { table: 'xp_ledger', sql: twice(awards), noun: 'submission', fault: 'with more than one award' },
  ]
  for (const { table, sql, noun, fault } of checks) {
    const [{ count, examples: among }] = await query<Count>(context.connection, sql)
    if (count > 0) context.findings.add(table, null, `${counted(count, noun)} ${fault}, among them ${among}`)
  }
}

/** What two countings of the same say, by agent or mint. */
type Sums = ReadonlyMap<string, number>

function checkSums(
  { findings }: VerifyContext,
  table: string,
  ofRows: Sums,
  afterRestart: Sums,
  what: string,
): void {
  for (const name of new Set([...ofRows.keys(), ...afterRestart.keys()])) {
    const [held, known] = [ofRows.get(name) ?? 0, afterRestart.get(name) ?? 0]
    if (held !== known)
      findings.add(table, null, `${name} has ${held} ${what} by its rows, and ${known} after a restart`)
  }
}

const sumsBy = async (context: VerifyContext, sql: string): Promise<Sums> =>
  new Map(
    (await query<{ name: string; sum: number }>(context.connection, sql)).map(({ name, sum }) => [name, sum]),
  )

/** Checks that examples and awards belong together, and that their sums are those that a start gets. */
export async function verifyLedger(
  context: VerifyContext,
  training: ReadableTable,
  xpLedger: ReadableTable,
  tail: LogTail,
): Promise<void> {
  if (!training.isWhole || !xpLedger.isWhole) {
    context.findings.notes.push('the XP ledger was not added up, since not every file can be read')
    return
  }
  const examples = await everyRow(context, training, tail)
  const ledger = await everyRow(context, xpLedger, tail)
  await checkPairs(context, examples, ledger)
  const { agentTotals, mintTotals } = tail.state
  const points = await sumsBy(context, `SELECT agent_id AS name, sum(xp) AS sum FROM ${ledger} GROUP BY 1`)
  const xpByAgent = new Map(Array.from(agentTotals.entries(), ([agentId, { xp }]) => [agentId, xp]))
  checkSums(context, 'xp_ledger', points, xpByAgent, 'XP')
  const counts = await sumsBy(
    context,
    `SELECT mint AS name, count(*)::DOUBLE AS sum FROM ${examples} GROUP BY 1`,
  )
  const known = new Map(Array.from(mintTotals.entries(), ([mint, { count }]) => [mint, count]))
  const removed = await removedOf(context.connection, 'training')
  const what = 'accepted submissions'
  if (removed.rows === 0) return checkSums(context, 'training', counts, known, what)
  // Of what left for its age the number is known, not the tokens.
  const all = (sums: Sums): number => [...sums.values()].reduce((sum, each) => sum + each, 0)
  const [ever, held] = [
    new Map([['the lake', all(known)]]),
    new Map([['the lake', all(counts) + removed.rows]]),
  ]
  checkSums(context, 'training', held, ever, what)
}
