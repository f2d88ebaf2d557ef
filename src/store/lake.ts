// In: durable rows of the store. Out: each of them in exactly one Parquet file of the lake, and a list of those files.
// Never writes a file in place, never lists a file that is not whole, and never writes a range twice: a flush that was
// cut off anywhere is finished with the same range, so the files it had already published are adopted.
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import type { TableName } from '../schema/tables.ts'
import { type Database, query, transaction } from './database.ts'
import {
  fileBytes,
  listTable,
  makeFolder,
  type Part,
  partPath,
  publish,
  removeFile,
  type SeqRange,
  syncFile,
  temporaryPath,
} from './lake-files.ts'
import { FLUSH_ROWS_MAX, LAKE_ROW_GROUP_ROWS } from './limits.ts'
import type { CrashPoint, LogLine } from './messages.ts'
import { lakeFolder } from './paths.ts'
import {
  identifier,
  JOURNAL,
  LAKE_TABLES,
  type LakeTable,
  lakeColumns,
  lakeOrder,
  literal,
  MANIFEST,
  ROW_SEQ,
} from './sql.ts'
import type { LakeTableStatus } from './types.ts'

export interface Flushed {
  files: number
  rows: number
}

export interface Lake {
  /** Finishes or removes what a crash left. Before the first flush. */
  settle(nowMs: number): Promise<void>
  /** Writes all rows up to `ackedSeq` that no file holds yet. */
  flush(ackedSeq: number, nowMs: number): Promise<Flushed>
  status(ackedSeq: number): Promise<LakeTableStatus[]>
}

export interface LakeOptions {
  dataDir: string
  /** Called at each named point of a flush, so that a test can cut it off there. */
  reach(point: CrashPoint): void
  log(line: LogLine): void
}

interface WrittenPart extends Part {
  rows: number
  bytes: number
}

const dateOf = (table: LakeTable): string => `CAST(${identifier(table.lakeDateColumn)} AS DATE)`
const inRange = ({ first, last }: SeqRange): string => `${ROW_SEQ} BETWEEN ${first} AND ${last}`

/** The first row that no file holds yet: everything before it is in the lake. */
async function nextSeq(connection: DuckDBConnection, table: LakeTable): Promise<number> {
  const sql = `SELECT coalesce(max(seq_last), 0)::DOUBLE AS last FROM ${MANIFEST} WHERE table_name = $table`
  const rows = await query<{ last: number }>(connection, sql, { table: table.name })
  return rows[0].last + 1
}

/** The range that the next round writes, at most FLUSH_ROWS_MAX rows; null when the lake has everything. */
async function planRange(
  connection: DuckDBConnection,
  table: LakeTable,
  ackedSeq: number,
): Promise<SeqRange | null> {
  const first = await nextSeq(connection, table)
  const rows = await query<{ last: number | null }>(
    connection,
    `SELECT max(${ROW_SEQ})::DOUBLE AS last FROM (SELECT ${ROW_SEQ} FROM ${identifier(table.name)}
     WHERE ${inRange({ first, last: ackedSeq })} ORDER BY ${ROW_SEQ} LIMIT ${FLUSH_ROWS_MAX})`,
  )
  return rows[0].last === null ? null : { first, last: rows[0].last }
}

/** Rows by UTC date within a range. */
async function rowsByDate(connection: DuckDBConnection, table: LakeTable, range: SeqRange) {
  return query<{ date: string; rows: number }>(
    connection,
    `SELECT strftime(${dateOf(table)}, '%Y-%m-%d') AS date, count(*)::DOUBLE AS rows
     FROM ${identifier(table.name)} WHERE ${inRange(range)} GROUP BY 1 ORDER BY 1`,
  )
}

async function copyPart(
  connection: DuckDBConnection,
  table: LakeTable,
  part: Part,
  path: string,
): Promise<void> {
  await connection.run(
    `COPY (SELECT ${lakeColumns(table)} FROM ${identifier(table.name)}
     WHERE ${inRange(part)} AND ${dateOf(table)} = DATE '${part.date}' ORDER BY ${lakeOrder(table)})
     TO ${literal(temporaryPath(path))} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE ${LAKE_ROW_GROUP_ROWS})`,
  )
}

