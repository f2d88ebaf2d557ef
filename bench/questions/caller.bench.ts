// How long a single caller waits for a submission beyond a plain request and a sync of the disk, and whether page readers
// notice 200 submissions a second.
import { fileURLToPath } from 'node:url'
import { jsonOf, type Measured, onCore, type Question, type RunOptions } from '../harness.ts'
import { endProgram, type Running, startServer } from '../load.ts'

const CALLERS = 20
const EVERY_MS = 100
const program = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url))
const run = (name: string, ...args: number[]): Promise<Measured> =>
  jsonOf(...onCore(1, process.execPath, ['--no-warnings', program(name), ...args.map(String)]))

async function served(work: (server: Running) => Promise<Measured>): Promise<Measured> {
  const server = await startServer('mintlake', { tokens: 1_000, ticksPerSecond: 0, body: 'page' })
  try {
    return await work(server)
  } finally {
    await endProgram(server)
  }
}

const secondsOf = ({ small }: RunOptions): number => (small ? 0.3 : 10)
const alone = (options: RunOptions) =>
  served(({ port }) => run('clients/one-caller.ts', port, secondsOf(options)))

const pages = (besideSubmissions: boolean) => (options: RunOptions) =>
  served(async ({ port }) => {
    const seconds = secondsOf(options)
    const [measured] = await Promise.all([
      run('clients/page-readers.ts', port, seconds),
      besideSubmissions ? run('clients/submitters.ts', port, CALLERS, seconds, EVERY_MS) : null,
    ])
    return measured
  })

const BESIDE = 'pages beside 200 submissions a second'
const QUIET = 'pages with none'
const of = 'one caller'

export const question: Question = {
  name: 'caller',
  title: 'one caller, and readers beside callers',
  rounds: 3,
  candidates: { [of]: alone, [BESIDE]: pages(true), [QUIET]: pages(false) },
  comparisons: [
    { title: 'one caller: p50', metric: 'submitP50Ms', of, unit: 'ms', better: 'lower' },
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
}
