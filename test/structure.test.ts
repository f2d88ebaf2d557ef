// Rules on the source tree: which folder may import which, what the deterministic folders may not use, names and sizes. The
// linter holds the length of functions (.biome.json).
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = new URL('..', import.meta.url).pathname
const SOURCE = join(ROOT, 'src')
const LINES_MAX = 500
const HEADER_LINES_MAX = 3
/** Files of one folder besides its README. */
const FOLDER_FILES_MAX = 24
const ROOT_FILES = ['README.md', 'app.ts', 'main.ts']

/**
 * What a folder or a file may import besides its own top-level folder, `schema`, `lib` and packages. The longest entry that
 * holds a file counts for it, so that a sub-folder or a file may have a rule of its own instead of its folder's. Names
 * that end with `.ts` are single files.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'main.ts': [
    'app.ts',
    'cluster/reader',
    'cluster/writer/standby.ts',
    'config',
    'server/foundation.ts',
    'store/process/fork.ts',
  ],
  'app.ts': [
    'cluster/writer/bus-writer.ts',
    'config',
    'http',
    'ingest',
    'market',
    'recording',
    'server',
    'store',
    'submissions',
  ],
  server: [
    'checkpoint',
    'config',
    'http',
    'ingest',
    'journal',
    'market',
    'recording',
    'store',
    'submissions/types.ts',
  ],
  backtest: [
    'app.ts',
    'config',
    'ingest/replay/pace.ts',
    'ingest/simulator',
    'journal',
    'market/market.ts',
    'recording/event-recorder.ts',
    'store',
    'submissions/errors.ts',
    'submissions/types.ts',
  ],
  schema: [],
  lib: [],
  cluster: [
    'checkpoint',
    'config',
    'http',
    'journal',
    'market',
    'server',
    'store/data-folder/folder-lock.ts',
    'store/errors.ts',
    'store/paths.ts',
    'store/types.ts',
    'submissions',
  ],
  config: [
    'checkpoint/limits.ts',
    'cluster/settings.ts',
    'http/request/addresses.ts',
    'ingest/limits.ts',
    'ingest/settings.ts',
    'ingest/solana/limits.ts',
    'market/limits.ts',
    'store/retention-setting.ts',
    'store/settings.ts',
    'submissions/limits.ts',
  ],
  ingest: [],
  'ingest/feed-settings.ts': ['config/settings.ts', 'store/types.ts'],
  'ingest/start-feeds.ts': ['config/settings.ts'],
  'ingest/replay': ['store/duckdb', 'store/errors.ts'],
  market: [],
  submissions: [],
  recording: ['journal', 'market', 'store/types.ts'],
  checkpoint: ['journal', 'market'],
  journal: [],
  store: ['journal'],
  'store/events': ['journal', 'market/events/trade-price.ts', 'market/time/limits.ts'],
  'store/verify': ['journal', 'market/time/limits.ts'],
  cli: ['config', 'mcp', 'store'],
  'cli/commands/backtest.ts': ['backtest'],
  'cli/commands/capture.ts': ['config', 'ingest/solana'],
  'cli/commands/doctor.ts': ['config', 'server/startable.ts', 'store'],
  'cli/doctor/bus.ts': ['config', 'cluster/bus.ts'],
  'cli/doctor/data-folder.ts': ['config', 'server/startable.ts', 'store'],
  'cli/doctor/chain.ts': ['config', 'ingest/solana'],
  client: [],
  web: ['client'],
  mcp: ['client', 'store/errors.ts', 'store/query'],
  http: [
    'market/market.ts',
    'market/types.ts',
    'store/download/downloads.ts',
    'store/errors.ts',
    'store/lake-jobs.ts',
    'store/store.ts',
    'store/types.ts',
    'submissions/accounts/agent-registry.ts',
    'submissions/errors.ts',
    'submissions/field-errors.ts',
    'submissions/submission-service.ts',
    'submissions/types.ts',
  ],
}
/** What each folder or file of the market imports of it. A row names rows above it only. */
const MARKET_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  'types.ts': [],
  'limits.ts': [],
  time: [],
  tokens: [],
  bars: ['time', 'tokens', 'types.ts'],
  rankings: ['bars', 'time', 'tokens'],
  output: ['bars', 'rankings', 'time', 'tokens', 'types.ts'],
  events: ['bars', 'output', 'rankings', 'time', 'tokens'],
  'market-parts.ts': ['bars', 'events', 'limits.ts', 'output', 'rankings', 'time', 'tokens'],
  checkpoint: ['bars', 'market-parts.ts', 'time', 'tokens'],
  'market.ts': ['bars', 'checkpoint', 'events', 'market-parts.ts', 'output', 'types.ts'],
}
/** The same input always has to give the same result there: time and randomness are passed in. */
const DETERMINISTIC_FOLDERS = ['market', 'submissions']
const CLOCKS_TIMERS_RANDOMNESS =
  /\b(Date\.now|new Date\(\)|performance\.now|process\.hrtime|Math\.random|setTimeout|setInterval|setImmediate|systemClock|machineRandom)\b|from 'node:(crypto|timers|perf_hooks)|\/lib\/(wait|backoff)\.ts'/