/** Rows of a published file; null when it is not there or is no whole Parquet file. */
async function rowsOfFile(connection: DuckDBConnection, path: string): Promise<number | null> {
  try {
    const sql = `SELECT sum(num_rows)::DOUBLE AS rows FROM parquet_file_metadata(${literal(path)})`
    return (await query<{ rows: number }>(connection, sql))[0].rows
  } catch {
    return null
  }
}

const manifestRow = (part: WrittenPart, nowMs: number): string =>
  `(${literal(part.table)}, ${literal(partPath(part))}, DATE '${part.date}', ${part.first}, ${part.last},
    ${part.rows}, ${part.bytes}, epoch_ms(${nowMs}))`

async function listParts(connection: DuckDBConnection, parts: WrittenPart[], nowMs: number): Promise<void> {
  const values = parts.map((part) => manifestRow(part, nowMs)).join(', ')
  await transaction(
    connection,
    async () => void (await connection.run(`INSERT INTO ${MANIFEST} VALUES ${values}`)),
  )
}

async function listedParts(connection: DuckDBConnection, table: LakeTable): Promise<WrittenPart[]> {
  return query<WrittenPart>(
    connection,
    `SELECT table_name AS "table", strftime(dt, '%Y-%m-%d') AS date, seq_first::DOUBLE AS first,
       seq_last::DOUBLE AS last, row_count::DOUBLE AS rows, byte_count::DOUBLE AS bytes
     FROM ${MANIFEST} WHERE table_name = $table ORDER BY seq_first, dt`,
    { table: table.name },
  )
}

