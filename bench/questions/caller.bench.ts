// How long a single caller waits for a submission beyond a plain request and a sync of the disk, and whether page readers
// notice submissions. One caller's processes run on any core: pinned, the bare sync would have a core to itself, and
// the submission that is compared with it would share the other with the lake process and the kernel's workers.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { registerAgent, submitRequest } from '../clients/http-connection.ts'
import {
  type Core,
  compiled,
  inFolder,
  jsonOf,
  type Measured,
  onCore,
  type Question,
  type RunOptions,
} from '../harness.ts'
import { endProgram, type Running, startPeerStore, startServer } from '../load.ts'
import { installPeerStores } from '../servers/peer-stores.ts'

const TURNS = new URL('../limits/turns.c', import.meta.url)
const TOKENS = 1_000
const PAGE = '/api/v1/market?format=ndjson&limit=100'
const [READERS, READ_EVERY_MS] = [8, 20]
const CALLERS = 20
/** Beside 400 pages a second: 13 submissions a second, the one in thirty that the limits of an agent allow, and 200. */
const [SOME_EVERY_MS, MANY_EVERY_MS] = [1_500, 100]
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
  use(startServer('mintlake', { tokens: TOKENS, ticksPerSecond: 0, body: 'page' }, core), work)

/** Seconds before a measurement and of it: under such a load a server compiles for some 20 s, and then stays as it is. */
const secondsOf = ({ small }: RunOptions): [number, number] => (small ? [0.3, 0.3] : [25, 15])
const call =
  (options: RunOptions) =>
  ({ port }: Running): Promise<Measured> =>
    run('any', 'clients/one-caller.ts', port, ...secondsOf(options))
const alone = (options: RunOptions) => served('any', call(options))

const sqlite = (options: RunOptions) =>
  inFolder((folder) => use(startPeerStore('sqlite', folder, 'any'), call(options)))

/** What the callers send: each has a key, and submits for one token after another. */
async function writeSubmissions(folder: string, port: number): Promise<string> {
  const keys = await Promise.all(
    Array.from({ length: CALLERS }, (_, index) => registerAgent(port, `caller ${index}`)),
  )
  const requests = Array.from({ length: TOKENS }, (_, index) =>
    submitRequest(keys[index % CALLERS], mintOfSymbol(`token ${index}`)),
  )
  const file = join(folder, 'submissions')
  writeFileSync(file, requests.map((request) => `${request}\0`).join(''))
  return file
}

/** Milliseconds: warming up, a turn, and the pause before the turn without submissions, in which the last ones are flushed. */
const turnsOf = ({ small }: RunOptions) =>
  small
    ? { warmMs: 300, cycles: 1, turnMs: 1_000, pauseMs: 100 }
    : { warmMs: 25_000, cycles: 2, turnMs: 12_000, pauseMs: 11_000 }

const pages = (everyMs: number) => (options: RunOptions) =>
  served(0, ({ port }) =>
    inFolder(async (folder) => {
      // As fast as they are taken, so that the code of submissions is compiled.
      await run(1, 'clients/submitters.ts', port, CALLERS, options.small ? 0.1 : 2.5)
      const { warmMs, cycles, turnMs, pauseMs } = turnsOf(options)
      const file = await writeSubmissions(folder, port)
      const args = [
        port,
        PAGE,
        READERS,
        READ_EVERY_MS,
        file,
        CALLERS,
        everyMs,
        warmMs,
        cycles,
        turnMs,
        pauseMs,
      ]
      const { pages, ...metrics } = await jsonOf<Record<string, number>>(
        ...onCore(1, compiled(TURNS), args.map(String)),
      )
      const p99Ratio = metrics.p99WithMs / metrics.p99WithoutMs
      return { metrics: { ...metrics, p99Ratio }, checksum: `${pages > 0}` }
    }),
  )

const BESIDE_SOME = 'pages in turns with and without 13 submissions a second'
const BESIDE_MANY = 'pages in turns with and without 200 submissions a second'
const of = 'one caller'
const SQLITE = 'better-sqlite3 behind HTTP, one unchecked row'

const besideRows = (of: string, perSecond: number): Question['comparisons'] => [
  {
    title: `a page beside ${perSecond} submissions/s: p99`,
    metric: 'p99WithMs',
    of,
    unit: 'ms',
    better: 'lower',
  },
  {
    title: `a page beside ${perSecond} submissions/s: p99 in p99s without`,
    metric: 'p99Ratio',
    of,
    unit: '×',
    gate: 1.1,
    better: 'lower',
  },
]

export const question: Question = {
  name: 'caller',
  title: 'one caller, and readers beside callers',
  rounds: 3,
  onDemand: [SQLITE],
  candidates: {
    [of]: alone,
    [SQLITE]: sqlite,
    [BESIDE_SOME]: pages(SOME_EVERY_MS),
    [BESIDE_MANY]: pages(MANY_EVERY_MS),
  },
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
    ...besideRows(BESIDE_SOME, 13),
    ...besideRows(BESIDE_MANY, 200),
  ],
  prepare({ small }) {
    if (!small) installPeerStores()
    compiled(TURNS)
  },
}
