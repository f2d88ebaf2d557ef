// In: accepted submissions, those whose outcomes are still open, and the outcomes there are. Out: submissions whose
// outcomes are not as far as the store says, and outcomes of nothing. Never computes one.
import { HORIZON_NAMES } from '../../schema/tables.ts'
import { query } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { isRetained } from '../lake/retention.ts'
import { FINDING_EXAMPLES } from '../limits.ts'
import { counted } from './findings.ts'
import type { VerifyContext } from './verify-files.ts'
import type { LogTail } from './verify-log.ts'
import { everyRow, lakeRows, type ReadableTable } from './verify-rows.ts'

const KEY = 'hash(analysis_id) AS key'
const EXAMPLES = `array_to_string(min(analysis_id, ${FINDING_EXAMPLES}), ', ') AS examples`

/** How many horizons a row of outcomes says. */
const DONE = `list_position([${HORIZON_NAMES.map(literal).join(', ')}], labelled_to)`

interface Count {
  count: number
  examples: string | null
}

/** A submission is open with as many horizons as its outcomes say, or closed with all of them. */
const strayed = (training: string, outcomes: string): string => `SELECT count(*)::DOUBLE AS count, ${EXAMPLES}
  FROM (SELECT analysis_id, ${KEY} FROM ${training} WHERE ${isRetained('outcomes', 'submitted_at')})
    LEFT JOIN (SELECT ${KEY}, horizons_done AS open_at FROM outcomes_open) USING (key)
    LEFT JOIN (SELECT ${KEY}, max(${DONE}) AS done FROM ${outcomes} GROUP BY key) USING (key)
  WHERE coalesce(done, 0) <> coalesce(open_at, ${HORIZON_NAMES.length})`

const ofNothing = (
  training: string,
  outcomes: string,
): string => `SELECT count(*)::DOUBLE AS count, ${EXAMPLES}
  FROM (SELECT analysis_id, ${KEY} FROM ${outcomes} WHERE ${isRetained('training', 'submitted_at')})
    ANTI JOIN (SELECT ${KEY} FROM ${training}) USING (key)`

/** Checks that each submission of the store's tables and of the lake has its outcomes so far, and no other has. */
export async function verifyOutcomes(
  context: VerifyContext,
  training: ReadableTable,
  outcomes: ReadableTable,
  tail: LogTail,
): Promise<void> {
  if (!training.isWhole || !outcomes.isWhole) {
    context.findings.notes.push(
      'outcomes were not held against submissions, since not every file can be read',
    )
    return
  }
  // Outcomes are opened by the flush that brings the submission to the lake.
  const [submissions, labels] = [lakeRows(context, training), await everyRow(context, outcomes, tail)]
  const [late] = await query<Count>(context.connection, strayed(submissions, labels))
  if (late.count > 0) {
    const what = `${counted(late.count, 'submission')} with other outcomes than the store says`
    context.findings.add('outcomes', null, `${what}, among them ${late.examples}`)
  }
  const [lone] = await query<Count>(context.connection, ofNothing(submissions, labels))
  if (lone.count > 0) {
    const what = `${counted(lone.count, 'row')} of no accepted submission`
    context.findings.add('outcomes', null, `${what}, among them ${lone.examples}`)
  }
}
