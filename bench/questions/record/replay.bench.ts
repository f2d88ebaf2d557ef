// How fast a recorded lake is replayed: read from Parquet in order, and applied to a market as a server does; compared with applying
// the same trades from memory.
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Market } from '../../../src/market/market.ts'
import { RecordedTrades } from '../../datasets/recorded-trades.ts'
import { jsonOf, type Measured, type Question, type RunOptions, serverArgs, sha } from '../../harness.ts'

const programOf = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url))
const dataDirOf = ({ small }: RunOptions): string =>
  join(tmpdir(), `mintlake-bench-replay-${small ? 'small' : 'normal'}`)
const sizesOf = ({ small }: RunOptions) =>
  small ? { tokens: 500, trades: 5_000 } : { tokens: 100_000, trades: 1_000_000 }
const START_MS = 1_772_000_000_000
const DAY_MS = 86_400_000

function recordLake(options: RunOptions): void {
  const { tokens, trades } = sizesOf(options)
  const dataDir = dataDirOf(options)
  mkdirSync(dataDir, { recursive: true })
  const { status } = spawnSync(
    process.execPath,
    ['--no-warnings', programOf('datasets/recorded-day.ts'), dataDir, `${tokens}`, `${trades}`, 'lake'],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  if (status !== 0) throw new Error('the lake could not be recorded')
}

async function replay(options: RunOptions): Promise<Measured> {
  const args = [...serverArgs(), programOf('servers/lake-replay.ts'), dataDirOf(options)]
  const { events, eventsPerSecond, peakMebibytes, pageBytes } = await jsonOf<Record<string, number>>(
    process.execPath,
    args,
  )
  const { tokens, trades } = sizesOf(options)
  if (events !== tokens + trades + 2) throw new Error(`${events} events were replayed`)
  return { metrics: { eventsPerSecond, peakMebibytes }, checksum: `${events} ${pageBytes}` }
}

function applyFromMemory(options: RunOptions): Measured {
  const { tokens, trades } = sizesOf(options)
  const market = new Market({ tokensMax: tokens })
  market.apply({ type: 'solPrice', ts: START_MS, usd: 150, source: 'setting' }, START_MS)
  const source = new RecordedTrades(tokens)
  const made = Array.from({ length: trades }, (_, count) =>
    source.next(START_MS + Math.floor((count / trades) * DAY_MS)),
  )
  const beganMs = performance.now()
  for (const trade of made) market.apply(trade, trade.ts)
  const eventsPerSecond = (trades * 1_000) / (performance.now() - beganMs)
  const page = market.page({ tab: 'all', sort: 'hot', order: 'desc', limit: 100, offset: 0 })
  return { metrics: { eventsPerSecond }, checksum: sha(page.ndjson) }
}

const MEMORY = 'the engine alone, from memory'
export const question: Question = {
  name: 'replay',
  title: 'replay of a recorded lake',
  rounds: 3,
  candidates: { ours: replay, [MEMORY]: applyFromMemory },
  comparisons: [
    {
      ...{ title: 'replay of a lake, as fast as possible', metric: 'eventsPerSecond', against: MEMORY },
      ...{ unit: 'events/s', gate: 0.2, stretch: 0.4, better: 'higher' },
    },
    { title: 'replay: memory at most', metric: 'peakMebibytes', unit: 'MiB', better: 'lower' },
  ],
  prepare: recordLake,
  cleanUp: (options) => rmSync(dataDirOf(options), { recursive: true, force: true }),
}
