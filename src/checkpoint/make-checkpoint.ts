// Makes one checkpoint: restores the one before, applies the events recorded since, and writes the market that results.
import { readJournal } from '../journal/reader.ts'
import { peakMemoryBytes } from '../lib/memory.ts'
import { MINTLAKE_VERSION } from '../lib/version.ts'
import { type NewCheckpointHead, writeCheckpoint } from './checkpoint-file.ts'
import { EventReplayer } from './event-replayer.ts'
import { findBase, findRecorded, lostThrough, type Recorded, type RestoredBase } from './find-base.ts'
import { quietOptions, underSettings } from './market-options.ts'
import type { CheckpointResult, CheckpointTask } from './protocol.ts'

function restoreBase(
  recorded: Recorded,
  { unusable }: CheckpointTask,
  reasons: string[],
): RestoredBase | null {
  const checkpoints = recorded.checkpoints.filter(({ eventNo }) => !unusable.includes(eventNo))
  return findBase(
    { ...recorded, checkpoints },
    {
      onUnusable: ({ path, reason }) => reasons.push(`${path}: ${reason}`),
      optionsOf: ({ settings }) => quietOptions(settings),
    },
  )
}

/** What is told where neither a checkpoint nor the journal has the market from its beginning. */
function withoutBase(task: CheckpointTask, reasons: readonly string[], restoreMs: number): CheckpointResult {
  const { lostEvents, originEventNo, throughEventNo } = task
  return {
    eventNo: throughEventNo,
    bytes: 0,
    events: 0,
    lost: throughEventNo - originEventNo + 1 - lostEvents,
    unusable: ['neither a checkpoint nor the journal has the market from its beginning', ...reasons],
    restoreMs,
    replayMs: 0,
    writeMs: 0,
    peakBytes: peakMemoryBytes(),
  }
}

/** Writes nothing where the market that results would be another one than that of the server: it then says what is lost. */
export async function makeCheckpoint(task: CheckpointTask): Promise<CheckpointResult> {
  const { journalFolder, checkpointFolder, folderId, throughEventNo, barsInLakeToMs } = task
  const startedMs = performance.now()
  const recorded = await findRecorded({ journalFolder, checkpointFolder, folderId }, throughEventNo)
  const unusable: string[] = []
  const restored = restoreBase(recorded, task, unusable)
  const restoredMs = performance.now()
  if (restored === null) return withoutBase(task, unusable, restoredMs - startedMs)
  const { base, market } = restored
  const { afterEventNo, settings } = base
  const replayer = new EventReplayer({ market, afterEventNo, settings, onSettings: underSettings })
  for await (const batch of readJournal(journalFolder, afterEventNo, { folderId, throughEventNo }))
    for (const _ of replayer.apply(batch));
  const replayedMs = performance.now()
  // Marks closed bars as emitted. A restart emits those again that the lake may not have.
  const { tokensMax } = replayer.market
  for (let round = 0; round < 2; round++) replayer.market.emitClosedBars(tokensMax)
  const lostEvents = lostThrough(Math.max(throughEventNo, replayer.lastEventNo), base, replayer.count)
  const lost = lostEvents - task.lostEvents
  const head: NewCheckpointHead = {
    folderId,
    eventNo: replayer.lastEventNo,
    originEventNo: base.originEventNo,
    barsInLakeToMs,
    lostEvents: lostEvents || undefined,
    atMs: replayer.market.timeMs,
    settings: replayer.market.settings,
    version: MINTLAKE_VERSION,
    writtenAtMs: Date.now(),
  }
  // What lacks others than the market of the server is of another past.
  const bytes = lost === 0 ? await writeCheckpoint(checkpointFolder, head, replayer.market.save()) : 0
  return {
    eventNo: head.eventNo,
    bytes,
    events: replayer.count,
    lost,
    unusable,
    restoreMs: restoredMs - startedMs,
    replayMs: replayedMs - restoredMs,
    writeMs: performance.now() - replayedMs,
    peakBytes: peakMemoryBytes(),
  }
}
