// A process that commits submissions in a given mode, perhaps up to a crash point. Writes acknowledged ids to standard output and
// to the file `acknowledged`, which has them even when the pipe was not drained.

import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setImmediate as turn } from 'node:timers/promises'
import type { StoreError } from '../../../src/store/errors.ts'
import { MERGE_FILES_MIN } from '../../../src/store/limits.ts'
import type { CrashPoint } from '../../../src/store/process/crash-points.ts'
import { KEEP_FOR_EVER } from '../../../src/store/retention-setting.ts'
import { analysisIdAt, NOON_MS, openTestStore, submission } from '../support.ts'

const [folder, mode, crashAt] = process.argv.slice(2)
const DAY_MS = 24 * 3_600_000
const CALLERS = 200
const UNSEEN_TIMEOUT_MS = 100

const acknowledged = openSync(join(folder, 'acknowledged'), 'a')
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const store = await openTestStore(folder, {
  ...(crashAt !== undefined && { crash: { at: crashAt as CrashPoint, withServer: true } }),
  lakeFlushMs: mode === 'storm' ? 50 : 0,
  lakeTidy: { everyMs: mode === 'storm' ? 70 : 0, graceMs: 0 },
  retain: { ...KEEP_FOR_EVER, days: mode === 'retain' ? { training: 0 } : {}, unaskedPct: 100 },
  ...(mode === 'unseen' && { commitTimeoutMs: UNSEEN_TIMEOUT_MS }),
})

async function commitFor(agent: string, id: string, atMs: number): Promise<void> {
  await store.commit(submission(id, { agent_id: agent, submitted_at: atMs }))
  writeSync(acknowledged, `${id}\n`)
  say(id)
}

/** Each caller submits as fast as it is answered. */
async function storm(caller: number): Promise<never> {
  for (let i = 0; ; i++) {
    await commitFor(`agent-${caller}`, `an_${process.pid}_${caller}_${i}`, NOON_MS - (i % 2) * DAY_MS)
  }
}

/** One submission for each line of standard input; says what came of it. */
async function onDemand(): Promise<void> {
  say('ready')
  for await (const id of createInterface({ input: process.stdin })) {
    try {
      await commitFor('agent-1', id, NOON_MS)
    } catch (error) {
      say(`refused ${id} ${(error as { code?: string }).code}`)
    }
  }
  await store.close()
}

async function flush(): Promise<void> {
  for (let i = 0; i < 6; i++) await commitFor('agent-1', `an_${process.pid}_${i}`, NOON_MS - (i % 3) * DAY_MS)
  await store.flushLake()
}

/** A new file; as many as are merged, with those that are there, where a merge is to be died in. Then merge and removal. */
async function tidy(): Promise<void> {
  const files = async () => (await store.status()).lake.find(({ table }) => table === 'training')!.files
  const filesMin = crashAt.startsWith('merge') ? MERGE_FILES_MIN : 0
  for (let i = 0, there = await files(); i === 0 || there < filesMin; i++, there = await files()) {
    await commitFor('agent-1', `an_${process.pid}_${i}`, NOON_MS)
    await store.flushLake()
  }
  await store.compactLake()
}

/** Rows of three days; those of the days before today leave. */
async function retain(): Promise<void> {
  await flush()
  await store.compactLake()
}

/** Does nothing for longer than a commit may take: its end, though it comes, is seen too late. */
function miss(): void {
  const untilMs = performance.now() + 2 * UNSEEN_TIMEOUT_MS
  while (performance.now() < untilMs);
}

/** Submits until the end of one is not seen in time, and on until another is acknowledged; then says so. */
async function unseen(): Promise<void> {
  const attempt = (id: string) => commitFor('agent-1', id, NOON_MS).catch((error: StoreError) => error)
  for (let i = 0; ; i++) {
    const id = analysisIdAt(NOON_MS + i)
    const attempted = attempt(id)
    // The log writes from the next turn of the loop on.
    await turn()
    await turn()
    miss()
    const refusal = await attempted
    if (refusal === undefined || !refusal.mayBeStored) continue
    for (let next = 0; (await attempt(`an_seen_${next}`)) !== undefined; next++) await turn()
    return say(`refused ${id} ${refusal.code} ${refusal.mayBeStored}`)
  }
}

if (mode === 'storm') await Promise.all(Array.from({ length: CALLERS }, (_, caller) => storm(caller)))
else if (mode === 'flush') await flush()
else if (mode === 'tidy') await tidy()
else if (mode === 'retain') await retain()
else if (mode === 'unseen') await unseen()
else await onDemand()
