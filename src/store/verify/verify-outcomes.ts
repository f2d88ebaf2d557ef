// Checks accepted submissions against their outcomes, open and labelled.
import { HORIZON_NAMES } from '../../schema/vocabulary.ts'
import { literal } from '../duckdb/sql.ts'
import { isRetainedSql } from '../lake/retention.ts'
import { countedSql, reportCounted } from './findings.ts'
import type { VerifyContext } from './verify-files.ts'
import type { LogTail } from './verify-log.ts'
import { allRowsSql, lakeRowsSql, type ReadableTable } from './verify-rows.ts'

const KEY = 'hash(analysis_id) AS key'
const COUNT_SQL = countedSql('analysis_id')

/** SQL: how many horizons a row of outcomes covers. */
const DONE = `list_position([${HORIZON_NAMES.map(literal).join(', ')}], labelled_to)`

/** Counts submissions whose open outcome has another number of horizons than their rows, or that are closed too early. */
const countMismatchesSql = (training: string, outcomes: string): string => `${COUNT_SQL}
  FROM (SELECT analysis_id, ${KEY} FROM ${training} WHERE ${isRetainedSql('outcomes', 'submitted_at')})
    LEFT JOIN (SELECT ${KEY}, horizons_done AS open_at FROM outcomes_open) USING (key)
    LEFT JOIN (SELECT ${KEY}, max(${DONE}) AS done FROM ${outcomes} GROUP BY key) USING (key)
  WHERE coalesce(done, 0) <> coalesce(open_at, ${HORIZON_NAMES.length})`

/** Counts outcomes of unknown submissions. */
const countOrphansSql = (training: string, outcomes: string): string => `${COUNT_SQL}
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
  const check = reportCounted.bind(null, context, 'outcomes')
  const fault = 'with other outcomes than the store says'
  await check(countMismatchesSql(submissions, labels), 'submission', fault)
  await check(countOrphansSql(submissions, labels), 'row', 'of no accepted submission')
}
