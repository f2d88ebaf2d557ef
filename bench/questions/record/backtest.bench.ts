// How fast a recorded market of 300 trades a second is played in steps of a second, to nobody and to an agent that submits ten times a
// minute. A day of it has 25.9 million events: the gate is a day in ten minutes.
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { jsonOf, type Measured, type Question, type RunOptions, serverArgs } from '../../harness.ts'

const programOf = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url))
const dataDirOf = ({ small }: RunOptions): string =>
  join(tmpdir(), `mintlake-bench-backtest-${small ? 'small' : 'normal'}`)
const TRADES_PER_SECOND = 300
const sizesOf = ({ small }: RunOptions) =>
  small ? { tokens: 500, seconds: 30 } : { tokens: 20_000, seconds: 1_800 }
const DAY_IN_TEN_MINUTES = (TRADES_PER_SECOND * 86_400) / 600

function recordLake(options: RunOptions): void {
  const { tokens, seconds } = sizesOf(options)
  const dataDir = dataDirOf(options)
  mkdirSync(dataDir, { recursive: true })
  const wanted = [dataDir, tokens, TRADES_PER_SECOND * seconds, 'lake', 1_000 * seconds].map(String)
  const program = programOf('datasets/recorded-day.ts')
  const { status } = spawnSync(process.execPath, ['--no-warnings', program, ...wanted], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status !== 0) throw new Error('the lake could not be recorded')
}

const playTo =
  (who: 'nobody' | 'agent') =>
  async (options: RunOptions): Promise<Measured> => {
    const args = [...serverArgs(), programOf('servers/backtest.ts'), dataDirOf(options), who]
    const { eventsPerSecond } = await jsonOf<Record<string, number>>(process.execPath, args)
    const { tokens, seconds } = sizesOf(options)
    return { metrics: { eventsPerSecond }, checksum: `${tokens} ${seconds}` }
  }

const AGENT = 'with an agent that submits ten times a minute'
export const question: Question = {
  name: 'backtest',
  title: 'a recorded market, played in steps to programs',
  rounds: 3,
  candidates: { ours: playTo('nobody'), [AGENT]: playTo('agent') },
  comparisons: [
    {
      ...{ title: 'backtest of 300 trades/s, without an agent', metric: 'eventsPerSecond', unit: 'events/s' },
      ...{ gate: DAY_IN_TEN_MINUTES, better: 'higher' },
    },
    {
      ...{ title: 'backtest of 300 trades/s', metric: 'eventsPerSecond', unit: 'events/s', better: 'higher' },
      against: AGENT,
    },
  ],
  prepare: recordLake,
  cleanUp: (options) => rmSync(dataDirOf(options), { recursive: true, force: true }),
}
