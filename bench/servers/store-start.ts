// node bench/servers/store-start.ts FOLDER
// Opens a store and prints one line of JSON: the time until it answers and takes commits, the time until the lake has what
// the log had, and the peak memory of both processes.
import { readFileSync } from 'node:fs'
import { systemClock } from '../../src/lib/clock.ts'
import { openStore } from '../../src/store/store.ts'
import { mergeLog, peakRssBytes } from '../harness.ts'

const MEBIBYTE = 1_048_576
const started = performance.now()
const store = await openStore({
  dataDir: process.argv[2],
  lakeFlushMs: 0,
  clock: systemClock,
  log: mergeLog(),
})
const openMs = performance.now() - started
const openPeakMebibytes = peakRssBytes() / MEBIBYTE
await store.caughtUp
const caughtUpMs = performance.now() - started
const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ')
const peakOf = (pid: string): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024
console.log(
  JSON.stringify({
    openMs,
    caughtUpMs,
    openPeakMebibytes,
    serverPeakMebibytes: peakRssBytes() / MEBIBYTE,
    lakePeakMebibytes: children.filter(Boolean).reduce((sum, pid) => sum + peakOf(pid), 0),
  }),
)
await store.close()
