// What must be so of the lake at rest: its files have each row once, what left was over its time, and labels are those of the trades.
import { DAY_MS } from '../../../src/lib/time.ts'
import { OUTCOME_LABELS } from '../../../src/schema/api/submission-list.ts'
import type { Row, TableName } from '../../../src/schema/tables.ts'
import { HORIZON_NAMES, HORIZONS, type Horizon } from '../../../src/schema/vocabulary.ts'
import type { Oracle } from '../../market/oracle.ts'
import { check, count, type World } from '../world.ts'
import type { FileRow, ModelFile, RemovedFile } from './files.ts'
import { basePriceOf, labelsOf, type Minutes, minutesOf } from './labels.ts'

/** A label waits so long for the last bars before its horizon. */
const LABEL_DELAY_MS = 60_000
/** So long after its end the bar of a token that is silent may still be open. */
const SILENT_MS = 15_000
/** A clock that is wrong by more is not believed. */
const CLOCK_BELIEVED_MS = 2 * 3_600_000
/** Rows of a date may come so much later. */
const LATE_ROWS_MS = DAY_MS
/** Of one date and table, behind a merge. */
const FILES_OF_DATE_MAX = 16
const CHECKED_TABLES = ['training', 'rejections', 'xp_ledger', 'bars', 'tokens', 'outcomes'] as const
const EVENT_TABLES: readonly string[] = ['trades', 'events']

const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

/** Its rows are those that came, each in one file: also after merges, and but for those that left. */
export function checkLakeFiles(world: World): void {
  const { files } = world.lake
  for (const table of CHECKED_TABLES) {
    const left = files.removed.filter(({ file }) => file.table === table).flatMap(({ file }) => file.content)
    const found = [...files.rows(table), ...left].map(({ row }) => row)
    const came = cameTo(world, table)
    check(
      world,
      'every row of the lake is in one file',
      found.length === came.length &&
        new Set(found).size === came.length &&
        came.every((row) => found.includes(row)),
      () => `${table}: ${found.length} rows in files, ${came.length} came`,
    )
  }
  for (const table of [...CHECKED_TABLES, ...EVENT_TABLES] as TableName[]) {
    const live = files.live(table)
    for (const file of live) checkFile(world, file)
    for (const [date, ofDate] of Map.groupBy(live, (file) => file.date)) {
      const isApart = ofDate.every((file, index) => index === 0 || ofDate[index - 1].last < file.first)
      check(
        world,
        'files of a date have rows of their own',
        isApart,
        () => `${table} ${date}: ${namesOf(ofDate)}`,
      )
    }
  }
}

/** To be asked when the lake was tidied up just now: each flush adds files. */
export function checkMerges(world: World): void {
  for (const table of [...CHECKED_TABLES, ...EVENT_TABLES] as TableName[])
    for (const [date, { length }] of Map.groupBy(world.lake.files.live(table), (file) => file.date))
      check(
        world,
        'small files of the lake are merged',
        length <= FILES_OF_DATE_MAX || world.hadWrongClock,
        () => `${table} ${date}: ${length} files`,
      )
}

function cameTo({ lake }: World, table: (typeof CHECKED_TABLES)[number]): (Row | null)[] {
  if (table === 'bars') return [...lake.bars.values()]
  return table === 'tokens' ? lake.profiles : lake.rows(table).map(({ row }) => row)
}

function checkFile(world: World, { table, date, first, last, content }: ModelFile): void {
  check(
    world,
    'a file has rows of its date and its numbers alone',
    content.every(({ dateMs, seq }) => dateOf(dateMs) === date && first <= seq && seq <= last),
    () =>
      `${table} ${date} ${first}-${last}: ${content.map(({ dateMs, seq }) => `${dateOf(dateMs)} ${seq}`)}`,
  )
}

const namesOf = (files: readonly ModelFile[]): string =>
  files.map(({ first, last }) => `${first}-${last}`).join(', ')

/** Days of which a table keeps its rows; null: all. */
const daysOf = ({ retain }: World, table: string): number | null =>
  retain[EVENT_TABLES.includes(table) ? 'trades' : table] ?? null

/** What left was over its time by what was numbered before it, and the clock was right or confirmed. */
export function checkRetention(world: World, told: { reasons: string[] }): void {
  const { files } = world.lake
  for (const left of files.removed) {
    count(world, `rows that left: ${left.file.table}`, left.file.rows)
    checkLeft(world, left)
  }
  if (world.hadWrongClock || told.reasons.some((reason) => reason.startsWith('no row leaves the lake')))
    return
  for (const table of Object.keys(world.retain)) {
    const days = daysOf(world, table)!
    const kept = dateOf(world.machine.trueMs - days * DAY_MS - LATE_ROWS_MS)
    const live = table === 'trades' ? [] : files.live(table as TableName)
    const over = live.filter(({ date }) => date < kept)
    check(
      world,
      'what is over its time leaves, or /health says why not',
      over.length === 0,
      () =>
        `${table} of ${over.map(({ date }) => date)} stays, ${days} days are kept; ${JSON.stringify(told.reasons)}`,
    )
  }
}

