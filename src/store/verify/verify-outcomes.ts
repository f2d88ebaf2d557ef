// Checks accepted submissions against their outcomes, open and labelled.
import { HORIZON_NAMES } from '../../schema/vocabulary.ts'
import { queryOne } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { isRetainedSql } from '../lake/retention.ts'
import { FINDING_EXAMPLES_MAX } from '../limits.ts'
import { pluralize } from './findings.ts'
import type { VerifyContext } from './verify-files.ts'
import type { LogTail } from './verify-log.ts'
import { allRowsSql, lakeRowsSql, type ReadableTable } from './verify-rows.ts'

const KEY = 'hash(analysis_id) AS key'
const EXAMPLES = `array_to_string(min(analysis_id, ${FINDING_EXAMPLES_MAX}), ', ') AS examples`

/** SQL: how many horizons a row of outcomes covers. */
const DONE = `list_position([${HORIZON_NAMES.map(literal).join(', ')}], labelled_to)`

const COUNT = { count: 'number', examples: 'string?' } as const

/** Counts submissions whose open outcome has another number of horizons than their rows, or that are closed too early. */
const countMismatchesSql = (
  training: string,
  outcomes: string,
): string => `SELECT count(*)::DOUBLE AS count, ${EXAMPLES}
  FROM (SELECT analysis_id, ${KEY} FROM ${training} WHERE ${isRetainedSql('outcomes', 'submitted_at')})
    LEFT JOIN (SELECT ${KEY}, horizons_done AS open_at FROM outcomes_open) USING (key)
    LEFT JOIN (SELECT ${KEY}, max(${DONE}) AS done FROM ${outcomes} GROUP BY key) USING (key)
  WHERE coalesce(done, 0) <> coalesce(open_at, ${HORIZON_NAMES.length})`

/** Counts outcomes of unknown submissions. */
const countOrphansSql = (
  training: string,
  outcomes: string,
): string => `SELECT count(*)::DOUBLE AS count, ${EXAMPLES}
  FROM (SELECT analysis_id, ${KEY} FROM ${outcomes} WHERE ${isRetainedSql('training', 'submitted_at')})
    ANTI JOIN (SELECT ${KEY} FROM ${training}) USING (key)`

/** Checks that each submission has the outcomes that the store says, and that each outcome has a submission. */
export async function verifyOutcomes(
  context: VerifyContext,
  training: ReadableTable,
  outcomes: ReadableTable,
  tail: LogTail,
): Promise<void> {
  if (!training.isWhole || !outcomes.isWhole) {
    context.findings.notes.push(
      'outcomes were not compared with submissions, since not every file can be read',
    )
    return
  }
  // The flush that writes a submission to the lake opens its outcome, so the log is left out here.
  const [submissions, labels] = [lakeRowsSql(context, training), await allRowsSql(context, outcomes, tail)]
  const mismatches = await queryOne(context.connection, countMismatchesSql(submissions, labels), COUNT)
  if (mismatches.count > 0) {
    const what = `${pluralize(mismatches.count, 'submission')} with other outcomes than the store says`
    context.findings.add('outcomes', null, `${what}, among them ${mismatches.examples}`)
  }
  const orphans = await queryOne(context.connection, countOrphansSql(submissions, labels), COUNT)
  if (orphans.count > 0) {
    const what = `${pluralize(orphans.count, 'row')} of no accepted submission`
    context.findings.add('outcomes', null, `${what}, among them ${orphans.examples}`)
  }
}
