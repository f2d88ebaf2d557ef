// What recording costs in all at 20 000 trades a second: the CPU of the server and of everything that it starts, merges included, with
// recording and without, one after the other with the same pushes.
import {
  cpuSeconds,
  cpuSecondsOfAll,
  lessIsBetter,
  type Measured,
  type Question,
  type RunOptions,
} from '../../harness.ts'
import { endProgram, pushRecorded, startServer } from '../../load.ts'

const TRADES_PER_SECOND = 20_000

interface Share {
  /** Percent of a core. */
  server: number
  all: number
}

async function measure(isRecorded: boolean, { small }: RunOptions): Promise<Share> {
  const [tokens, rate, seconds] = small ? [500, 1_000, 1] : [100_000, TRADES_PER_SECOND, 60]
  const running = await startServer('mintlake', {
    ...{ market: 'empty', tokens, ticksPerSecond: 0, body: 'page', record: isRecorded },
  })
  try {
    const load = { perPost: 200, rate, tokens }
    await pushRecorded(running.port, load, small ? 0.5 : 10)
    const before = [cpuSeconds(running.pid), cpuSecondsOfAll(running.pid)]
    const { accepted } = await pushRecorded(running.port, load, seconds)
    const share = (after: number, then: number): number => (100 * (after - then)) / seconds
    if (accepted < 0.98 * rate * seconds) throw new Error(`only ${accepted} trades were taken`)
    const answer = await fetch(`http://127.0.0.1:${running.port}/health`)
    const { recording } = (await answer.json()) as { recording: { journal: { lost: number } | null } }
    if ((recording.journal?.lost ?? 0) > 0) throw new Error('the disk did not keep up')
    return {
      server: share(cpuSeconds(running.pid), before[0]),
      all: share(cpuSecondsOfAll(running.pid), before[1]),
    }
  } finally {
    await endProgram(running)
  }
}

async function run(options: RunOptions): Promise<Measured> {
  const without = await measure(false, options)
  const recorded = await measure(true, options)
  const floor = (pct: number): number => Math.max(0.01, pct)
  return {
    metrics: {
      allPct: floor(recorded.all - without.all),
      serverPct: floor(recorded.server - without.server),
      othersPct: floor(recorded.all - recorded.server - (without.all - without.server)),
      serverWithoutPct: without.server,
    },
    checksum: `${TRADES_PER_SECOND}`,
  }
}

export const question: Question = {
  name: 'recording-in-all',
  title: 'recording of market events: everything that it costs',
  rounds: 1,
  candidates: { ours: run },
  comparisons: [
    lessIsBetter('recording 20 000 trades/s: all processes', 'allPct', '% of a core', {
      gate: 30,
      stretch: 20,
    }),
    lessIsBetter('recording 20 000 trades/s: the server process', 'serverPct', '% of a core'),
  ],
}
