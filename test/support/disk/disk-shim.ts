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
import { type DiskCall, readCalls } from './disk-trace.ts'

const SOURCE = new URL('./disk-shim.c', import.meta.url).pathname
const PROBE = "const fs = require('node:fs'); fs.fsyncSync(fs.openSync(process.argv[1], 'w'))"

// For all files of tests of this process: it goes with the folder of the run.
const work = mkdtempSync(join(tmpdir(), 'mintlake-shim-'))
const library = join(work, 'disk-shim.so')
let opened = 0

export interface WatchedDisk {
  /** Variables of the server's environment. */
  env: Record<string, string>
  /** The calls so far of all processes with these variables, in order. */
  calls(): DiskCall[]
  /** From now on syncs of paths that match `pattern` fail or take this many ms longer; with `once` only the next one. A star
   *  matches anything, slashes included. */
  disturb(how: 'fail' | number, times: 'once' | 'always', pattern: string): void
  /** Whether the sync that was to be disturbed once has happened. */
  readonly isTaken: boolean
  /** Syncs that begin from now on work normally. */
  calm(): void
}

/** Watches a folder, which must exist and be empty. */
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
      // Calls queued with io_uring would bypass the library.
      UV_USE_IO_URING: '0',
    },
    calls: () => readCalls(readFileSync(trace, 'utf8'), root),
    disturb(how, times, pattern) {
      // Replaced atomically, as it can be read at any moment.
      writeFileSync(`${control}.next`, `${how} ${times} ${pattern}\n`)
      renameSync(`${control}.next`, control)
    },
    get isTaken() {
      return !existsSync(control)
    },
    calm: () => rmSync(control, { force: true }),
  }
}

/** Compiles the library and checks that it records a sync of Node. Returns the reason if it does not. */
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

/** Why disks cannot be watched here; null if they can. */
export const noWatchedDisk: string | null = whyNot()
