// The lake process: the only one that writes the lake and runs DuckDB on it. It has low priority and is separate from the
// server, so that its failures, pauses and memory do not affect the server. It ends with the server.
import { existsSync, readdirSync } from 'node:fs'
import { setPriority } from 'node:os'
import { ENDING_SIGNALS } from '../../lib/process/ending-signals.ts'
import { sendToParent } from '../../lib/process/parent.ts'
import { duckdb } from '../duckdb/duckdb.ts'
import { LAKE_PROCESS_NICENESS } from '../limits.ts'
import type { Crash, CrashPoint } from './crash-points.ts'
import { LakeService } from './lake-service.ts'
import type { FromLakeProcess, LakeProcessOptions, Request } from './protocol.ts'

const EXIT_FAILED = 70
/** Linux lists the threads of a process there. */
const OWN_THREADS = '/proc/self/task'

const post = (message: FromLakeProcess): void => sendToParent(message)

/** Kills the process at the point that a test has chosen. */
function failpoint(crash: Crash | null, point: CrashPoint): void {
  if (point !== crash?.at) return
  if (crash.withServer) process.kill(process.ppid, 'SIGKILL')
  process.kill(process.pid, 'SIGKILL')
}

/**
 * Lowers the priority of every thread, since Linux keeps it by thread; later threads inherit it. Done once the lake is open:
 * the server waits for that, and for nothing afterwards.
 */
function lowerPriority(): void {
  const threads = existsSync(OWN_THREADS) ? readdirSync(OWN_THREADS).map(Number) : [0]
  for (const thread of threads) {
    try {
      setPriority(thread, LAKE_PROCESS_NICENESS)
    } catch {
      // The thread has ended meanwhile.
    }
  }
}

let service: LakeService | null = null

// The first message is the options, which the server passes on: the two are one version of one program.
process.once('message', (options: LakeProcessOptions) => {
  const started = new LakeService({
    options,
    failpoint: (point) => failpoint(options.crash, point),
    post,
    log: (line) => post({ log: line }),
    onTrouble: (trouble) => post({ trouble }),
    onOpened: lowerPriority,
    onClosed: () => process.disconnect(),
    exit: () => process.exit(EXIT_FAILED),
  })
  service = started
  process.on('message', (request: Request) => void started.answer(request))
})

// The server has ended. A thread of DuckDB may still be working, so only SIGKILL is certain to end the process. Nothing that
// was acknowledged is lost: it is in the log.
process.once('disconnect', () => {
  if (!service?.isClosed) process.kill(process.pid, 'SIGKILL')
})
// Until the options come there is time to load what the lake needs anyway.
try {
  void duckdb.DuckDBInstance
} catch {
  // The server is told when the lake is opened.
}
// A terminal sends its signals to both processes. The server decides when this one ends.
for (const signal of ENDING_SIGNALS) process.on(signal, () => {})
