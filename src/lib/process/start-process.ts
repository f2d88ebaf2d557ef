// Starts programs in processes of their own.
import { type ChildProcess, fork } from 'node:child_process'

export interface StartOptions {
  /** JavaScript's heap in it. */
  heapMb: number
  /**
   * For work that strangers have asked for: the kernel holds the whole process to so much memory, where it can. It has none of the
   * settings of this process, which hold keys, and nothing that it prints is shown.
   */
  confinedToMb?: number
}

const KILOBYTES_PER_MB = 1_024
/** Holds the memory of a program to `$1` kB, where the system can. */
const WITHIN_MEMORY = 'ulimit -d "$1" 2>/dev/null; shift; exec "$@"'

/** Throws some of the errors of a process that cannot be started; others arrive as an event. Messages may hold bytes. */
export function startProcess(program: string, { heapMb, confinedToMb }: StartOptions): ChildProcess {
  const flags = ['--no-warnings', '--v8-pool-size=1', `--max-old-space-size=${heapMb}`]
  if (confinedToMb === undefined)
    return fork(program, [], {
      execArgv: flags,
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
  const { PATH, NODE_COMPILE_CACHE, NODE_OPTIONS } = process.env
  const limitKb = `${confinedToMb * KILOBYTES_PER_MB}`
  return fork(program, [], {
    execPath: '/bin/sh',
    execArgv: ['-c', WITHIN_MEMORY, 'sh', limitKb, process.execPath, ...flags],
    // Two of libuv's threads are enough for DuckDB.
    env: { PATH, NODE_COMPILE_CACHE, NODE_OPTIONS, UV_THREADPOOL_SIZE: '2' },
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
}
