// How long a single caller waits for a submission beyond a plain request and a sync of the disk, and whether page readers
// notice 200 submissions a second. One caller's processes run on any core: pinned, the bare sync would have a core to itself, and
// the submission that is compared with it would share the other with the lake process and the kernel's workers.
import { fileURLToPath } from 'node:url'
import {
  type Core,
  inFolder,
  jsonOf,
  type Measured,
  onCore,
  type Question,
  type RunOptions,
} from '../harness.ts'
import { endProgram, type Running, startPeerStore, startServer } from '../load.ts'
import { installPeerStores } from '../servers/peer-stores.ts'

const CALLERS = 20
const EVERY_MS = 100
/** A client that collects its garbage seldom: its pauses would be counted as the server's. */
const CLIENT_FLAGS = ['--no-warnings', '--min-semi-space-size=64', '--max-semi-space-size=64']
const program = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url))
const run = (core: Core, name: string, ...args: number[]): Promise<Measured> =>
  jsonOf(...onCore(core, process.execPath, [...CLIENT_FLAGS, program(name), ...args.map(String)]))

async function use(
  started: Promise<Running>,
  work: (server: Running) => Promise<Measured>,
): Promise<Measured> {
  const server = await started
  try {
    return await work(server)
  } finally {
    await endProgram(server)
  }
}

const served = (core: Core, work: (server: Running) => Promise<Measured>): Promise<Measured> =>
  use(startServer('mintlake', { tokens: 1_000, ticksPerSecond: 0, body: 'page' }, core), work)

/** Seconds before a measurement and of it: under such a load a server compiles for some 20 s, and then stays as it is. */
const secondsOf = ({ small }: RunOptions): [number, number] => (small ? [0.3, 0.3] : [25, 15])
const call =
  (options: RunOptions) =>
  ({ port }: Running): Promise<Measured> =>
    run('any', 'clients/one-caller.ts', port, ...secondsOf(options))
const alone = (options: RunOptions) => served('any', call(options))

const sqlite = (options: RunOptions) =>
  inFolder((folder) => use(startPeerStore('sqlite', folder, 'any'), call(options)))

const pages = (besideSubmissions: boolean) => (options: RunOptions) =>
  served(0, async ({ port }) => {
    const [warm, seconds] = secondsOf(options)
    // Both runs begin alike: with submissions as fast as they are taken, so that their code is compiled.
    await run(1, 'clients/submitters.ts', port, CALLERS, warm / 10)
    const [measured] = await Promise.all([
      run(1, 'clients/page-readers.ts', port, warm, seconds),
      besideSubmissions ? run(1, 'clients/submitters.ts', port, CALLERS, warm + seconds, EVERY_MS) : null,
    ])
    return measured
  })

const BESIDE = 'pages beside 200 submissions a second'
const QUIET = 'pages with none'
const of = 'one caller'
const SQLITE = 'better-sqlite3 behind HTTP, one unchecked row'

export const question: Question = {
  name: 'caller',
  title: 'one caller, and readers beside callers',
  rounds: 3,
  onDemand: [SQLITE],
  candidates: { [of]: alone, [SQLITE]: sqlite, [BESIDE]: pages(true), [QUIET]: pages(false) },
  comparisons: [
    { title: 'one caller: p50', metric: 'submitP50Ms', of, against: SQLITE, unit: 'ms', better: 'lower' },
    { title: 'one caller: p99', metric: 'submitP99Ms', of, against: SQLITE, unit: 'ms', better: 'lower' },
    {
      title: 'one caller: p50 beyond a plain request',
      metric: 'syncsBeyondRead',
      of,
      unit: 'fdatasyncs',
      gate: 2,
      better: 'lower',
    },
    {
      title: 'one caller: p99 in p99s of write + fdatasync',
      metric: 'p99InSyncs',
      of,
      unit: '×',
      gate: 3,
      better: 'lower',
    },
    {
      title: 'a page: p99',
      metric: 'p99Ms',
      of: BESIDE,
      against: QUIET,
      unit: 'ms',
      gate: 1.1,
      better: 'lower',
    },
  ],
  prepare({ small }) {
    if (!small) installPeerStores()
  },
}
