// In: rows of the store that the lake has too. Out: the store without all but the youngest of them, in small steps: so
// its file stays small however long the server runs, and a checkpoint short. What a restart must know of a row is folded
// into a summary in the transaction that deletes it. Never deletes a row that no listed file holds.
import type { DuckDBConnection } from '@duckdb/node-api'
import type { TableName } from '../schema/tables.ts'
import { query, transaction } from './database.ts'
import { THIN_ROWS_STEP, THIN_STEPS_MAX } from './limits.ts'
import { nextSeqs } from './manifest.ts'
import type { CrashPoint } from './messages.ts'
import { identifier, LAKE_TABLES, ROW_SEQ } from './sql.ts'
import { FOLDINGS } from './summaries.ts'

export interface ThinningOptions {
  /** Row numbers, counted back from the youngest, that stay for look-ups. */
  keptSeqs: number
  /** How long a submission keeps its agent from the same mint: so long its time is kept. */
  cooldownMs: number
  reach(point: CrashPoint): void
}

/** The last row of the next step; null when none is left to go. */
async function stepEnd(connection: DuckDBConnection, table: string, upToSeq: number): Promise<number | null> {
  const rows = await query<{ last: number | null }>(
    connection,
    `SELECT max(${ROW_SEQ})::DOUBLE AS last FROM (SELECT ${ROW_SEQ} FROM ${identifier(table)}
     WHERE ${ROW_SEQ} <= ${upToSeq} ORDER BY ${ROW_SEQ} LIMIT ${THIN_ROWS_STEP})`,
  )
  return rows[0].last
}

/** Deletes rows of `table` up to `upToSeq`, oldest first. @returns how many steps it took. */
async function thinTable(
  connection: DuckDBConnection,
  table: TableName,
  upToSeq: number,
  nowMs: number,
  { cooldownMs, reach }: ThinningOptions,
): Promise<number> {
  const foldingOf = FOLDINGS[table]
  if (foldingOf === undefined) return 0
  for (let steps = 0; steps < THIN_STEPS_MAX; steps++) {
    const last = await stepEnd(connection, table, upToSeq)
    if (last === null) return steps
    const range = `${ROW_SEQ} <= ${last}`
    await transaction(connection, async () => {
      for (const statement of foldingOf(range, nowMs, cooldownMs)) await connection.run(statement)
      await connection.run(`DELETE FROM ${identifier(table)} WHERE ${range}`)
      reach('thin:deleted')
    })
    reach('thin:done')
  }
  return THIN_STEPS_MAX
}

/** Deletes what the lake has, up to `ackedSeq` less what is kept. A large backlog takes several calls. */
export async function thin(
  connection: DuckDBConnection,
  ackedSeq: number,
  nowMs: number,
  options: ThinningOptions,
): Promise<number> {
  const goneSeq = ackedSeq - options.keptSeqs
  if (goneSeq < 1) return 0
  const firsts = await nextSeqs(connection)
  let steps = 0
  for (const { name } of LAKE_TABLES) {
    const upToSeq = Math.min((firsts.get(name) ?? 1) - 1, goneSeq)
    steps += await thinTable(connection, name as TableName, upToSeq, nowMs, options)
  }
  return steps
}
