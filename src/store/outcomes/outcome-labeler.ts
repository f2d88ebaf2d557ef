// Labels accepted submissions with their outcomes, horizon by horizon, once the lake has the bars up to the horizon. Labels are
// computed from the bars' files in a scratch database, a bounded number of submissions at a time. Each step is recorded in
// one transaction: a step that was interrupted is computed again, with the same result. A label never changes.
import { join } from 'node:path'
import type { DuckDBConnection, DuckDBValue } from '@duckdb/node-api'
import { recordFrom } from '../../lib/record.ts'
import type { RewoundSpan } from '../../schema/event.ts'
import { TABLES } from '../../schema/tables.ts'
import { HORIZON_NAMES, HORIZONS, type Horizon } from '../../schema/vocabulary.ts'
import { ColumnAppender } from '../duckdb/column-appender.ts'
import { transaction } from '../duckdb/database.ts'
import { duckdb } from '../duckdb/duckdb.ts'
import { queryOne, queryRows, queryValue, type ResultRow, runAll } from '../duckdb/query.ts'
import { withScratchDatabase } from '../duckdb/scratch-database.ts'
import { MARKET_DATABASE, ROW_SEQ } from '../duckdb/sql.ts'
import { listRewoundSpans } from '../events/rewound-spans.ts'
import { takeKnownMs } from '../lake/known-at.ts'
import type { Lake } from '../lake/lake.ts'
import { utcDate } from '../lake/lake-files.ts'
import { listQuarantinedFiles, nextSeq } from '../lake/manifest.ts'
import { selectAllRows } from '../lake/parquet-sql.ts'
import { listRemovedDates } from '../lake/retention.ts'
import {
  BASE_LOOKBACK_MS,
  OUTCOMES_MEMORY_LIMIT,
  OUTCOMES_STEP_ROWS,
  OUTCOMES_STEPS_MAX,
  OUTCOMES_THREADS,
} from '../limits.ts'
import { spillFolder } from '../paths.ts'
import {
  CREATE_DUE,
  CREATE_STAGED_LABELS,
  computeLabelsSql,
  LABEL_NUMBERS,
  type Label,
  loadBarsSql,
  recordLabelsSql,
  STAGED_LABELS,
  selectDueSql,
  selectFewestDoneSql,
} from './outcome-sql.ts'

const DUE_COLUMNS = {
  seq: 'number',
  mint: 'string',
  submittedAtMs: 'number',
  basePriceUsd: 'number?',
} as const
/** A submission whose next horizon has passed. */
type DueSubmission = ResultRow<typeof DUE_COLUMNS>
const LABEL_COLUMNS = recordFrom(LABEL_NUMBERS, () => 'number?' as const)

async function appendColumns(
  connection: DuckDBConnection,
  table: string,
  catalog: string | undefined,
  columns: readonly (readonly DuckDBValue[])[],
): Promise<void> {
  const types = columns.map((cells) => (typeof cells[0] === 'string' ? duckdb.VARCHAR : duckdb.DOUBLE))
  const appender = await ColumnAppender.open(connection, table, types, catalog)
  try {
    appender.append(columns)
    appender.flush()
  } finally {
    appender.close()
  }
}

/** Computes labels in a scratch database. @param bars SQL of the bars */
function computeLabels(
  horizon: Horizon,
  due: readonly DueSubmission[],
  bars: string,
  spillDir: string,
): Promise<Label[]> {
  const settings = {
    threads: String(OUTCOMES_THREADS),
    memory_limit: OUTCOMES_MEMORY_LIMIT,
    temp_directory: spillDir,
  }
  return withScratchDatabase(':memory:', settings, async (connection) => {
    await connection.run(CREATE_DUE)
    const times = due.map(({ submittedAtMs }) => submittedAtMs)
    const columns = [
      due.map(({ seq }) => seq),
      times,
      due.map(({ basePriceUsd }) => basePriceUsd),
      due.map(({ mint }) => mint),
    ]
    await appendColumns(connection, 'due', undefined, columns)
    await runAll(connection, loadBarsSql(bars, horizon, Math.min(...times), Math.max(...times)))
    return queryRows(connection, computeLabelsSql(horizon), LABEL_COLUMNS)
  })
}

/** The market time whose bars the labels of `due` depend on. */
function findBarSpan(horizon: Horizon, due: readonly DueSubmission[]): RewoundSpan {
  const times = due.map(({ submittedAtMs }) => submittedAtMs)
  const looksBack = horizon === HORIZON_NAMES[0] && due.some(({ basePriceUsd }) => basePriceUsd === null)
  const lookBackMs = looksBack ? BASE_LOOKBACK_MS : 0
  return { fromMs: Math.min(...times) - lookBackMs, toMs: Math.max(...times) + HORIZONS[horizon] }
}

const datesOf = ({ fromMs, toMs }: RewoundSpan) => ({ first: utcDate(fromMs), last: utcDate(toMs) })

/** The label of a submission whose bars were lost, have left the lake, or are those of a wrong clock. */
const unknownLabel = ({ seq, basePriceUsd }: DueSubmission): Label => ({
  ...recordFrom(LABEL_NUMBERS, () => null),
  seq,
  base: basePriceUsd,
})

