// node bench/servers/market-restart.ts DATA_DIR
// Restores a market as a server does at its start, and prints one line of JSON: the time until the checkpoint is restored, the time
// for the events behind it, and the memory. Lists are made last; their time counts as that of the checkpoint.

import { findRecorded, type RecordFolders } from '../../src/checkpoint/find-base.ts'
import { redo, restoreMarket } from '../../src/checkpoint/restoration.ts'
import { checkpointFolder, journalFolder } from '../../src/store/paths.ts'
import { mergeLog, peakRssBytes, rssBytes } from '../harness.ts'

const MEBIBYTE = 1_048_576
const dataDir = process.argv[2]
const folders: RecordFolders = {
  journalFolder: journalFolder(dataDir),
  checkpointFolder: checkpointFolder(dataDir),
  folderId: 'bench',
}
const beganMs = performance.now()
const recorded = await findRecorded(folders, 0)
const { settings } = recorded.latest!
const restored = (await restoreMarket(
  { ...folders, marketOptions: settings, settings, log: mergeLog() },
  recorded,
))!
const restoreMs = performance.now() - beganMs
const restoredMebibytes = rssBytes('self') / MEBIBYTE
const { events, tookMs } = await redo(
  { ...folders, log: mergeLog() },
  recorded,
  restored.market,
  restored.base,
)
const redoneMs = performance.now()
for (const _ of restored.market.ranking());
const rankMs = performance.now() - redoneMs
const page = restored.market.page({ tab: 'all', sort: 'hot', order: 'desc', limit: 100, offset: 0 })
console.log(
  JSON.stringify({
    ...{
      restoreMs: restoreMs + rankMs,
      rankMs,
      events,
      redoMs: tookMs,
      redoMsPer100k: (tookMs / Math.max(1, events)) * 100_000,
    },
    ...{
      restoredMebibytes,
      peakMebibytes: peakRssBytes() / MEBIBYTE,
      tokens: restored.market.stats().tokens,
    },
    pageBytes: page.bytes,
  }),
)
