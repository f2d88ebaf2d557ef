// Checks accepted submissions against the XP ledger, over the rows of the lake and of the log beyond it.
import { queryRows } from '../duckdb/query.ts'
import { isRetainedSql, readRemoved } from '../lake/retention.ts'
import { countedSql, reportCounted } from './findings.ts'
import type { VerifyContext } from './verify-files.ts'
import type { LogTail } from './verify-log.ts'
import { allRowsSql, type ReadableTable } from './verify-rows.ts'

const PAIR = 'hash(analysis_id, agent_id)'
const COUNT_SQL = countedSql('analysis_id')

/** Counts the rows of `ones` whose pair of analysis and agent is not in `others`. */
const countUnpairedSql = (ones: string, others: string): string => `${COUNT_SQL}
  FROM (SELECT analysis_id, ${PAIR} AS pair FROM ${ones})
  ANTI JOIN (SELECT ${PAIR} AS pair FROM ${others}) USING (pair)`

/** Counts analyses with more than one award. Hashes are grouped first, which takes less memory. */
const countDuplicatesSql = (awards: string): string => `${COUNT_SQL} FROM (
  SELECT analysis_id FROM ${awards} WHERE hash(analysis_id) IN
    (SELECT key FROM (SELECT hash(analysis_id) AS key FROM ${awards}) GROUP BY key HAVING count(*) > 1)
  GROUP BY analysis_id HAVING count(*) > 1)`

async function checkPairs(context: VerifyContext, examples: string, ledger: string): Promise<void> {
  const awards = `(SELECT * FROM ${ledger} WHERE kind = 'analysis')`
  // The award has the time of its submission and may be kept longer: only awards of dates kept in training must have one.
  const paired = `(SELECT * FROM ${awards} WHERE ${isRetainedSql('training', 'awarded_at')})`
  const check = reportCounted.bind(null, context)
  await check('training', countUnpairedSql(examples, awards), 'accepted submission', 'without an award')
  await check('xp_ledger', countUnpairedSql(paired, examples), 'award', 'without an accepted submission')
  await check('xp_ledger', countDuplicatesSql(awards), 'submission', 'with more than one award')
}

/** Sums by agent or mint. */
type Sums = ReadonlyMap<string, number>

function checkSums(
  { findings }: VerifyContext,
  table: string,
  byRows: Sums,
  afterRestart: Sums,
  what: string,
): void {
  for (const name of new Set([...byRows.keys(), ...afterRestart.keys()])) {
    const [actual, expected] = [byRows.get(name) ?? 0, afterRestart.get(name) ?? 0]
    if (actual !== expected)
      findings.add(table, null, `${name} has ${actual} ${what} by its rows, and ${expected} after a restart`)
  }
}

const querySums = async (context: VerifyContext, sql: string): Promise<Sums> =>
  new Map(
    (await queryRows(context.connection, sql, { name: 'string', sum: 'number' })).map(({ name, sum }) => [
      name,
      sum,
    ]),
  )

/** Checks that each accepted submission has one award, and that sums over the rows equal those after a restart. */
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
  const examples = await allRowsSql(context, training, tail)
  const ledger = await allRowsSql(context, xpLedger, tail)
  await checkPairs(context, examples, ledger)
  const { agentTotals, mintTotals } = tail.state
  const points = await querySums(
    context,
    `SELECT agent_id AS name, sum(xp)::DOUBLE AS sum FROM ${ledger} GROUP BY 1`,
  )
  const xpByAgent = new Map(Array.from(agentTotals.entries(), ([agentId, { xp }]) => [agentId, xp]))
  checkSums(context, 'xp_ledger', points, xpByAgent, 'XP')
  const counts = await querySums(
    context,
    `SELECT mint AS name, count(*)::DOUBLE AS sum FROM ${examples} GROUP BY 1`,
  )
  const known = new Map(Array.from(mintTotals.entries(), ([mint, { count }]) => [mint, count]))
  const removed = await readRemoved(context.connection, 'training')
  const what = 'accepted submissions'
  if (removed.rows === 0) return checkSums(context, 'training', counts, known, what)
  // Of expired rows the number is known, but not the tokens: only the totals can be compared.
  const total = (sums: Sums): number => [...sums.values()].reduce((sum, each) => sum + each, 0)
  const [expected, actual] = [
    new Map([['the lake', total(known)]]),
    new Map([['the lake', total(counts) + removed.rows]]),
  ]
  checkSums(context, 'training', actual, expected, what)
}
