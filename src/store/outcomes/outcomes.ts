// In: how far the market's bars are in the lake. Out: what became of each accepted submission, horizon by horizon, as rows
// of the table outcomes. Computed in a small database of its own over the bars' files, a bounded step at a time; a step
// is recorded in one transaction, so one that was cut off is done again and gives the same. Never changes a label.
import type { DuckDBConnection, DuckDBValue } from '@duckdb/node-api'
import { HORIZON_NAMES, HORIZONS, type Horizon, TABLES } from '../../schema/tables.ts'
import { appending, type Database, transaction } from '../duckdb/database.ts'
import { duckdb } from '../duckdb/duckdb.ts'
import { query } from '../duckdb/query.ts'
import { inScratchDatabase } from '../duckdb/scratch-database.ts'
import { MARKET_DATABASE, ROW_SEQ } from '../duckdb/sql.ts'
import { utcDate } from '../lake/lake-files.ts'
import { nextSeq, setAsideParts } from '../lake/manifest.ts'
import { selectEveryRow } from '../lake/parquet-sql.ts'
import type { SetAside } from '../lake/set-aside.ts'
import {
  BASE_LOOKBACK_MS,
  OUTCOMES_MEMORY_LIMIT,
  OUTCOMES_STEP_ROWS,
  OUTCOMES_STEPS_MAX,
  OUTCOMES_THREADS,
} from '../limits.ts'
import type { CrashPoint } from '../process/protocol.ts'
import {
  CREATE_DUE,
  CREATE_STAGED_LABELS,
  computeLabels,
  LABEL_NUMBERS,
  type Label,
  loadBars,
  recordLabels,
  STAGED_LABELS,
  selectDue,
  selectFewestDone,
} from './outcome-sql.ts'

interface Due {
  seq: number
  mint: string
  atMs: number
  base: number | null
}

export interface Outcomes {
  /** Labels what is due now that all bars up to `knownToMs` are in the lake. @returns rows made. */
  advance(knownToMs: number, nowMs: number): Promise<number>
}

export interface OutcomesOptions {
  files: Pick<SetAside, 'read'>
  /** Where a step spills to when it needs more memory than it has. */
  spillDir: string
  failpoint(point: CrashPoint): void
}

/** Writes rows of a few thousand cells at most, column by column. */
async function append(
  connection: DuckDBConnection,
  table: string,
  catalog: string | undefined,
  columns: readonly (readonly DuckDBValue[])[],
): Promise<void> {
  const types = columns.map((cells) => (typeof cells[0] === 'string' ? duckdb.VARCHAR : duckdb.DOUBLE))
  const chunk = duckdb.DuckDBDataChunk.create(types, columns[0].length)
  chunk.setColumns(columns)
  await appending(connection, table, catalog, (appender) => appender.appendDataChunk(chunk))
}

/** What becomes of `due`, in a database that knows nothing else. */
function compute(horizon: Horizon, due: readonly Due[], bars: string, spillDir: string): Promise<Label[]> {
  const settings = {
    threads: String(OUTCOMES_THREADS),
    memory_limit: OUTCOMES_MEMORY_LIMIT,
    temp_directory: spillDir,
  }
  return inScratchDatabase(':memory:', settings, async (connection) => {
    await connection.run(CREATE_DUE)
    const times = due.map(({ atMs }) => atMs)
    const columns = [
      due.map(({ seq }) => seq),
      times,
      due.map(({ base }) => base),
      due.map(({ mint }) => mint),
    ]
    await append(connection, 'due', undefined, columns)
    for (const statement of loadBars(bars, horizon, Math.min(...times), Math.max(...times)))
      await connection.run(statement)
    return query<Label>(connection, computeLabels(horizon))
  })
}

/** The dates whose bars tell what becomes of `due`, first and last. */
function datesAround(horizon: Horizon, due: readonly Due[]): readonly [first: string, last: string] {
  const times = due.map(({ atMs }) => atMs)
  const looksBack = horizon === HORIZON_NAMES[0] && due.some(({ base }) => base === null)
  const lookBackMs = looksBack ? BASE_LOOKBACK_MS : 0
  return [utcDate(Math.min(...times) - lookBackMs), utcDate(Math.max(...times) + HORIZONS[horizon])]
}

const unknownLabel = ({ seq, base }: Due): Label => ({
  ...(Object.fromEntries(LABEL_NUMBERS.map((name) => [name, null])) as Label),
  seq,
  base,
})

