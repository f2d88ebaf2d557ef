// Environment that records a server's calls on its data folder, and lets syncs fail, hang or slow down (disk-shim.c); or the
// reason why this machine does not allow it.
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { type DiskCall, readCalls } from './disk-trace.ts'

const SOURCE = new URL('./disk-shim.c', import.meta.url).pathname
const PROBE = "const fs = require('node:fs'); fs.fsyncSync(fs.openSync(process.argv[1], 'w'))"

const work = mkdtempSync(join(tmpdir(), 'mintlake-shim-'))
// The processes that tests run in are ended, and have no exit of their own.
afterAll(() => rmSync(work, { recursive: true, force: true }))
const library = join(work, 'disk-shim.so')
let opened = 0

export interface WatchedDisk {
  /** Variables of the server's environment. */
  env: Record<string, string>
  /** What was called so far, in order, by every process that had the variables. */
  calls(): DiskCall[]
  /** From now on a sync of a path like `pattern` fails, or takes so many ms longer; `once`: the next one alone. A star
   *  stands for anything, slashes too. */
  disturb(how: 'fail' | number, times: 'once' | 'always', pattern: string): void
  /** Whether the sync that was to be disturbed once has come. */
  readonly isTaken: boolean
  /** Syncs that begin from now on are as ever. */
  calm(): void
}

/** Watches a folder that is there and empty. */
export function watchDisk(folder: string): WatchedDisk {
  const [trace, control] = ['trace', 'control'].map((name) => join(work, `${opened}.${name}`))
  opened++
  const root = realpathSync(folder)
  writeFileSync(trace, '')
  return {
    env: {
      LD_PRELOAD: library,
      DISK_FOLDER: root,
      DISK_TRACE: trace,
      DISK_CONTROL: control,
      // Calls that the kernel is handed in a queue pass no library.
      UV_USE_IO_URING: '0',
    },
    calls: () => readCalls(readFileSync(trace, 'utf8'), root),
    disturb(how, times, pattern) {
      // Whole or not there: it may be read at any moment.
      writeFileSync(`${control}.next`, `${how} ${times} ${pattern}\n`)
      renameSync(`${control}.next`, control)
    },
    get isTaken() {
      return !existsSync(control)
    },
    calm: () => rmSync(control, { force: true }),
  }
}

/** Whether the library can be compiled, and a sync of Node's is told. */
function whyNot(): string | null {
  if (process.platform !== 'linux') return 'libraries are loaded before libc on Linux alone'
  try {
    execFileSync('cc', ['-O2', '-Wall', '-shared', '-fPIC', '-o', library, SOURCE], { stdio: 'pipe' })
  } catch (error) {
    return `a library in C cannot be compiled: ${String((error as Error).message).split('\n')[0]}`
  }
  const folder = mkdtempSync(join(work, 'probe-'))
  const disk = watchDisk(folder)
  execFileSync(process.execPath, ['-e', PROBE, join(folder, 'file')], {
    env: { ...process.env, ...disk.env },
    stdio: 'ignore',
  })
  return disk.calls().some(({ word }) => word === 'sync') ? null : 'LD_PRELOAD has no effect here'
}

/** Why there is no such disk; null where there is. */
export const noWatchedDisk: string | null = whyNot()
