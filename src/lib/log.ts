// The log of a process: JSON for programs, or one line of text per entry for people. Callers must not pass secrets.
import type { DestinationStream, Logger } from 'pino'
import { lazyPackage } from './lazy-package.ts'

const { pino } = lazyPackage<typeof import('pino')>('pino')

export type Log = Logger

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

const WARNING = 40
const LEVELS: Readonly<Record<number, string>> = {
  20: 'debug: ',
  30: '',
  [WARNING]: 'warning: ',
  50: 'error: ',
  60: 'fatal: ',
}

/** Characters of lines that wait while what takes them is full, such as a disk; further lines are left out. */
const WAITING_CHARS_MAX = 1024 * 1024

/** Text on a terminal, JSON otherwise. @param level what is logged, and what is graver
 *  @param to standard error where standard output has what a command answers */
export function createLog(level: LogLevel, to: 'stdout' | 'stderr' = 'stdout'): Log {
  const destination = process[to].isTTY ? textStream(process[to]) : jsonStream(to === 'stdout' ? 1 : 2)
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination)
}

/** Lines that cannot be written are tried again with the next one, and how many were left out is told once they can: nothing ends because
 *  nobody can be told of it. */
function jsonStream(dest: number): DestinationStream {
  const stream = pino.destination({ dest, sync: true, maxLength: WAITING_CHARS_MAX })
  let leftOut = 0
  stream.on('error', () => {})
  // For a line for which there is no room nothing is tried: an empty one tries those that wait.
  let isTried = false
  stream.on('drop', (line: string) => {
    if (isTried) {
      leftOut++
      return
    }
    isTried = true
    stream.write('')
    stream.write(line)
    isTried = false
  })
  stream.on('drain', () => {
    if (leftOut === 0) return
    const msg = 'lines were left out while the log could not be written'
    const lines = leftOut
    stream.write(`${JSON.stringify({ level: WARNING, time: new Date(), lines, msg })}\n`)
    // Unless it was left out too.
    leftOut = leftOut === lines ? 0 : lines
  })
  return stream
}

/** Formats entries as `12:00:00 message key=value`. */
function textStream(stream: NodeJS.WriteStream): DestinationStream {
  return {
    write(line) {
      const { level, time, msg, err, ...fields } = JSON.parse(line)
      const details = Object.entries(fields).map(
        ([key, value]) => ` ${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
      )
      const fault = err === undefined ? '' : ` (${err.message})`
      // A bar may stand in the line.
      const start = stream.isTTY ? '\r\x1b[2K' : ''
      stream.write(`${start}${time.slice(11, 19)} ${LEVELS[level] ?? ''}${msg}${fault}${details.join('')}\n`)
    },
  }
}
