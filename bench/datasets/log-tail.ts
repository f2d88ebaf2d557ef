// In: a data folder and how many submissions (`node bench/datasets/log-tail.ts FOLDER COMMITS`). Out: that many in its log, none of
// them in its lake: the process kills itself, as a power cut would. What a start then finds is what is asked.
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
