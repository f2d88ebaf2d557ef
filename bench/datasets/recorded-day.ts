// node bench/datasets/recorded-day.ts DATA_DIR TOKENS TRADES [lake [LENGTH_MS]]
// Records a simulated day of trades, or another length of time, in the journal of a data folder, as a server would have, and with `lake` in its lake too.
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { openJournal } from '../../src/journal/journal.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Market } from '../../src/market/market.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import { journalFolder } from '../../src/store/paths.ts'
import { openStore } from '../../src/store/store.ts'
import { mergeLog } from '../harness.ts'
import { RecordedTrades } from './recorded-trades.ts'

const DAY_MS = 86_400_000
const START_MS = 1_772_000_000_000
const SOL_PRICE_USD = 150
const WAITING_BYTES_MAX = 8 * 1024 * 1024
const [dataDir, tokens, trades] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]

const lengthMs = Number(process.argv[6] ?? DAY_MS)

const log = mergeLog()
const store =
  process.argv[5] === 'lake'
    ? await openStore({
        ...{ dataDir, lakeFlushMs: 0, clock: systemClock, log },
        provenance: { feed: 'push', simulated: false },
      })
    : null
const { settings } = new Market({ tokensMax: tokens })
const journal = await openJournal({
  ...{ folder: journalFolder(dataDir), folderId: store?.folderId ?? 'bench', runId: 'bench', settings, log },
  ...{ originEventNo: null, simulated: false, afterEventNo: 0, clock: systemClock },
  ...{ lakeEventNo: () => 0, mayRecord: () => true, bytesMax: Infinity },
  onLost: () => {
    throw new Error('the disk did not keep up')
  },
})
const append = (event: MarketEvent, feed = 'push') =>
  journal.append(event, event.ts, event.ts, feed, SOL_PRICE_USD)
const header = {
  ...{ runId: 'bench', version: 'bench', formatVersion: 1, node: process.version, settings, feeds: ['push'] },
  ...{ simulated: false, checkpointEventNo: null, startedAtMs: START_MS },
}
append({ type: 'run', ts: START_MS, firstSeq: 0, header }, 'server')
append({ type: 'solPrice', ts: START_MS, usd: SOL_PRICE_USD, source: 'setting' }, 'setting')
const source = new RecordedTrades(tokens)
for (const [index, mint] of source.mints.entries())
  append({
    ...{ type: 'token', mint, ts: START_MS, name: `Token ${index}`, symbol: `T${index}` },
    ...{ totalSupply: 1e9, creator: mint },
  })
for (let count = 0; count < trades; count++) {
  append(source.next(START_MS + Math.floor((count / trades) * lengthMs)))
  if (count % 2_000 !== 0) continue
  await nextTurn()
  while (journal.stats().waitingBytes > WAITING_BYTES_MAX) await sleep(2)
}
if (store !== null) {
  store.events.follow(journal, () => {})
  await store.events.flush()
  await store.compactLake()
}
const { lastEventNo: events } = journal
const { bytes } = journal.stats()
await store?.close()
await journal.close()
console.log(JSON.stringify({ events, bytes }))
