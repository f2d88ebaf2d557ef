// The lake process of tests that start one server after another: what src/store/process/main.ts runs, in a process that goes on
// when its lake is closed and opens the next one. To load Node, DuckDB and the modules is half of what a server's start costs.
import { ENDING_SIGNALS } from '../../../src/lib/process/ending-signals.ts'
import { sendToParent } from '../../../src/lib/process/parent.ts'
import { TIMEFRAMES } from '../../../src/schema/timeframe.ts'
import { emptyAccount } from '../../../src/store/market-data/bar-counts.ts'
import { LakeService } from '../../../src/store/process/lake-service.ts'
import type { LakeProcessOptions, Request, Requests } from '../../../src/store/process/protocol.ts'

/** From the process of the tests: the folder of the lake goes when the lake is closed, so nothing more is written to it. */
export interface Discard {
  discard: true
}

const EXIT_FAILED = 70
/** More bars than any run has: none is missing. */
const ALL_BARS = TIMEFRAMES.map(() => Number.MAX_SAFE_INTEGER)
let service: LakeService | null = null
let isDiscarding = false

function open(options: LakeProcessOptions): LakeService {
  isDiscarding = false
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

type Written = Requests['flush' | 'events']['answer']

/** What a server is told whose rows are not written. Null: it asks for something else. */
function discard({ ask }: Request): Written | null {
  if ('throughEventNo' in ask) return { damage: [], eventNo: ask.throughEventNo, retainedFrom: 1 }
  if (!('throughLsn' in ask)) return null
  const bars = { ...emptyAccount(), closed: ALL_BARS, written: ALL_BARS }
  return { damage: [], deadRows: 0, bars, inLake: { bars: 0, profiles: 0 } }
}

function answer(request: Request): void {
  const discarded = isDiscarding ? discard(request) : null
  if (discarded === null) void service?.answer(request)
  else sendToParent({ id: request.id, ok: true, answer: discarded })
}

process.on('message', (message: LakeProcessOptions | Request | Discard) => {
  if ('discard' in message) isDiscarding = true
  else if ('kind' in message) answer(message)
  else service = open(message)
})
// The process of the tests has ended.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
for (const signal of ENDING_SIGNALS) process.on(signal, () => {})
