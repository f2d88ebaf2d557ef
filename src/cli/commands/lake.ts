// `lake status`: size and freshness of the lake. `lake verify`: whether it is complete and consistent. Both only read.
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/time.ts'
import { withLakeReader } from '../../store/query/lake-reader.ts'
import { type LakeFigures, lakeFigures, type TableFigures } from '../../store/query/lake-status.ts'
import { type Verified, verifyLake } from '../../store/verify/verify.ts'
import { type Command, EXIT, type Values } from '../command.ts'
import { DATA_DIR, dataDirOf, FORMAT, numberOption, timeoutMs, writeFound } from '../common.ts'
import { tableText } from '../rows.ts'
import { askHealth, isOfAnotherFolder, type ServerHealth, URL_OPTION, urlOf } from '../server-client.ts'
import { Stop } from '../stop.ts'
import type { Terminal } from '../terminal.ts'

const iso = (ms: number): string => new Date(ms).toISOString()
const grouped = (count: number): string => count.toLocaleString('en-US').replaceAll(',', ' ')

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const
const STEP = 1_000

function sizeText(bytes: number): string {
  let [value, unit] = [bytes, 0]
  while (value >= STEP && unit < UNITS.length - 1) {
    value /= STEP
    unit++
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`
}

const SPANS: readonly (readonly [string, number])[] = [
  ['d', DAY_MS],
  ['h', HOUR_MS],
  ['min', MINUTE_MS],
  ['s', 1_000],
]

function spanText(ms: number): string {
  const [unit, length] = SPANS.find(([, each]) => ms >= 2 * each) ?? ['s', 1_000]
  return `${Math.max(0, Math.floor(ms / length))} ${unit}`
}

interface StatusRow extends TableFigures {
  bytesPerRow: number | null
  ageMs: number | null
  /** Rows that are not in the lake yet; null when no server could be asked. */
  backlog: number | null
}

function statusRow(figures: TableFigures, server: ServerHealth | null, nowMs: number): StatusRow {
  const { table, rows, bytes, youngestMs } = figures
  return {
    ...figures,
    bytesPerRow: rows === 0 ? null : Math.round(bytes / rows),
    ageMs: youngestMs === null ? null : nowMs - youngestMs,
    backlog: server?.store.lake?.find((each) => each.table === table)?.backlog ?? null,
  }
}

const HEADS = ['table', 'rows', 'files', 'size', 'bytes a row', 'youngest row', 'age', 'waiting'] as const
const blank = (value: number | null, show: (value: number) => string): string =>
  value === null ? '' : show(value)

const cells = (row: StatusRow): string[] => [
  row.table,
  grouped(row.rows),
  grouped(row.files),
  sizeText(row.bytes),
  blank(row.bytesPerRow, grouped),
  blank(row.youngestMs, iso),
  blank(row.ageMs, spanText),
  blank(row.backlog, grouped),
]

function statusText({ catalogWrittenMs }: LakeFigures, rows: StatusRow[], told: string): string {
  const columns = HEADS.map((name, index) => ({ name, isNumber: index > 0 }))
  return `${tableText(columns, rows.map(cells))}catalog of ${iso(catalogWrittenMs)}; ${told}\n`
}

const serverText = (url: string, server: ServerHealth | null): string =>
  server === null
    ? `no server answers at ${url}: what waits for the lake is not known`
    : `the server at ${url} is ${server.status}, its store ${server.store.healthy ? 'works' : 'does not work'}` +
      (server.store.databaseBytes === undefined
        ? ''
        : `, ${sizeText(server.store.databaseBytes)} of its own`) +
      server.reasons.map((reason) => `\n${reason}`).join('')

const otherFolderText = (url: string, dataDir: string): string =>
  `the server at ${url} has another data folder than ${dataDir}: what waits for this lake is not known; ` +
  '--url names its own server, --data-dir the folder of that one'

async function showStatus(values: Values, terminal: Terminal): Promise<undefined> {
  const dataDir = dataDirOf(values, terminal)
  const url = urlOf(values, terminal)
  const figures = await withLakeReader({ dataDir }, lakeFigures)
  const health = await askHealth(url)
  const answering = typeof health === 'string' ? null : health
  const isReader = answering?.cluster?.role === 'reader'
  const isOther = isOfAnotherFolder(answering?.store.folderId, dataDir)
  const server = isOther || isReader ? null : answering
  const told = isReader
    ? `the server at ${url} is a reader, which has no store: what waits for the lake is not known; --url names the writer`
    : isOther
      ? otherFolderText(url, dataDir)
      : serverText(url, server)
  const rows = figures.tables.map((each) => statusRow(each, server, terminal.clock.now()))
  const json = { dataDir, catalogWrittenMs: figures.catalogWrittenMs, url, server, told, tables: rows }
  await writeFound(values, terminal, json, statusText(figures, rows, told))
}

export const lakeStatusCommand: Command = {
  name: 'lake status',
  summary: 'Show rows, files, bytes and freshness of each table, and how many rows are not in the lake yet',
  options: { format: FORMAT, 'data-dir': DATA_DIR, url: URL_OPTION },
  notes: [
    'By the catalog, whether a server runs or not; what waits is told by the server at --url, if it is the one of this',
    'data folder.',
  ],
  run: showStatus,
}

/** A start looks at the size and the end of each file only: other bytes are found by a repair. */
const REMEDY = 'a start puts names and catalog right, mintlake lake repair sets damaged files aside'

function verifiedText(verified: Verified, dataDir: string): string {
  const { scope, reason, findings, omitted, notes, tables, files, rows } = verified
  const count = findings.length + omitted
  const looked = `${tables} tables, ${grouped(files)} files, ${grouped(rows)} rows`
  const lines = findings.map(({ table, file, message }) =>
    [file ?? table, message].filter((word) => word !== null).join(': '),
  )
  return [
    `the lake in ${dataDir}: ${looked}`,
    ...(scope === 'whole' ? [] : [`files, names, catalog and a sample of bars were checked: ${reason}`]),
    ...notes.map((note) => `note: ${note}`),
    ...lines,
    ...(omitted > 0 ? [`and ${grouped(omitted)} more`] : []),
    count === 0
      ? 'nothing is wrong'
      : `${count === 1 ? '1 finding' : `${grouped(count)} findings`}; ${REMEDY}`,
    '',
  ].join('\n')
}

/** Shows on a terminal what is being checked, on one line that is overwritten. */
function stageTeller({ stderr, isWatched }: Terminal): { tell(stage: string): void; end(): void } {
  const TAKE_BACK = '\r\u001b[K'
  const say = (text: string): void => void (isWatched && stderr.write(TAKE_BACK + text))
  return { tell: (stage) => say(`looking at ${stage}`), end: () => say('') }
}

async function showVerified(values: Values, terminal: Terminal): Promise<number> {
  const dataDir = dataDirOf(values, terminal)
  const stop = new Stop(terminal, timeoutMs(values))
  const stages = stageTeller(terminal)
  return stop.during(async () => {
    const { signal } = stop
    const nowMs = terminal.clock.now()
    const verified = await verifyLake({ dataDir, nowMs, signal, onStage: stages.tell }).finally(stages.end)
    await writeFound(values, terminal, { dataDir, ...verified }, verifiedText(verified, dataDir))
    return verified.findings.length === 0 ? EXIT.done : EXIT.failed
  })
}

export const lakeVerifyCommand: Command = {
  name: 'lake verify',
  summary: 'Check every file of the lake, the catalog, the store’s rows and the XP ledger against each other',
  options: {
    format: FORMAT,
    timeout: numberOption('SECONDS', 0, 'Time limit; 0: none'),
    'data-dir': DATA_DIR,
  },
  notes: [
    'Exit code 0: nothing is wrong; 1: something is. While a server has the store, files, names, the catalog and a sample',
    'of bars are checked alone, and it is said so. Nothing is changed: the next start of a server puts names and the catalog',
    'right, and mintlake lake repair sets damaged files aside. No server can start while this command has the store.',
  ],
  run: showVerified,
}
