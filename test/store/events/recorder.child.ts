// A process that records events and brings them to the lake, perhaps up to a crash point. Writes to standard output how far the
// journal is durable.
import { readFolderInfo } from '../../../src/store/data-folder/folder-info.ts'
import { journalFolder } from '../../../src/store/paths.ts'
import type { CrashPoint } from '../../../src/store/process/crash-points.ts'
import { appendNumbered, openTestJournal } from '../../journal/support.ts'
import { openTestStore } from '../support.ts'

const [folder, mode, crashAt] = process.argv.slice(2)
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const isStorm = mode === 'storm'

const store = await openTestStore(folder, {
  ...(crashAt !== undefined && { crash: { at: crashAt as CrashPoint, withServer: true } }),
  lakeFlushMs: isStorm ? 20 : 0,
  lakeTidy: { everyMs: isStorm ? 70 : 0, graceMs: 0 },
})
const journal = await openTestJournal(journalFolder(folder), {
  folderId: readFolderInfo(folder)!.logId,
  afterEventNo: store.events.progress.eventNo,
})
store.events.follow(journal, ({ eventNo }) => void journal.removeThrough(eventNo))

/** Appends events, and says how far they are durable. */
async function record(count: number): Promise<void> {
  appendNumbered(journal, count)
  const { throughEventNo } = await journal.seal()
  say(`sealed ${throughEventNo}`)
}

if (isStorm) for (;;) await record(300)

for (let round = 0; round < 3; round++) {
  await record(200)
  await store.events.flush()
}
await store.close()
await journal.close()
