// What recording takes of the event loop: trades are applied to a market of 100 000 tokens, in turns with and without a journal on a
// real disk. What counts is the CPU time of the main thread; the thread pool writes.
import { readFileSync } from 'node:fs'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { type EventJournal, openJournal } from '../../../src/journal/journal.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { Market } from '../../../src/market/market.ts'
import { type FeedSink, recordedSinks } from '../../../src/recording/event-recorder.ts'
import { RecordedTrades } from '../../datasets/recorded-trades.ts'
import {
  inFolder,
  lessIsBetter,
  type Measured,
  median,
  mergeLog,
  type Question,
  type RunOptions,
  sha,
} from '../../harness.ts'

const START_MS = 1_772_000_000_000
const TRADES_PER_SECOND = 20_000
/** The event loop has a turn after so many, as after a body of pushes. */
const BODY_TRADES = 200
/** Trades wait while the disk has so much to write: at full speed it could not keep up. */
const WAITING_BYTES_MAX = 4 * 1024 * 1024

/** CPU time of the main thread, nanoseconds. */
const mainThreadNs = (): number => Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ', 1)[0])

function open(folder: string, market: Market): Promise<EventJournal> {
  return openJournal({
    ...{
      folder,
      folderId: 'bench',
      runId: 'bench',
      settings: market.settings,
      originEventNo: null,
      simulated: false,
    },
    ...{ afterEventNo: 0, clock: systemClock, log: mergeLog(), lakeEventNo: () => 0, mayRecord: () => true },
    onLost: () => {
      throw new Error('the disk did not keep up')
    },
  })
}

async function run({ small }: RunOptions, folder: string): Promise<Measured> {
  const [tokens, trades, rounds] = small ? [500, 2_000, 4] : [100_000, 100_000, 24]
  const market = new Market({ tokensMax: tokens })
  market.apply({ type: 'solPrice', ts: START_MS, usd: 150, source: 'setting' }, START_MS)
  const source = new RecordedTrades(tokens)
  const journal = await open(folder, market)
  const recorded = recordedSinks(market, journal)('push')
  const plain = recordedSinks(market, null)('push')
  let count = 0
  const round = async (sink: FeedSink): Promise<number> => {
    const before = mainThreadNs()
    for (let done = 0; done < trades; done++) {
      const ts = START_MS + Math.floor((count++ / TRADES_PER_SECOND) * 1_000)
      sink.apply(source.next(ts), ts)
      if (done % BODY_TRADES !== 0) continue
      await nextTurn()
      while (journal.stats().waitingBytes > WAITING_BYTES_MAX) await sleep(1)
    }
    return (mainThreadNs() - before) / 1_000 / trades
  }
  try {
    const differences: number[] = []
    const alone: number[] = []
    for (let each = 0; each < rounds; each++) {
      const [plainUs, recordedUs] =
        each % 2
          ? [await round(plain), await round(recorded)]
          : [await round(recorded), await round(plain)].reverse()
      alone.push(plainUs)
      differences.push(recordedUs - plainUs)
      await journal.written(60_000)
    }
    const recordUs = Math.max(1e-3, median(differences))
    const { bytes, recorded: events } = journal.stats()
    const page = market.page({ tab: 'all', sort: 'hot', order: 'desc', limit: 100, offset: 0 })
    return {
      metrics: {
        recordUs,
        applyUs: median(alone),
        sharePct: (recordUs * TRADES_PER_SECOND) / 1e4,
        bytesPerTrade: bytes / events,
        gigabytesPerDay: ((bytes / events) * 300 * 86_400) / 1e9,
      },
      checksum: sha(page.ndjson),
    }
  } finally {
    await journal.close()
  }
}

export const question: Question = {
  name: 'recording',
  title: 'recording of market events: its share of the event loop',
  rounds: 3,
  candidates: { ours: (options) => inFolder((folder) => run(options, folder)) },
  comparisons: [
    lessIsBetter('recording a trade: event loop', 'recordUs', 'µs', { gate: 1.5, stretch: 1 }),
    lessIsBetter('recording 20 000 trades/s: event loop', 'sharePct', '% of a core', { gate: 3, stretch: 2 }),
    lessIsBetter('a recorded trade in the journal', 'bytesPerTrade', 'bytes'),
  ],
}
