// Verifies the recorded events: each number of the sequence is in one of the two tables, once, and the rows of each file are in
// order. Only numbers are read, without sorting or grouping them.

import { join } from 'node:path'
import { readJournal } from '../../journal/reader.ts'
import { nodeDisk } from '../../lib/disk/disk.ts'
import { readHighWaterMark } from '../../lib/disk/high-water-mark.ts'
import { describeDamage, type NumberRange, type SegmentDamage } from '../../lib/segments/types.ts'
import { readFolderInfo } from '../data-folder/folder-info.ts'
import { queryOne, queryRows } from '../duckdb/query.ts'
import { literal } from '../duckdb/sql.ts'
import { type EventMetadata, loadEventMetadata, readEventMetadata } from '../events/event-metadata.ts'
import { type KnownLoss, loadEventPosition } from '../events/event-position.ts'
import type { ListedFile } from '../lake/manifest.ts'
import { FINDING_EXAMPLES_MAX } from '../limits.ts'
import { journalFolder, journalMarkPath } from '../paths.ts'
import { pluralize } from './findings.ts'
import { CATALOG } from './verify-catalog.ts'
import type { VerifyContext } from './verify-files.ts'
import { type ReadableTable, unreadFiles } from './verify-rows.ts'

/** Numbers that are looked at together for an example of what is missing. */
const EXAMPLE_NUMBERS = 10_000

/** Checks that the rows of a file have ascending numbers within its range. */
async function checkOrder({ connection, findings, links }: VerifyContext, file: ListedFile): Promise<void> {
  const path = literal(links.pathOf(file))
  const { unordered, outside } = await queryOne(
    connection,
    `SELECT count(*) FILTER (event_no <= before)::DOUBLE AS unordered,
       count(*) FILTER (event_no NOT BETWEEN ${file.first} AND ${file.last})::DOUBLE AS outside
     FROM (SELECT event_no, lag(event_no) OVER (ORDER BY file_row_number) AS before
       FROM read_parquet(${path}, hive_partitioning=false, file_row_number=true))`,
    { unordered: 'number', outside: 'number' },
  )
  if (unordered > 0) findings.addFile(file, `has ${pluralize(unordered, 'row')} out of order`)
  if (outside > 0)
    findings.addFile(file, `has ${pluralize(outside, 'row')} with numbers that its name does not cover`)
}

/** The numbers that the tables should have together: a range without those that are known to be lost. */
interface ExpectedEvents extends NumberRange {
  lost: readonly NumberRange[]
}

/** SQL condition: `event_no` is expected. */
const isExpectedSql = ({ from, to, lost }: ExpectedEvents): string =>
  [
    `event_no BETWEEN ${from} AND ${to}`,
    ...lost.map((range) => `event_no NOT BETWEEN ${range.from} AND ${range.to}`),
  ].join(' AND ')

/** SQL of the numbers in all undamaged files. */
function numbersSql({ links }: VerifyContext, tables: readonly ReadableTable[]): string {
  const paths = tables.flatMap(({ readable }) => readable.map((file) => literal(links.pathOf(file))))
  if (paths.length === 0) return 'SELECT 0::BIGINT AS event_no WHERE false'
  return `SELECT event_no FROM read_parquet([${paths.join(', ')}], hive_partitioning=false, union_by_name=true)`
}

/** Compares the numbers that are there with those that should be, by count and by a hash that does not depend on their order. */
async function checkSequence(
  context: VerifyContext,
  tables: readonly ReadableTable[],
  expected: ExpectedEvents,
): Promise<void> {
  if (expected.to < expected.from) return
  const { connection, findings } = context
  const summary = (numbers: string) =>
    queryOne(
      connection,
      `SELECT count(*)::DOUBLE AS count, bit_xor(hash(event_no))::VARCHAR AS hash FROM (${numbers})
       WHERE ${isExpectedSql(expected)}`,
      { count: 'number', hash: 'string?' },
    )
  const found = await summary(numbersSql(context, tables))
  const wanted = await summary(
    `SELECT i::BIGINT AS event_no FROM range(${expected.from}, ${expected.to + 1}) AS numbers(i)`,
  )
  if (found.count === wanted.count && found.hash === wanted.hash) return
  const examples = await findExamples(context, tables, expected)
  findings.add(
    null,
    null,
    `recorded events ${expected.from} to ${expected.to}: ${found.count} found of ${wanted.count}; ${examples.join(', ')}`,
  )
}