/** The outcomes of what `database` holds. */
export function openOutcomes(database: Database, { files, spillDir, failpoint }: OutcomesOptions): Outcomes {
  /** Dates of which bars were lost: what became of a price then is unknown, not unchanged. */
  async function lostDates(connection: DuckDBConnection): Promise<string[]> {
    const lost = (await setAsideParts(connection)).filter(({ rowsLost }) => rowsLost > 0)
    return lost.filter(({ table }) => table === TABLES.bars.name).map(({ date }) => date)
  }

  /** Labels of what is due; where a bar was lost that could tell, they are unknown. */
  async function labelsOf(
    connection: DuckDBConnection,
    horizon: Horizon,
    due: readonly Due[],
    nowMs: number,
  ): Promise<Label[]> {
    const [first, last] = datesAround(horizon, due)
    return files.read(connection, {
      table: TABLES.bars,
      nowMs,
      wanted: ({ date }) => first <= date && date <= last,
      async work(parts) {
        const lost = await lostDates(connection)
        const isUnknown = (each: Due): boolean => {
          if (lost.length === 0) return false
          const [from, to] = datesAround(horizon, [each])
          return lost.some((date) => from <= date && date <= to)
        }
        const { known = [], unknown = [] } = Object.groupBy(due, (each) =>
          isUnknown(each) ? 'unknown' : 'known',
        )
        const labels =
          known.length === 0
            ? []
            : await compute(horizon, known, selectEveryRow(TABLES.bars, parts), spillDir)
        return [...labels, ...unknown.map(unknownLabel)]
      },
    })
  }

  async function lastSeq(connection: DuckDBConnection): Promise<number> {
    const inLake = (await nextSeq(connection, TABLES.outcomes.name)) - 1
    const sql = `SELECT coalesce(max(${ROW_SEQ}), 0)::DOUBLE AS last FROM outcomes`
    return Math.max(inLake, (await query<{ last: number }>(connection, sql))[0].last)
  }

  async function record(connection: DuckDBConnection, horizon: Horizon, labels: Label[], nowMs: number) {
    await connection.run(CREATE_STAGED_LABELS)
    const columns = LABEL_NUMBERS.map((name) => labels.map((label) => label[name]))
    await append(connection, STAGED_LABELS, MARKET_DATABASE, columns)
    const last = await lastSeq(connection)
    await transaction(connection, async () => {
      for (const statement of recordLabels(horizon, last, nowMs)) await connection.run(statement)
      failpoint('outcomes:recorded')
    })
    failpoint('outcomes:committed')
  }

  /** @returns how many submissions it labelled. */
  async function step(connection: DuckDBConnection, horizon: Horizon, knownToMs: number, nowMs: number) {
    const due = await query<Due>(connection, selectDue(horizon, knownToMs, OUTCOMES_STEP_ROWS))
    if (due.length === 0) return 0
    const labels = await labelsOf(connection, horizon, due, nowMs)
    failpoint('outcomes:computed')
    await record(connection, horizon, labels, nowMs)
    return labels.length
  }

  /** Rows that the lake has need not stay here too. */
  async function forgetWritten(): Promise<void> {
    await database.maintenance.run(async (connection) => {
      const first = await nextSeq(connection, TABLES.outcomes.name)
      await connection.run(`DELETE FROM outcomes WHERE ${ROW_SEQ} < ${first}`)
    })
  }

  async function advance(knownToMs: number, nowMs: number): Promise<number> {
    // No market has told anything yet.
    if (knownToMs === 0) return 0
    await forgetWritten()
    const [{ done }] = await database.maintenance.run((connection) =>
      query<{ done: number | null }>(connection, selectFewestDone(knownToMs)),
    )
    if (done === null) return 0
    let made = 0
    let steps = 0
    for (const horizon of HORIZON_NAMES.slice(done)) {
      let labelled = OUTCOMES_STEP_ROWS
      // The rest of a large backlog comes with the next flush: other work on this connection waits for each step.
      for (; labelled === OUTCOMES_STEP_ROWS && steps < OUTCOMES_STEPS_MAX; steps++) {
        labelled = await database.maintenance.run((connection) => step(connection, horizon, knownToMs, nowMs))
        made += labelled
      }
    }
    return made
  }

  return { advance }
}
