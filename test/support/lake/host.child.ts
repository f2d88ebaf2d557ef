// The lake process of tests that start one server after another: what src/store/process/main.ts runs, in a process that goes on
// when its lake is closed and opens the next one. To load Node, DuckDB and the modules is half of what a server's start costs.
import { sendToParent } from '../../../src/lib/process/parent.ts'
import { reopenScratchDatabases } from '../../../src/store/duckdb/scratch-database.ts'
import { LakeService } from '../../../src/store/process/lake-service.ts'
import type { LakeProcessOptions, Request } from '../../../src/store/process/protocol.ts'

const EXIT_FAILED = 70
let service: LakeService | null = null

function open(options: LakeProcessOptions): LakeService {
  reopenScratchDatabases()
  return new LakeService({
    options,
    failpoint: () => {},
    post: sendToParent,
    log: (line) => sendToParent({ log: line }),
    onTrouble: (trouble) => sendToParent({ trouble }),
    onOpened: () => {},
    onClosed: () => {
      service = null
      sendToParent({ idle: true })
    },
    exit: () => process.exit(EXIT_FAILED),
  })
}

process.on('message', (message: LakeProcessOptions | Request) => {
  if ('kind' in message) void service?.answer(message)
  else service = open(message)
})
// The process of the tests has ended.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
