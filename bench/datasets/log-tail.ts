// node bench/datasets/log-tail.ts FOLDER COMMITS
// Commits submissions to the log of a store and kills itself before any of them is flushed to the lake.
import { systemClock } from '../../src/lib/clock.ts'
import { openStore } from '../../src/store/store.ts'
import { mergeLog } from '../harness.ts'
import { commitOf, trainingRows } from './training-rows.ts'

const AT_ONCE = 1_024
const [dataDir, commits] = process.argv.slice(2)
const source = trainingRows(2, { tokens: 100_000, agents: 1_000 })
const store = await openStore({ dataDir, lakeFlushMs: 0, clock: systemClock, log: mergeLog() })
for (let left = Number(commits); left > 0; left -= AT_ONCE) {
  const count = Math.min(AT_ONCE, left)
  await Promise.all(Array.from({ length: count }, () => store.commit(commitOf(source.next()))))
}
process.kill(process.pid, 'SIGKILL')
