// Runs the command line in this process and sets its exit code. The only file of this folder that touches `process`.
import { systemClock } from '../lib/clock.ts'
import { ENDING_SIGNALS } from '../lib/process/ending-signals.ts'
import { TIMER_MS_MAX } from '../lib/time.ts'
import { main } from './main.ts'
import type { Terminal } from './terminal.ts'

const terminal: Terminal = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  isWatched: process.stderr.isTTY === true,
  clock: systemClock,
  onInterrupt(act) {
    for (const signal of ENDING_SIGNALS) process.on(signal, act)
    return () => {
      for (const signal of ENDING_SIGNALS) process.off(signal, act)
    }
  },
}

// A closed pipe, a full disk or a terminal that is gone: the write that fails, or the next one, rejects with it.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

// What a command waits for may be a wait of a feed, which keeps no process alive: the command does, until it is done.
const alive = setInterval(() => {}, TIMER_MS_MAX)
process.exitCode = await main(process.argv.slice(2), terminal)
clearInterval(alive)