/** Says where numbers are missing or doubled. */
async function findExamples(
  context: VerifyContext,
  tables: readonly ReadableTable[],
  expected: ExpectedEvents,
): Promise<string[]> {
  const part = `event_no // ${EXAMPLE_NUMBERS}`
  const rows = await queryRows(
    context.connection,
    `WITH found AS (SELECT ${part} AS part, count(*) AS rows, count(DISTINCT event_no) AS numbers
         FROM (${numbersSql(context, tables)}) WHERE ${isExpectedSql(expected)} GROUP BY 1),
       wanted AS (SELECT ${part} AS part, count(*) AS numbers
         FROM (SELECT i::BIGINT AS event_no FROM range(${expected.from}, ${expected.to + 1}) AS numbers(i))
         WHERE ${isExpectedSql(expected)} GROUP BY 1)
     SELECT (part * ${EXAMPLE_NUMBERS})::DOUBLE AS first, (wanted.numbers - coalesce(found.numbers, 0))::DOUBLE AS missing,
       coalesce(found.rows - found.numbers, 0)::DOUBLE AS doubled
     FROM wanted LEFT JOIN found USING (part)
     WHERE found.numbers IS DISTINCT FROM wanted.numbers OR found.rows <> found.numbers
     ORDER BY part LIMIT ${FINDING_EXAMPLES_MAX}`,
    { first: 'number', missing: 'number', doubled: 'number' },
  )
  return rows.map(({ first, missing, doubled }) => {
    const what = [
      ...(missing > 0 ? [`${missing} missing`] : []),
      ...(doubled > 0 ? [`${doubled} doubled`] : []),
    ]
    return `${what.join(' and ')} from ${Math.max(first, expected.from)} to ${Math.min(first + EXAMPLE_NUMBERS - 1, expected.to)}`
  })
}

/** What the store says of the events besides their rows; where it cannot be opened, the catalog. */
export const knownOfEvents = ({ connection, hasStore }: VerifyContext): Promise<EventMetadata> =>
  hasStore ? loadEventMetadata(connection) : readEventMetadata(connection, CATALOG)

/** Reports events that neither journal nor lake has: as a finding until `lake repair` acknowledges the loss, then as a note. */
function reportLosses({ findings }: VerifyContext, losses: readonly KnownLoss[]): void {
  for (const { from, to, reason, acknowledgedAtMs } of losses) {
    const what = `recorded events ${from} to ${to} are lost: ${reason}`
    if (acknowledgedAtMs === null) findings.add(null, null, `${what}; see mintlake lake repair`)
    else findings.notes.push(`${what}; settled`)
  }
}

/** The numbers that the files have by their names. */
function rangeOfFiles(tables: readonly ReadableTable[]): NumberRange {
  const files = tables.flatMap(({ listed }) => listed)
  if (files.length === 0) return { from: 1, to: 0 }
  return {
    from: Math.min(...files.map(({ first }) => first)),
    to: Math.max(...files.map(({ last }) => last)),
  }
}

async function expectedEvents(
  context: VerifyContext,
  tables: readonly ReadableTable[],
): Promise<ExpectedEvents> {
  const { connection, findings, hasStore } = context
  const damaged = tables.flatMap(unreadFiles).map((file) => ({ from: file.first, to: file.last }))
  const files = rangeOfFiles(tables)
  if (!hasStore && files.to === 0) return { ...files, lost: [] }
  const metadata = await knownOfEvents(context)
  reportLosses(context, metadata.lost)
  const to = hasStore ? (await loadEventPosition(connection)).eventNo : files.to
  if (files.to > to)
    findings.add(null, null, `the lake has recorded events up to ${files.to}, but its position is ${to}`)
  return { from: metadata.eventsFrom, to, lost: [...damaged, ...metadata.lost] }
}

/** Reads what the journal has beyond the lake, and reports its damage. No server may be running. */
async function checkJournal({ connection, findings }: VerifyContext, dataDir: string): Promise<void> {
  const folder = journalFolder(dataDir)
  const { eventNo } = await loadEventPosition(connection)
  const folderId = readFolderInfo(dataDir)?.logId ?? null
  const knownEventNo = await readHighWaterMark(nodeDisk, journalMarkPath(dataDir), folderId ?? '')
  const onDamage = (damage: SegmentDamage): void =>
    findings.add(
      null,
      damage.file && join('journal', damage.file),
      describeDamage(damage, { name: 'journal', entries: 'events' }),
    )
  let waiting = 0
  for await (const batch of readJournal(folder, eventNo, { folderId, knownEventNo, onDamage }))
    waiting += batch.lastEventNo - Math.max(batch.firstEventNo - 1, eventNo)
  if (waiting > 0)
    findings.notes.push(
      `recorded events that are not in the lake yet: ${waiting}; the next start brings them`,
    )
}

/** Verifies the tables of recorded events together. @param tables both of them */
export async function verifyEvents(
  context: VerifyContext,
  tables: readonly ReadableTable[],
  dataDir: string,
): Promise<void> {
  context.startStage('recorded events')
  for (const { readable } of tables) {
    for (const file of readable) await checkOrder(context, file)
  }
  await checkSequence(context, tables, await expectedEvents(context, tables))
  if (context.hasStore) await checkJournal(context, dataDir)
}
