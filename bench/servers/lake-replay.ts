// node bench/servers/lake-replay.ts DATA_DIR
// Replays the lake of a data folder as fast as possible, as a server does, and prints one line of JSON: events a second.
import { readConfig } from '../../src/config/config.ts'
import { LakeReplay } from '../../src/ingest/replay/lake-replay.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createLog } from '../../src/lib/log.ts'
import { ReplayedLake } from '../../src/server/replayed-lake.ts'
import { peakRssBytes } from '../harness.ts'

const log = createLog('warn')
const settings = readConfig([], {}).replay
const wanted = {
  dataDir: '',
  replay: { ...settings, lake: process.argv[2], speed: 'max' },
  logLevel: 'warn',
} as const
const lake = await ReplayedLake.open(wanted, log)
const market = await lake.createMarket({})
const replay = new LakeReplay(await lake.replayOptions(market), market, systemClock, log)
await replay.done
const { events, eventsPerSecond } = replay.describe()
const page = market.page({ tab: 'all', sort: 'hot', order: 'desc', limit: 100, offset: 0 })
console.log(
  JSON.stringify({
    events,
    eventsPerSecond,
    peakMebibytes: peakRssBytes() / 1_048_576,
    pageBytes: page.bytes,
  }),
)
