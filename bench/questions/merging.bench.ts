// Latency of durable submissions (64 callers, ten a second each) while eight files of the lake are merged, and without a merge.
import { systemClock } from '../../src/lib/clock.ts'
import { openStore } from '../../src/store/store.ts'
import type { Store } from '../../src/store/types.ts'
import { commitOf, trainingRows } from '../datasets/training-rows.ts'
import {
  forgetPeak,
  inFolder,
  type Measured,
  mergeLog,
  peakRssBytes,
  type Question,
  quantile,
  type RunOptions,
} from '../harness.ts'

const CALLERS = 64
const EVERY_MS = 100
const FILES = 8
const MEBIBYTE = 1_048_576
const COMMIT_ROWS = 1_000
const log = mergeLog()

const rowsOf = ({ small, full }: RunOptions): number => (small ? 800 : full ? 1_000_000 : 160_000)

const source = trainingRows()
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function fill(store: Store, rows: number): Promise<void> {
  for (let file = 0; file < FILES; file++) {
    for (let left = rows / FILES; left > 0; left -= COMMIT_ROWS) {
      const count = Math.min(left, COMMIT_ROWS)
      await store.commit(Array.from({ length: count }, () => ({ table: 'training', row: source.next() })))
    }
    await store.flushLake()
  }
}

/** Submits until `isOver`, and at least three times each. @returns how long each waited, ms, ascending. */
async function submitUntil(store: Store, isOver: () => boolean): Promise<number[]> {
  const waits: number[] = []
  const caller = async (index: number): Promise<void> => {
    await sleep((index / CALLERS) * EVERY_MS)
    for (let turn = 0; turn < 3 || !isOver(); turn++) {
      const started = performance.now()
      await store.commit(commitOf(source.next()))
      const waitedMs = performance.now() - started
      waits.push(waitedMs)
      await sleep(Math.max(0, EVERY_MS - waitedMs))
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, (_, index) => caller(index)))
  return waits.sort((a, b) => a - b)
}

async function run(options: RunOptions, isMerging: boolean, dataDir: string): Promise<Measured> {
  const store = await openStore({ dataDir, lakeFlushMs: 0, clock: systemClock, log })
  try {
    await fill(store, rowsOf(options))
    forgetPeak()
    let isOver = false
    const started = performance.now()
    const work = isMerging ? store.compactLake() : sleep(options.small ? 0 : 6_000)
    const ended = Promise.resolve(work).then(() => {
      isOver = true
      return performance.now() - started
    })
    const waits = await submitUntil(store, () => isOver)
    return {
      metrics: {
        p50Ms: quantile(waits, 0.5),
        p99Ms: quantile(waits, 0.99),
        workMs: await ended,
        // Both processes, as if they took the most at one time.
        peakMebibytes: (peakRssBytes() + log.mergePeakBytes) / MEBIBYTE,
      },
      checksum: `${waits.length > 0}`,
    }
  } finally {
    await store.close()
  }
}

const beside = 'nothing else is done'
const wait = { of: 'files are merged', against: beside, unit: 'ms', better: 'lower' } as const

export const question: Question = {
  name: 'merging',
  title: 'durable submissions while files are merged',
  rounds: 3,
  candidates: {
    'files are merged': (options) => inFolder((dataDir) => run(options, true, dataDir)),
    [beside]: (options) => inFolder((dataDir) => run(options, false, dataDir)),
  },
  comparisons: [
    { title: 'durable while files are merged: median', metric: 'p50Ms', ...wait },
    { title: 'durable while files are merged: p99', metric: 'p99Ms', gate: 2, ...wait },
    {
      title: 'eight files made one',
      metric: 'workMs',
      of: 'files are merged',
      unit: 'ms',
      better: 'lower',
    },
    {
      title: 'memory of server and merger while files are merged',
      metric: 'peakMebibytes',
      of: 'files are merged',
      against: beside,
      unit: 'MiB',
      better: 'lower',
    },
    {
      title: 'memory of server and merger while files are merged',
      metric: 'peakMebibytes',
      of: 'files are merged',
      unit: 'MiB',
      gate: 1_024,
      better: 'lower',
    },
  ],
}
