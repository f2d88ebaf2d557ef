// What must be so of a real lake at rest: its files of Parquet have, read by SQL, what the modelled lake has in its tables.
import type { RecordedEvent } from '../../../../src/journal/event-batch.ts'
import { type Row, TABLES, type TableName } from '../../../../src/schema/tables.ts'
import { TIMEFRAMES } from '../../../../src/schema/timeframe.ts'
import { HORIZON_NAMES, type Horizon } from '../../../../src/schema/vocabulary.ts'
import { completeRow } from '../../../../src/store/state/recovered.ts'
import { check, count, type World } from '../../world.ts'
import type { LakeContents } from '../contents.ts'
import { isSame } from './same.ts'

interface Compared {
  table: TableName
  keyOf(row: Row): string
  /** Rows that the model has in files, with the columns that it knows. */
  modelled(lake: LakeContents): Row[]
}

/** Those of a table of the log, whole. */
function rowsOfLog(lake: LakeContents, table: TableName): Row[] {
  const live = new Set(lake.files.rows(table).map(({ row }) => row))
  const rows = lake.rows(table).filter(({ row }) => live.has(row))
  return rows.map(({ row, knownAtMs }) => completeRow(table, row, knownAtMs) as unknown as Row)
}

const liveRows = ({ files }: LakeContents, table: TableName): Row[] =>
  files.rows(table).map(({ row }) => row!)

function barsOf(lake: LakeContents): Row[] {
  return liveRows(lake, 'bars').map(({ close_no: _, tf, complete, ...bar }) => ({
    ...bar,
    ...{ tf: TIMEFRAMES[Number(tf)], complete: complete === 1 },
  }))
}

const horizonOf = ({ labelled_to }: Row): number => HORIZON_NAMES.indexOf(labelled_to as Horizon)

/** A merge drops the earlier rows of a submission: the newest one has all its labels. */
const newestOutcomes = (rows: readonly Row[]): Row[] => [
  ...new Map(
    rows.toSorted((a, b) => horizonOf(a) - horizonOf(b)).map((row) => [row.analysis_id, row]),
  ).values(),
]

const COMPARED: readonly Compared[] = [
  ...(['training', 'rejections'] as const).map((table) => ({
    table,
    keyOf: ({ analysis_id }: Row) => String(analysis_id),
    modelled: (lake: LakeContents) => rowsOfLog(lake, table),
  })),
  {
    table: 'xp_ledger',
    keyOf: (row) => String(row.entry_id),
    modelled: (lake) => rowsOfLog(lake, 'xp_ledger'),
  },
  { table: 'bars', keyOf: ({ mint, tf, t }) => `${mint} ${tf} ${t}`, modelled: barsOf },
  {
    table: 'outcomes',
    keyOf: ({ analysis_id }) => String(analysis_id),
    modelled: (lake) => newestOutcomes(liveRows(lake, 'outcomes')),
  },
  // One version may be there twice.
  {
    table: 'tokens',
    keyOf: ({ mint, updated_at, name, description }) => JSON.stringify([mint, updated_at, name, description]),
    modelled: (lake) => liveRows(lake, 'tokens'),
  },
]

/**
 * @param recorded all events that the modelled lake ever had
 * @param lost how many rows of each table it was told to lack
 */
export async function checkRealLake(
  world: World,
  recorded: readonly RecordedEvent[],
  lost: ReadonlyMap<TableName, number> = new Map(),
): Promise<void> {
  const { lake, real } = world
  if (real === null) return
  const { read } = await real.auditor.ask({ kind: 'read', dataDir: real.lake.dataDir })
  for (const compared of COMPARED) {
    const found = read.rows[compared.table] ?? []
    const ofTable = lost.get(compared.table) ?? 0
    // An earlier row of a submission takes the place of one that is lost.
    if (compared.table === 'outcomes' && ofTable > 0) continue
    checkRows(world, compared, compared.table === 'outcomes' ? newestOutcomes(found) : found, ofTable)
  }
  const live = new Set([...lake.files.rows('trades'), ...lake.files.rows('events')].map(({ seq }) => seq))
  const expected = recorded.filter(({ eventNo }) => live.has(eventNo))
  checkEvents(world, expected, read.events, (lost.get('trades') ?? 0) + (lost.get('events') ?? 0))
}

const MODEL_AS_REAL = 'the real lake has the rows of the modelled one'

function checkRows(
  world: World,
  { table, keyOf, modelled }: Compared,
  found: readonly Row[],
  lost: number,
): void {
  const expected = modelled(world.lake)
  count(world, `rows of Parquet compared: ${table}`, found.length)
  const [keys, expectedKeys] = [found, expected].map((rows) => rows.map(keyOf).sort())
  const isWhole = lost === 0 ? isSame(keys, expectedKeys) : isLackingOf(keys, expectedKeys, lost)
  check(world, MODEL_AS_REAL, isWhole, () => {
    const only = (these: string[], others: string[]) =>
      these.filter((key) => !others.includes(key)).slice(0, 5)
    return `${table}: ${keys.length} rows in files, ${expectedKeys.length} in the model, ${lost} lost; only in files ${only(keys, expectedKeys)}, only in the model ${only(expectedKeys, keys)}`
  })
  const columns = TABLES[table].columns.map(({ name }) => name as string)
  const byKey = new Map(found.map((row) => [keyOf(row), row]))
  for (const row of expected) {
    const real = byKey.get(keyOf(row))
    if (real === undefined) continue
    const differs = columns.filter((name) => name in row && !isSame(row[name], real[name]))
    check(
      world,
      MODEL_AS_REAL,
      differs.length === 0,
      () =>
        `${table} ${keyOf(row)}: ${differs.map((name) => `${name} ${real[name]}, in the model ${row[name]}`)}`,
    )
  }
}

/** Whether so many are missing, and nothing else differs. */
function isLackingOf(keys: readonly string[], expected: readonly string[], lost: number): boolean {
  const known = new Set(expected)
  return keys.length === expected.length - lost && keys.every((key) => known.has(key))
}

function checkEvents(
  world: World,
  all: readonly RecordedEvent[],
  found: readonly RecordedEvent[],
  lost: number,
): void {
  const numbers = new Set(found.map(({ eventNo }) => eventNo))
  const expected = lost === 0 ? all : all.filter(({ eventNo }) => numbers.has(eventNo))
  count(world, 'rows of Parquet compared: trades and events', found.length)
  check(
    world,
    'the real lake has the events of the modelled one',
    found.length === expected.length && found.length === all.length - lost,
    () => `${found.length} events in files, ${all.length} in the model, ${lost} lost`,
  )
  for (const [index, event] of expected.entries())
    check(
      world,
      'the real lake has the events of the modelled one',
      isSame(found[index], event),
      () => `${JSON.stringify(found[index])}, in the model ${JSON.stringify(event)}`,
    )
}

/** Nothing runs any more: the folder is what a check of the product calls whole. */
export async function verifyRealLake(world: World): Promise<void> {
  const { machine, real } = world
  if (real === null) return
  await real.lake.end()
  const asked = { kind: 'verify', dataDir: real.lake.dataDir, nowMs: machine.wallMs } as const
  const { findings } = await real.auditor.ask(asked)
  // What was damaged is found.
  if (world.hasDamagedLog || world.hasDamagedJournal) return
  const wrong = findings.filter(({ isLoss }) => isLoss !== true)
  check(world, 'mintlake lake verify finds nothing', wrong.length === 0, () =>
    JSON.stringify(wrong.slice(0, 5)),
  )
}