function checkLeft(world: World, { file, wallMs, trueMs, isConfirmed }: RemovedFile): void {
  const { table } = file
  const days = daysOf(world, table)
  const isClockRight = Math.abs(wallMs - trueMs) <= CLOCK_BELIEVED_MS
  check(
    world,
    'no row leaves by a clock that is wrong',
    isClockRight || world.hadWrongBegin,
    () =>
      `${table} ${file.date} left at ${new Date(trueMs).toISOString()}, by the clock ${new Date(wallMs).toISOString()}`,
  )
  const kept = days === null ? '' : dateOf(wallMs - days * DAY_MS)
  const young = file.content.find((row) => agesBy(world, table as TableName, row) >= kept)
  check(
    world,
    'no row leaves before its time',
    young === undefined,
    () =>
      `${table} row ${young?.seq} of ${file.date} left on ${dateOf(wallMs)}${isConfirmed ? ', confirmed' : ''}; ${days} days are kept`,
  )
}

/** The date by which a row ages: its own, or that of what was brought to the lake before it, less a day. */
function agesBy({ lake }: World, table: TableName, { dateMs, flush }: FileRow): string {
  const { begun } = lake.files
  const before = (begun.get(table) ?? []).findLast((each) => each.flush < flush)
  return dateOf(Math.max(dateMs, (before?.latestMs ?? 0) - LATE_ROWS_MS))
}

/** Labels come once, at their time, and are those that the recorded trades make. */
export function checkOutcomes(
  world: World,
  oracle: Oracle,
  {
    closedByMs,
    isTouched,
  }: { closedByMs: number; isTouched(mint: string, fromMs: number, toMs: number): boolean },
): void {
  const { lake, server } = world
  const { timeMs } = server.app!.market
  const bars = oracle
    .mints()
    .flatMap((mint) => oracle.bars(mint, '1m', timeMs).map((bar) => ({ ...bar, mint })))
  const minutes = minutesOf(bars)
  const made = Map.groupBy(lake.rows('outcomes'), ({ row }) => row.analysis_id)
  for (const { row } of lake.rows('training')) {
    const { analysis_id: id, mint } = row
    const submittedAtMs = Number(row.submitted_at)
    const labelled = made.get(id) ?? []
    const names = labelled.map(({ row }) => row.labelled_to as Horizon)
    check(
      world,
      'each horizon is labelled once, in their order',
      names.every((name, index) => name === HORIZON_NAMES[index]),
      () => `${id}: ${names}`,
    )
    const knownToMs = closedByMs - SILENT_MS - LABEL_DELAY_MS
    const due = HORIZON_NAMES.filter((name) => submittedAtMs + HORIZONS[name] <= knownToMs)
    check(
      world,
      'a label is made once its time has come',
      names.length >= due.length,
      () => `${id} of ${submittedAtMs}: ${names}, and bars are closed to ${closedByMs}`,
    )
    const base = (row.price_at_submission_usd as number | undefined) ?? null
    const submission = { mint: String(mint), submittedAtMs, base }
    const priced = { ...submission, base: basePriceOf(submission, minutes) }
    for (const { row: label, knownAtMs } of labelled) {
      const horizon = label.labelled_to as Horizon
      const toMs = submittedAtMs + HORIZONS[horizon]
      check(
        world,
        'no label is made before its time',
        knownAtMs >= toMs + LABEL_DELAY_MS,
        () => `${id} ${horizon}: made ${knownAtMs - submittedAtMs} ms after it`,
      )
      // What the price did is not known any more, which NULL says.
      const isUnknown = label[`fwd_ret_${horizon}`] === null
      if (isUnknown && lake.files.haveLeft('bars', submittedAtMs, toMs)) continue
      if (isTouched(String(mint), submittedAtMs - (base === null ? DAY_MS : 60_000), toMs)) continue
      checkLabel(world, label, labelsOf(priced, horizon, minutes), minutes)
    }
  }
}

/** The labels of each submission that the lake has. */
export const latestOutcomes = ({ lake }: World): ReadonlyMap<unknown, Row> =>
  new Map(lake.files.rows('outcomes').map(({ row }) => [row!.analysis_id, row!]))

interface ListedOutcomes {
  analysisId: string
  outcomes: Readonly<Record<string, unknown>>
}

/** Lists show the labels that the lake has. @param before what it had before the list was asked for */
export function checkShownOutcomes(
  world: World,
  listed: readonly ListedOutcomes[],
  before: ReadonlyMap<unknown, Row>,
): void {
  const after = latestOutcomes(world)
  for (const { analysisId: id, outcomes } of listed) {
    const isRight = OUTCOME_LABELS.every((name) =>
      [before, after].some((labels) => outcomes[name] === (labels.get(id)?.[name] ?? null)),
    )
    check(
      world,
      'a list shows the labels that the lake has',
      isRight,
      () => `${id}: ${JSON.stringify(outcomes)}, in the lake ${JSON.stringify(after.get(id))}`,
    )
  }
}

function checkLabel(world: World, label: Row, expected: Record<string, unknown>, minutes: Minutes): void {
  const isEqual = Object.entries(expected).every(([name, value]) => label[name] === value)
  check(
    world,
    'a label is that of the recorded trades',
    isEqual,
    () =>
      `${JSON.stringify(label)}, by the model ${JSON.stringify(expected)}; ${JSON.stringify(minutes.of(String(label.mint)).slice(-5))}`,
  )
}