/** Dates of which bars were lost, or have left the lake: a price on such a day is unknown, not unchanged. */
async function listUnknownDates(connection: DuckDBConnection): Promise<string[]> {
  const lost = (await listQuarantinedFiles(connection)).filter(({ rowsLost }) => rowsLost > 0)
  const dates = lost.filter(({ table }) => table === TABLES.bars.name).map(({ date }) => date)
  return [...dates, ...(await listRemovedDates(connection, TABLES.bars.name))]
}

/** The last row number of an outcome, in the lake or in the database. */
async function findLastSeq(connection: DuckDBConnection): Promise<number> {
  const inLake = (await nextSeq(connection, TABLES.outcomes.name)) - 1
  const sql = `SELECT coalesce(max(${ROW_SEQ}), 0)::DOUBLE AS last FROM outcomes`
  return Math.max(inLake, await queryValue(connection, sql, 'number'))
}

export class OutcomeLabeler {
  readonly #lake: Lake
  /** Where a step spills data that does not fit in memory. */
  readonly #spillDir: string

  constructor(lake: Lake) {
    this.#lake = lake
    this.#spillDir = join(spillFolder(lake.dataDir), 'outcomes')
  }

  /**
   * Labels the submissions that are due, now that the lake has all bars up to `knownToMs` of market time. At most
   * OUTCOMES_STEPS_MAX steps: the rest of a backlog is left for the next flush, since each step blocks the maintenance
   * connection. @returns how many labels were made
   */
  async labelDue(knownToMs: number, nowMs: number): Promise<number> {
    // Not after 1970: no market time is known yet.
    if (knownToMs <= 0) return 0
    const { maintenance } = this.#lake.database
    await this.#deleteWritten()
    const { done } = await maintenance.run((connection) =>
      queryOne(connection, selectFewestDoneSql(knownToMs), { done: 'number?' }),
    )
    if (done === null) return 0
    let made = 0
    let steps = 0
    for (const horizon of HORIZON_NAMES.slice(done)) {
      let labelled = OUTCOMES_STEP_ROWS
      for (; labelled === OUTCOMES_STEP_ROWS && steps < OUTCOMES_STEPS_MAX; steps++) {
        labelled = await maintenance.run((connection) => this.#step(connection, horizon, knownToMs, nowMs))
        made += labelled
      }
    }
    return made
  }

  /** Deletes the rows that are in the lake by now. */
  async #deleteWritten(): Promise<void> {
    await this.#lake.database.maintenance.run(async (connection) => {
      const first = await nextSeq(connection, TABLES.outcomes.name)
      await connection.run(`DELETE FROM outcomes WHERE ${ROW_SEQ} < ${first}`)
    })
  }

  /** @returns how many submissions it labelled */
  async #step(connection: DuckDBConnection, horizon: Horizon, knownToMs: number, nowMs: number) {
    const sql = selectDueSql(horizon, knownToMs, OUTCOMES_STEP_ROWS)
    const due = await queryRows(connection, sql, DUE_COLUMNS)
    if (due.length === 0) return 0
    const labels = await this.#label(connection, horizon, due, nowMs)
    this.#lake.failpoint('outcomes:computed')
    await this.#record(connection, horizon, labels, nowMs)
    return labels.length
  }

  #label(
    connection: DuckDBConnection,
    horizon: Horizon,
    due: readonly DueSubmission[],
    nowMs: number,
  ): Promise<Label[]> {
    const spillDir = this.#spillDir
    const needed = datesOf(findBarSpan(horizon, due))
    return this.#lake.reader.read(connection, {
      table: TABLES.bars,
      nowMs,
      isNeeded: ({ date }) => needed.first <= date && date <= needed.last,
      async work(files) {
        const unknownDates = await listUnknownDates(connection)
        const rewound = await listRewoundSpans(connection)
        const isUnknown = (each: DueSubmission): boolean => {
          if (unknownDates.length === 0 && rewound.length === 0) return false
          const span = findBarSpan(horizon, [each])
          const { first, last } = datesOf(span)
          return (
            unknownDates.some((date) => first <= date && date <= last) ||
            rewound.some(({ fromMs, toMs }) => fromMs < span.toMs && span.fromMs <= toMs)
          )
        }
        const { known = [], unknown = [] } = Object.groupBy(due, (each) =>
          isUnknown(each) ? 'unknown' : 'known',
        )
        const bars = selectAllRows(TABLES.bars, files)
        const labels = known.length === 0 ? [] : await computeLabels(horizon, known, bars, spillDir)
        return [...labels, ...unknown.map(unknownLabel)]
      },
    })
  }

  async #record(connection: DuckDBConnection, horizon: Horizon, labels: readonly Label[], nowMs: number) {
    const { failpoint } = this.#lake
    await connection.run(CREATE_STAGED_LABELS)
    const columns = LABEL_NUMBERS.map((name) => labels.map((label) => label[name]))
    await appendColumns(connection, STAGED_LABELS, MARKET_DATABASE, columns)
    const lastSeq = await findLastSeq(connection)
    await transaction(connection, async () => {
      const knownMs = await takeKnownMs(connection, nowMs)
      await runAll(connection, recordLabelsSql(horizon, lastSeq, knownMs))
      failpoint('outcomes:recorded')
    })
    failpoint('outcomes:committed')
  }
}
