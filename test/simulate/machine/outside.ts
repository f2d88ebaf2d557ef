// What of the real machine is still needed once a simulated one is in its place. To be loaded before that.
import childProcess from 'node:child_process'
import { tmpdir } from 'node:os'

export const OUTSIDE = {
  fork: childProcess.fork,
  pid: process.pid,
  temporary: tmpdir(),
} as const