/** `hash` is deterministic. */
const CRYPTO_EXCEPTION = /import \{ hash \} from 'node:crypto'/
/** Packages that few folders may import. */
const IMPORTED_BY: Readonly<Record<string, readonly string[]>> = {
  'uWebSockets.js': ['http'],
  '@duckdb/node-api': ['store', 'ingest/replay'],
  '@nats-io/jetstream': ['cluster'],
  '@solana/addresses': ['ingest/solana'],
  '@solana/codecs': ['ingest/solana'],
  'ipaddr.js': ['ingest/metadata'],
  '@nats-io/kv': ['cluster'],
  '@nats-io/obj': ['cluster'],
  '@nats-io/transport-node': ['cluster'],
  '@modelcontextprotocol/server': ['mcp'],
  '@modelcontextprotocol/server/stdio': ['mcp'],
}

/** What DuckDB's package reads results with. A result that is streamed ends alike at its last row and where its query failed. */
const READS_RESULTS =
  /\.(?:fetch\w*Chunks?|yield\w*Rows?\w*|(?:get|convert)(?:Rows|Columns|RowObjects|ColumnsObject)\w*|(?:run|stream)And\w+|start\w*Stream\w*)\(|connection\.stream\(|prepared\.stream\(|\bDuckDBResult(?:Reader)?\b/
/** Who asks such a result whether it has failed. */
const RESULT_READERS = ['store/duckdb/result-stream.ts', 'store/duckdb/query.ts']

interface SourceFile {
  /** Its path below `src`. */
  name: string
  text: string
}
const files: SourceFile[] = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({ name, text: readFileSync(join(SOURCE, name), 'utf8') }))
const importsOf = (text: string): string[] =>
  [...text.matchAll(/(?:from|import\()\s*'([^']+)'/g)].map((match) => match[1])
/** The files of `src` that a file imports. */
const importedFiles = (name: string, text: string): string[] =>
  importsOf(text)
    .filter((imported) => imported.startsWith('.'))
    .map((imported) => relative(SOURCE, join(SOURCE, dirname(name), imported)))
const isWithin = (name: string, entry: string): boolean => name === entry || name.startsWith(`${entry}/`)
/** The top-level folder of a file; null for a file in `src` itself. */
const folderOf = (name: string): string | null => (name.includes('/') ? name.split('/')[0] : null)

function ruleOf(name: string): readonly string[] | undefined {
  const [entry] = Object.keys(MAY_IMPORT)
    .filter((key) => isWithin(name, key))
    .toSorted((a, b) => b.length - a.length)
  return MAY_IMPORT[entry]
}

function mayImport(name: string, target: string): boolean {
  const folder = folderOf(name)
  const targetFolder = folderOf(target)
  if (folder !== null && folder === targetFolder) return true
  if (targetFolder === 'lib') return folder !== 'lib'
  if (targetFolder === 'schema') return folder !== 'lib'
  return (ruleOf(name) ?? []).some((entry) => isWithin(target, entry))
}

/** What a file imports and may not. */
function forbiddenImports({ name, text }: SourceFile): string[] {
  const imports = importsOf(text)
  const owned = imports.filter((imported) => {
    const owners = IMPORTED_BY[imported]
    return owners !== undefined && !owners.some((owner) => isWithin(name, owner))
  })
  return [...owned, ...importedFiles(name, text).filter((target) => !mayImport(name, target))]
}

// One test for each rule, not for each file: thousands of tests take seconds by themselves.
describe('every file of src', () => {
  const namesWhere = (isFault: (file: SourceFile) => boolean): string[] =>
    files.filter(isFault).map(({ name }) => name)

  it('begins with a short comment or none', () => {
    // Reasons and pictures may follow in further paragraphs.
    const headerOf = (text: string): string => text.split(/^(?!\/\/ )/m)[0]
    expect(namesWhere(({ text }) => headerOf(text).split('\n').length - 1 > HEADER_LINES_MAX)).toEqual([])
  })

  it('reads no clock, timer or random number in a deterministic folder', () => {
    const isDeterministic = (name: string): boolean => DETERMINISTIC_FOLDERS.includes(folderOf(name) ?? '')
    expect(
      namesWhere(
        ({ name, text }) =>
          isDeterministic(name) && CLOCKS_TIMERS_RANDOMNESS.test(text.replace(CRYPTO_EXCEPTION, '')),
      ),
    ).toEqual([])
  })

  it('imports only what the rule of its folder allows', () => {
    expect(
      namesWhere(({ name }) => ruleOf(name) === undefined),
      'without an entry of MAY_IMPORT',
    ).toEqual([])
    const found = files.flatMap((file) =>
      forbiddenImports(file).map((target) => `${file.name} imports ${target}`),
    )
    expect(found).toEqual([])
  })

  it('parses untrusted data with safeParse of lib', () => {
    expect(namesWhere(({ text }) => text.includes('.safeParse('))).toEqual(['lib/safe-parse.ts'])
  })

  it('reads results of DuckDB with ResultStream or queryRows', () => {
    const reading = namesWhere(({ text }) => READS_RESULTS.test(text))
    expect(reading.filter((name) => !RESULT_READERS.includes(name))).toEqual([])
  })

  it('has a name in kebab case and at most 500 lines', () => {
    expect(namesWhere(({ name }) => !/^[a-z0-9]+(-[a-z0-9]+)*\.ts$/.test(basename(name)))).toEqual([])
    expect(namesWhere(({ text }) => text.split('\n').length > LINES_MAX)).toEqual([])
  })
})

it('the rules on imports name files and folders that exist', () => {
  const exists = (entry: string): boolean => files.some(({ name }) => isWithin(name, entry))
  const named = [
    ...Object.keys(MAY_IMPORT),
    ...Object.values(MAY_IMPORT).flat(),
    ...Object.values(IMPORTED_BY).flat(),
  ]
  expect(named.filter((entry) => !exists(entry))).toEqual([])
})

it('no file imports itself by way of others, for a type either', () => {
  const importedBy = new Map(files.map(({ name, text }) => [name, importedFiles(name, text)]))
  const finished = new Set<string>()
  const findCircle = (name: string, path: readonly string[]): readonly string[] => {
    if (path.includes(name)) return [...path.slice(path.indexOf(name)), name]
    if (finished.has(name)) return []
    for (const imported of importedBy.get(name) ?? []) {
      const circle = findCircle(imported, [...path, name])
      if (circle.length > 0) return circle
    }
    finished.add(name)
    return []
  }
  const circles = files.map(({ name }) => findCircle(name, []))
  expect(circles.find((circle) => circle.length > 0)).toBeUndefined()
})

it('a part of the market knows the parts that its row names, which are those above it', () => {
  const rooms = Object.keys(MARKET_IMPORTS)
  const roomOf = (name: string): string => name.split('/')[1]
  const found = Object.fromEntries(rooms.map((room) => [room, new Set<string>()]))
  for (const { name, text } of files.filter((file) => isWithin(file.name, 'market')))
    for (const target of importedFiles(name, text))
      if (isWithin(target, 'market') && roomOf(target) !== roomOf(name)) {
        found[roomOf(name)] ??= new Set()
        found[roomOf(name)].add(roomOf(target))
      }
  expect(Object.entries(found).map(([room, imported]) => [room, [...imported].toSorted()])).toEqual(
    Object.entries(MARKET_IMPORTS),
  )
  const isBelow = (room: string, imported: string) => rooms.indexOf(imported) >= rooms.indexOf(room)
  expect(rooms.filter((room) => MARKET_IMPORTS[room].some((imported) => isBelow(room, imported)))).toEqual([])
})

it('a process that is alone loads nothing of a cluster but its settings and bounds', () => {
  const loaded = new Set<string>()
  const load = (name: string): void => {
    if (loaded.has(name)) return
    loaded.add(name)
    const { text } = files.find((file) => file.name === name) ?? { text: '' }
    for (const [, imported] of text.matchAll(/^(?:import|export) (?!type )[^']*?from '([^']+)'/gm))
      if (imported.startsWith('.')) load(relative(SOURCE, join(SOURCE, dirname(name), imported)))
  }
  load('main.ts')
  load('app.ts')
  expect(loaded.size).toBeGreaterThan(200)
  expect([...loaded].filter((name) => name.startsWith('cluster/'))).toEqual([
    'cluster/settings.ts',
    'cluster/limits.ts',
  ])
})

it('programs of scripts read results of DuckDB as src does', () => {
  const names = readdirSync(join(ROOT, 'scripts'), { recursive: true, encoding: 'utf8' })
  const programs = names.filter((name) => /\.(?:ts|mjs|js)$/.test(name))
  expect(programs.length).toBeGreaterThan(0)
  const reading = programs.filter((name) =>
    READS_RESULTS.test(readFileSync(join(ROOT, 'scripts', name), 'utf8')),
  )
  expect(reading).toEqual([])
})

it('the root of src holds the program and its wiring only', () => {
  const found = readdirSync(SOURCE, { withFileTypes: true }).filter((entry) => entry.isFile())
  expect(found.map(({ name }) => name).toSorted()).toEqual(ROOT_FILES)
})

it.each(['src', 'test', 'bench'])(
  'no folder of %s holds more than twenty-four files and its README',
  (top) => {
    const counts = new Map<string, number>()
    for (const entry of readdirSync(join(ROOT, top), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || entry.name === 'README.md') continue
      counts.set(entry.parentPath, (counts.get(entry.parentPath) ?? 0) + 1)
    }
    expect([...counts].filter(([, count]) => count > FOLDER_FILES_MAX)).toEqual([])
  },
)

it('a file of drills is named so, and tagged so', () => {
  const names = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
  const isTagged = (name: string) =>
    /^\/\/ @module-tag drill$/m.test(readFileSync(join(ROOT, 'test', name), 'utf8'))
  const tests = names.filter((name) => name.endsWith('.test.ts'))
  expect(tests.filter(isTagged)).toEqual(tests.filter((name) => name.endsWith('.drill.test.ts')))
})

it('the top level holds the agreed entries only', () => {
  const allowed = [
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'LICENSE',
    'README.md',
    'src',
    'bench',
    'data',
    'test',
    'scripts',
    'node_modules',
  ]
  // What README's commands leave here is named in .gitignore: whoever has run them runs these tests too.
  const left = readFileSync(join(ROOT, '.gitignore'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('/'))
    .map((line) =>
      RegExp(`^${line.slice(1).replace(/\/$/, '').replaceAll('.', '\\.').replaceAll('*', '.*')}$`),
    )
  const found = readdirSync(ROOT).filter((name) => !name.startsWith('.'))
  const isKnown = (name: string) => allowed.includes(name) || left.some((pattern) => pattern.test(name))
  expect(found.filter((name) => !isKnown(name))).toEqual([])
})
