// The console: frames and CPU of its page in Chromium with 5 000 rows at 2 000 trades a second, half of them on the hundred
// hottest tokens, and what fifty open consoles cost the server at that rate.
import { fileURLToPath } from 'node:url'
import { measurePage } from '../../clients/console-page.ts'
import type { Measured, Question, RunOptions } from '../../harness.ts'
import { jsonOf, onCore } from '../../harness.ts'
import { endProgram, type Running, startServer } from '../../load.ts'

const CLIENTS = fileURLToPath(new URL('../../clients/consoles.ts', import.meta.url))
const CONSOLES = 50
const PAGE = 'a page in Chromium'
const FIFTY = `${CONSOLES} consoles`

const sizes = ({ small }: RunOptions) =>
  small
    ? // A window is sent once a second.
      { tokens: 500, ticksPerSecond: 200, seconds: 2 }
    : { tokens: 5_000, ticksPerSecond: 2_000, seconds: 5 }

async function served(
  options: RunOptions,
  measure: (server: Running, seconds: number) => Promise<Measured>,
): Promise<Measured> {
  const { tokens, ticksPerSecond, seconds } = sizes(options)
  const server = await startServer('mintlake', { tokens, ticksPerSecond, body: 'page' })
  try {
    return await measure(server, seconds)
  } finally {
    await endProgram(server)
  }
}

const page = (options: RunOptions): Promise<Measured> =>
  served(options, async ({ port }, seconds) => ({
    metrics: await measurePage(`http://127.0.0.1:${port}/`, seconds),
    checksum: 'a page',
  }))

const consoles =
  (count: number) =>
  (options: RunOptions): Promise<Measured> =>
    served(options, async ({ port, pid }, seconds) => {
      const args = ['--no-warnings', CLIENTS, ...[port, count, seconds, pid].map(String)]
      const { cpuShare, bytesPerSecond, firstBytes } = await jsonOf<Record<string, number>>(
        ...onCore(1, process.execPath, args),
      )
      if (count > 0 && bytesPerSecond === 0) throw new Error('nothing was sent to the consoles')
      return {
        metrics: {
          cpuShare,
          ...(count > 0 && { kbPerSecondEach: bytesPerSecond / 1_000 / count, firstKb: firstBytes / 1_000 }),
        },
        checksum: `${count} consoles`,
      }
    })

export const question: Question = {
  name: 'console',
  title: 'the console, and what it costs the server',
  rounds: 3,
  onDemand: [PAGE],
  candidates: { [PAGE]: page, [FIFTY]: consoles(CONSOLES), 'no console': consoles(0) },
  comparisons: [
    {
      title: 'console, 5 000 rows, 2 000 trades/s: CPU of the page',
      metric: 'pageShare',
      of: PAGE,
      unit: 'cores',
      gate: 0.3,
      better: 'lower',
    },
    {
      title: 'console: CPU of all of Chromium',
      metric: 'browserShare',
      of: PAGE,
      unit: 'cores',
      better: 'lower',
    },
    { title: 'console: frames, p99', metric: 'frameP99Ms', of: PAGE, unit: 'ms', better: 'lower' },
    {
      title: 'console: longest frame',
      metric: 'frameMaxMs',
      of: PAGE,
      unit: 'ms',
      gate: 50,
      better: 'lower',
    },
    {
      title: 'console, scrolled at 2 500 px/s: frames, p99',
      metric: 'scrollP99Ms',
      of: PAGE,
      unit: 'ms',
      better: 'lower',
    },
    {
      title: 'console, scrolled at 2 500 px/s: longest frame',
      metric: 'scrollMaxMs',
      of: PAGE,
      unit: 'ms',
      gate: 50,
      better: 'lower',
    },
    {
      title: 'console: first rows after the address was opened',
      metric: 'firstRowMs',
      of: PAGE,
      unit: 'ms',
      gate: 1_000,
      better: 'lower',
    },
    {
      title: `${CONSOLES} open consoles at 2 000 trades/s: CPU of the server`,
      metric: 'cpuShare',
      of: FIFTY,
      against: 'no console',
      unit: 'cores',
      better: 'lower',
    },
    {
      title: 'a console: the first rows that it is sent',
      metric: 'firstKb',
      of: FIFTY,
      unit: 'kB',
      gate: 100,
      better: 'lower',
    },
    {
      title: 'a console at 2 000 trades/s: what it is sent',
      metric: 'kbPerSecondEach',
      of: FIFTY,
      unit: 'kB/s',
      better: 'lower',
    },
  ],
}
