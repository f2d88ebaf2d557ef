// A process that commits until it is killed and seals segments now and then. Prints LSN and id of each acknowledged commit.
import { openLog } from '../../../src/store/log/log.ts'
import { NOON_MS, quietLog } from '../support.ts'
import { clockAt, rowOf } from './rows.ts'

const [folder, callers, run] = process.argv.slice(2)
const SEAL_EVERY = 500

const log = await openLog(
  {
    folder,
    logId: 'killed',
    clock: clockAt(() => NOON_MS),
    log: quietLog,
    flushed: { lsn: 0, knownAtMs: 0 },
    segmentBytes: 100_000,
  },
  () => undefined,
)

async function caller(name: number): Promise<never> {
  for (let commit = 0; ; commit++) {
    const id = `${run}-${name}-${commit}`
    const { lsn } = await log.append([rowOf(id)])
    process.stdout.write(`${lsn} ${id}\n`)
    if (name === 0 && commit % SEAL_EVERY === 0) await log.seal()
  }
}

await Promise.all(Array.from({ length: Number(callers) }, (_, name) => caller(name)))
