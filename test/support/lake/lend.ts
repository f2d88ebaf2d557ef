// Lends lake processes to servers and stores in the process of the tests. One that was closed in order goes to the next server; to
// the server before, it has ended. One that is killed or fails ends as any other.
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { LAKE_PROCESS_ARENAS, LAKE_PROCESS_HEAP_MB } from '../../../src/store/limits.ts'
import type { Discard } from './host.child.ts'

const PROGRAM = fileURLToPath(new URL('host.child.ts', import.meta.url))
const idle: ChildProcess[] = []

const forkHost = (): ChildProcess =>
  fork(PROGRAM, {
    execArgv: ['--no-warnings', `--max-old-space-size=${LAKE_PROCESS_HEAP_MB}`],
    env: { MALLOC_ARENA_MAX: String(LAKE_PROCESS_ARENAS), ...process.env },
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })

function markIdle(child: ChildProcess): void {
  child.removeAllListeners('message')
  // What its server waits for.
  child.emit('exit', 0, null)
  child.removeAllListeners('error')
  child.on('error', () => {})
  child.unref()
  child.channel?.unref()
  idle.push(child)
}

/** A process that waits for the options of a lake; see src/store/process/fork.ts. */
export function lendLakeProcess(): ChildProcess {
  const child = idle.pop()
  if (child !== undefined && !child.connected) return lendLakeProcess()
  const lent = child ?? forkHost().on('error', () => {})
  lent.ref()
  lent.channel?.ref()
  lent.on('message', (message: object) => {
    if ('idle' in message) markIdle(lent)
  })
  return lent
}

/** The lake that is open in a process writes no more rows, since its folder is about to be removed: they would cost as much as its start. */
export function discardRows(lakeProcess: ChildProcess): void {
  const message: Discard = { discard: true }
  if (lakeProcess.connected) lakeProcess.send(message)
}

/** Opens something with a lent process, which ends if that fails. */
export async function withLakeProcess<T>(open: (lakeProcess: ChildProcess) => Promise<T>): Promise<T> {
  const lakeProcess = lendLakeProcess()
  try {
    return await open(lakeProcess)
  } catch (error) {
    lakeProcess.kill('SIGKILL')
    throw error
  }
}
