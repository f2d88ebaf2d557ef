// Starts the lake process. It loads its modules, then waits for its options, so that a server can fork it before it loads its own.
import { type ChildProcess, fork } from 'node:child_process'
import { programPath } from '../../lib/process/program-path.ts'
import { LAKE_PROCESS_ARENAS, LAKE_PROCESS_HEAP_MB } from '../limits.ts'

const PROGRAM = programPath('./main', import.meta.url)

/** Throws where the process cannot be started. It ends when this process does. */
export function forkLakeProcess(): ChildProcess {
  const child = fork(PROGRAM, {
    execArgv: ['--no-warnings', `--max-old-space-size=${LAKE_PROCESS_HEAP_MB}`],
    // Other C libraries than glibc ignore the variable. A value set by the operator counts.
    env: { MALLOC_ARENA_MAX: String(LAKE_PROCESS_ARENAS), ...process.env },
    // Bars are sent as typed arrays. JSON would write them as text.
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  // Without a listener, the failure of a process that nobody uses yet would end this one.
  return child.on('error', () => {})
}
