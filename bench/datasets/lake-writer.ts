// node bench/datasets/lake-writer.ts FOLDER ROWS [TOKENS AGENTS]
// Writes submissions into a lake through the store's own interface while it merges as a server does. Prints one line of
// JSON: rows a second and peak memory. It is a process of its own so that its memory can be measured.
import { openStore, type Store } from '../../src/store/store.ts'
import { mergeLog, peakRssBytes } from '../harness.ts'
import { type Crowd, ROWS_PER_SECOND, START_MS, type TrainingRows, trainingRows } from './training-rows.ts'

export interface Written {
  rows: number
  rowsPerSecond: number
  /** Peak of the process that writes. */
  peakBytes: number
  /** Peak of the process that merges. */
  mergePeakBytes: number
  merges: number
}

const COMMIT_ROWS = 2_048
const FLUSH_ROWS = 65_536
const COMMITS_AHEAD = 3
const PROGRESS_ROWS = 16 * FLUSH_ROWS
const HOUR_MS = 3_600_000
const log = mergeLog()

/** Commits rows, with a few batches waiting for the disk. */
async function commitAll(store: Store, source: TrainingRows, count: number): Promise<void> {
  const under = new Set<Promise<void>>()
  for (let done = 0; done < count; done += COMMIT_ROWS) {
    const commit = store.commit(
      Array.from({ length: Math.min(COMMIT_ROWS, count - done) }, () => ({
        table: 'training' as const,
        row: source.next(),
      })),
    )
    under.add(commit)
    void commit.finally(() => under.delete(commit)).catch(() => undefined)
    if (under.size >= COMMITS_AHEAD) await Promise.race(under)
  }
  await Promise.all(under)
}

const progress = (written: number, started: number): void =>
  console.error(`${written} rows in ${Math.round((performance.now() - started) / 1_000)} s`)

async function write(dataDir: string, rows: number, crowd?: Crowd): Promise<Written> {
  const source = trainingRows(1, crowd)
  let nowMs = START_MS
  let written = 0
  let merges = 0
  const clock = { now: () => nowMs, monotonicMs: () => nowMs }
  const store = await openStore({
    dataDir,
    lakeFlushMs: 0,
    lakeTidy: { everyMs: 0, graceMs: 60_000 },
    clock,
    log,
  })
  const started = performance.now()
  let tidying: Promise<void> | null = null
  let flushing: Promise<void> = Promise.resolve()
  const tidy = async (): Promise<void> => {
    merges += (await store.compactLake()).merged
    tidying = null
  }
  while (written < rows) {
    const count = Math.min(FLUSH_ROWS, rows - written)
    await commitAll(store, source, count)
    written += count
    nowMs = START_MS + Math.floor((written / ROWS_PER_SECOND) * 1_000)
    // The lake is written while the next rows are committed, as in a server.
    await flushing
    flushing = store.flushLake()
    tidying ??= tidy()
    if (written % PROGRESS_ROWS === 0) progress(written, started)
  }
  await flushing
  await tidying
  // Two hours later both dates are complete, and replaced files have expired.
  nowMs += 2 * HOUR_MS
  await tidy()
  nowMs += HOUR_MS
  await tidy()
  const seconds = (performance.now() - started) / 1_000
  await store.close()
  return {
    rowsPerSecond: rows / seconds,
    rows,
    peakBytes: peakRssBytes(),
    mergePeakBytes: log.mergePeakBytes,
    merges,
  }
}

const [folder, rows, tokens, agents] = process.argv.slice(2)
const crowd = tokens === undefined ? undefined : { tokens: Number(tokens), agents: Number(agents) }
console.log(JSON.stringify(await write(folder, Number(rows), crowd)))
