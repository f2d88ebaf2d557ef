// Real processes are killed while they bring events to the lake: each event of the journal is in the lake once, as it was.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { RecordedEvent } from '../../../src/journal/event-batch.ts'
import type { MarketEvent } from '../../../src/schema/event.ts'
import { readFolderInfo } from '../../../src/store/data-folder/folder-info.ts'
import { journalFolder } from '../../../src/store/paths.ts'
import { CRASH_POINTS } from '../../../src/store/process/crash-points.ts'
import { verifyLake } from '../../../src/store/verify/verify.ts'
import { openTestJournal, tradeAt } from '../../journal/support.ts'
import { fewAndMany } from '../../support/cases.ts'
import { allEvents } from '../../support/lake/all-events.ts'
import { NOON_MS, openTestStore, removeFolder, temporaryFolder } from '../support.ts'

const CHILD = fileURLToPath(new URL('./recorder.child.ts', import.meta.url))
const SEALS_EACH = 12
const VICTIMS = ['server', 'lake process', 'both'] as const
const EVENT_POINTS = CRASH_POINTS.filter((point) => point.startsWith('events:'))

interface Child {
  process: ChildProcessByStdio<null, Readable, null>
  /** The highest number that it said is durable, and how often it said so. */
  sealed: { eventNo: number; times: number }
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** Resolves when it has said so this often; rejects when it ends before. */
  untilSealed(times: number): Promise<void>
}

let folder: string
const children: Child[] = []
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.process.kill('SIGKILL')
    await child.exited
  }
  removeFolder(folder)
})

function start(...args: string[]): Child {
  const started = spawn(process.execPath, [CHILD, folder, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const sealed = { eventNo: 0, times: 0 }
  const watchers = new Set<() => void>()
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    started.on('close', (code, signal) => resolve({ code, signal }))
  })
  createInterface({ input: started.stdout }).on('line', (line) => {
    sealed.eventNo = Math.max(sealed.eventNo, Number(line.split(' ')[1]))
    sealed.times++
    for (const watcher of watchers) watcher()
  })
  const untilSealed = (times: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const watcher = (): void => {
        if (sealed.times < times) return
        watchers.delete(watcher)
        resolve()
      }
      watchers.add(watcher)
      watcher()
      void exited.then(() => reject(new Error(`the child ended after ${sealed.times} seals`)))
    })
  const child = { process: started, sealed, exited, untilSealed }
  children.push(child)
  return child
}

/** What `appendNumbered` appends under a number. */
function appended(eventNo: number): RecordedEvent {
  const atMs = NOON_MS + eventNo
  const event: MarketEvent = eventNo % 10 ? tradeAt(eventNo) : { type: 'solPrice', ts: atMs, usd: eventNo }
  return { eventNo, atMs, receivedAtMs: atMs - 1, feed: `feed${eventNo % 2}`, event }
}

/** Members that are null are absent to the engine. */
const plain = ({ event, ...rest }: RecordedEvent) => ({
  ...rest,
  event: Object.fromEntries(Object.entries(event).filter(([, value]) => value !== null)),
})

/** Brings what is left to the lake: it then has every event of the journal, as it was, and the journal nothing. */
async function expectWhole(durableNo: number): Promise<void> {
  const store = await openTestStore(folder)
  const journal = await openTestJournal(journalFolder(folder), {
    folderId: readFolderInfo(folder)!.logId,
    afterEventNo: store.events.progress.eventNo,
  })
  try {
    store.events.follow(journal, () => {})
    await store.flushLake()
    expect(journal.lastEventNo).toBeGreaterThanOrEqual(durableNo)
    expect(store.events.progress.eventNo).toBe(journal.lastEventNo)
    const found = []
    for await (const batch of allEvents(folder)) found.push(...batch)
    expect(found.length).toBe(journal.lastEventNo)
    expect(found.map(plain)).toEqual(found.map((_, index) => plain(appended(index + 1))))
  } finally {
    await store.close()
    await journal.close()
  }
  const { scope, findings, notes } = await verifyLake({ dataDir: folder, nowMs: NOON_MS })
  expect({ scope, findings, notes }).toEqual({ scope: 'whole', findings: [], notes: [] })
}

test('processes that die at each point of a flush of events lose none and double none', {
  tags: 'drill',
  timeout: 120_000,
}, async () => {
  let durableNo = 0
  for (const point of EVENT_POINTS) {
    const child = start('flush', point)
    expect(`${point} ${(await child.exited).signal}`).toBe(`${point} SIGKILL`)
    durableNo = Math.max(durableNo, child.sealed.eventNo)
  }
  expect(durableNo).toBeGreaterThanOrEqual(200)
  await expectWhole(durableNo)
})

/** The lake process of a server, by the kernel's list of its children. */
const lakeProcessOf = (server: number): number =>
  Number(readFileSync(`/proc/${server}/task/${server}/children`, 'utf8').trim().split(' ')[0])

for (const { runs: kills, tags } of fewAndMany(1, 3, 'MINTLAKE_TEST_KILLS'))
  test(`killed again and again amid recording, flushes and merges, each durable event is in the lake once: ${kills} kills`, {
    tags,
    timeout: 60_000 + kills * 20_000,
  }, async () => {
    let durableNo = 0
    for (let kill = 0; kill < kills; kill++) {
      const victim = VICTIMS[kill % VICTIMS.length]
      const child = start('storm')
      await child.untilSealed(SEALS_EACH)
      const server = child.process.pid!
      if (victim !== 'server') process.kill(lakeProcessOf(server), 'SIGKILL')
      // The server goes on meanwhile.
      if (victim === 'lake process') await child.untilSealed(3 * SEALS_EACH)
      child.process.kill('SIGKILL')
      await child.exited
      durableNo = Math.max(durableNo, child.sealed.eventNo)
    }
    expect(durableNo).toBeGreaterThanOrEqual(300 * SEALS_EACH)
    await expectWhole(durableNo)
  })
