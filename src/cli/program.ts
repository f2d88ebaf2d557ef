// In: this process. Out: the command line of it carried out, its exit code set. The one file of the folder that touches
// `process`. Never returns before its output is written.
import { systemClock } from '../lib/clock.ts'
import { main } from './main.ts'
import { isPipeError, type Terminal } from './terminal.ts'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

const terminal: Terminal = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  isWatched: process.stderr.isTTY === true,
  clock: systemClock,
  onInterrupt(act) {
    for (const signal of SIGNALS) process.on(signal, act)
    return () => {
      for (const signal of SIGNALS) process.off(signal, act)
    }
  },
}

// A reader of the pipe that has enough is no fault: the next write is told of it.
process.stdout.on('error', (error) => {
  if (!isPipeError(error)) throw error
})

const code = await main(process.argv.slice(2), terminal)
process.exitCode = code