/** The lake below `dataDir`, fed from `database`. */
export function openLake(database: Database, options: LakeOptions): Lake {
  const lakeDir = lakeFolder(options.dataDir)
  const { reach, log } = options
  /** Tables whose last flush failed half-way: they are settled before the next one. */
  const unsettled = new Set<string>(LAKE_TABLES.map((table) => table.name))
  const absolute = (part: Part): string => join(lakeDir, partPath(part))

  async function writePart(connection: DuckDBConnection, table: LakeTable, part: Part): Promise<void> {
    const path = absolute(part)
    await makeFolder(join(path, '..'))
    await copyPart(connection, table, part, path)
    reach('flush:copied')
    await syncFile(temporaryPath(path))
    reach('flush:synced')
    await publish(path)
    reach('flush:renamed-first')
  }

  /** Writes one range, or finishes it: files of it that are there already are taken as they are. */
  async function writeRange(connection: DuckDBConnection, table: LakeTable, range: SeqRange, nowMs: number) {
    const parts: WrittenPart[] = []
    for (const { date, rows } of await rowsByDate(connection, table, range)) {
      const part = { table: table.name, date, ...range }
      const path = absolute(part)
      // Only an unsettled table can have a file of this range already.
      const present = unsettled.has(table.name) && (await rowsOfFile(connection, path)) === rows
      if (!present) await writePart(connection, table, part)
      parts.push({ ...part, rows, bytes: await fileBytes(path) })
    }
    reach('flush:renamed-all')
    if (parts.length > 0) await listParts(connection, parts, nowMs)
    reach('flush:listed')
    return parts
  }

  /** A listed file that is gone or broken is written again, where the store still has every row of it. */
  async function restoreListed(connection: DuckDBConnection, table: LakeTable, listed: WrittenPart[]) {
    for (const part of listed) {
      const path = absolute(part)
      if ((await fileBytes(path).catch(() => -1)) === part.bytes) continue
      const stored = (await rowsByDate(connection, table, part)).find(({ date }) => date === part.date)
      if (stored?.rows !== part.rows) {
        log({
          level: 'error',
          message: 'a lake file is lost, and the store no longer has its rows',
          fields: { path },
        })
        continue
      }
      log({ level: 'warn', message: 'a lake file is missing or damaged; writing it again', fields: { path } })
      await writePart(connection, table, part)
      const bytes = await fileBytes(path)
      await connection.run(
        `UPDATE ${MANIFEST} SET byte_count = ${bytes} WHERE path = ${literal(partPath(part))}`,
      )
    }
  }

  /** Files that no list names: of the next range they are adopted, anything else would show rows twice. */
  async function settleOrphans(
    connection: DuckDBConnection,
    table: LakeTable,
    orphans: Part[],
    nowMs: number,
  ) {
    const first = await nextSeq(connection, table)
    const cutOff = orphans.find((part) => part.first === first)
    const adopted = new Set<string>()
    if (cutOff !== undefined) {
      const range = { first, last: cutOff.last }
      for (const part of await writeRange(connection, table, range, nowMs)) adopted.add(partPath(part))
    }
    for (const part of orphans.filter((each) => !adopted.has(partPath(each)))) {
      log({
        level: 'warn',
        message: 'removing a lake file that no list names',
        fields: { path: partPath(part) },
      })
      await removeFile(absolute(part))
    }
  }

  async function settleTable(connection: DuckDBConnection, table: LakeTable, nowMs: number): Promise<void> {
    unsettled.add(table.name)
    const onDisk = await listTable(lakeDir, table.name)
    for (const path of onDisk.temporaries) await removeFile(path)
    for (const path of onDisk.strangers) {
      log({ level: 'warn', message: 'a file in the lake is not the store’s; left alone', fields: { path } })
    }
    const listed = await listedParts(connection, table)
    await restoreListed(connection, table, listed)
    const known = new Set(listed.map(partPath))
    const orphans = onDisk.parts.filter((part) => !known.has(partPath(part)))
    if (orphans.length > 0) await settleOrphans(connection, table, orphans, nowMs)
    unsettled.delete(table.name)
  }

  async function flushTable(connection: DuckDBConnection, table: LakeTable, ackedSeq: number, nowMs: number) {
    if (unsettled.has(table.name)) await settleTable(connection, table, nowMs)
    const flushed: Flushed = { files: 0, rows: 0 }
    let range = await planRange(connection, table, ackedSeq)
    while (range !== null) {
      reach('flush:planned')
      unsettled.add(table.name)
      const parts = await writeRange(connection, table, range, nowMs)
      unsettled.delete(table.name)
      flushed.files += parts.length
      flushed.rows += parts.reduce((sum, part) => sum + part.rows, 0)
      range = await planRange(connection, table, ackedSeq)
    }
    return flushed
  }

  async function flush(ackedSeq: number, nowMs: number): Promise<Flushed> {
    return database.maintenance.run(async (connection) => {
      const total: Flushed = { files: 0, rows: 0 }
      for (const table of LAKE_TABLES) {
        const { files, rows } = await flushTable(connection, table, ackedSeq, nowMs)
        total.files += files
        total.rows += rows
      }
      return total
    })
  }

  async function settle(nowMs: number): Promise<void> {
    await database.maintenance.run(async (connection) => {
      for (const table of LAKE_TABLES) await settleTable(connection, table, nowMs)
    })
  }

  async function tableStatus(connection: DuckDBConnection, table: LakeTable, ackedSeq: number) {
    const listed = await query<{ files: number; rows: number }>(
      connection,
      `SELECT count(*)::DOUBLE AS files, coalesce(sum(row_count), 0)::DOUBLE AS rows
       FROM ${MANIFEST} WHERE table_name = $table`,
      { table: table.name },
    )
    const first = await nextSeq(connection, table)
    const backlog = await query<{ rows: number }>(
      connection,
      `SELECT (SELECT count(*) FROM ${identifier(table.name)} WHERE ${inRange({ first, last: ackedSeq })})::DOUBLE
         + (SELECT count(*) FROM ${JOURNAL} WHERE table_name = $table) AS rows`,
      { table: table.name },
    )
    return { table: table.name as TableName, ...listed[0], backlog: backlog[0].rows }
  }

  async function status(ackedSeq: number): Promise<LakeTableStatus[]> {
    return database.reader.run(async (connection) => {
      const tables: LakeTableStatus[] = []
      for (const table of LAKE_TABLES) tables.push(await tableStatus(connection, table, ackedSeq))
      return tables
    })
  }

  return { settle, flush, status }
}
