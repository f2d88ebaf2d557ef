// Followers of a broadcaster join, stop reading and continue at any time. In the end each has received every row of its tab in its
// newest form, in ascending positions, no change twice, and every eviction.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { BodyWriter } from '../../../src/http/context.ts'
import { Broadcaster } from '../../../src/http/stream/broadcaster.ts'
import type { Follower } from '../../../src/http/stream/follower.ts'
import { MarketChannel } from '../../../src/http/stream/market-channel.ts'
import { Market } from '../../../src/market/market.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import type { Tab } from '../../../src/schema/vocabulary.ts'

const MINTS = Array.from({ length: 6 }, (_, index) => mintOfSymbol(`token ${index}`))
/** Fewer than there are mints, so that tokens are evicted. */
const TOKENS_MAX = 4
const READERS = 6
/** Assigned to the readers in turn. */
const FORMATS = ['ndjson', 'json'] as const
/** More than there are steps, so that no follower loses its position. */
const CHANGE_LOG_ENTRIES = 1_024

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ change: fc.nat(MINTS.length - 1) }) },
  { weight: 2, arbitrary: fc.record({ live: fc.nat(MINTS.length - 1), isLive: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ flush: fc.constant(true) }) },
  {
    weight: 2,
    arbitrary: fc.record({ join: fc.nat(READERS - 1), tab: fc.constantFrom<Tab>('all', 'live') }),
  },
  { weight: 1, arbitrary: fc.record({ stop: fc.nat(READERS - 1) }) },
  { weight: 1, arbitrary: fc.record({ goOn: fc.nat(READERS - 1) }) },
)

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Reads or stops as the test decides. Like a full socket it keeps what was written to it. */
class Reader implements BodyWriter {
  readonly tab: Tab
  readonly rows = new Map<string, Record<string, unknown>>()
  #lastSeq = -1
  isReading = true
  resume: () => void = () => {}

  constructor(tab: Tab) {
    this.tab = tab
  }

  write(bytes: Buffer): boolean {
    for (const line of bytes.toString().trimEnd().split('\n')) {
      const { rows = [], ...message } = JSON.parse(line)
      for (const row of rows) this.#take(row)
      if (message.event === undefined || message.event === 'left') this.#take(message)
    }
    return this.isReading
  }

  #take({ event, seq, ...row }: Record<string, unknown> & { mint?: string; seq?: number }): void {
    if (seq !== undefined) {
      expect(seq, 'positions ascend').toBeGreaterThan(this.#lastSeq)
      this.#lastSeq = seq
    }
    if (event === 'left') this.rows.delete(row.mint!)
    else this.rows.set(row.mint!, row)
  }

  end(): void {}
  fail(): void {}
  onClosed(): void {}
  onWritable(resume: () => void): void {
    this.resume = resume
  }
}

it('every follower gets the newest form of every row of its tab, in ascending positions, and every eviction', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const market = new Market({ tokensMax: TOKENS_MAX, changeLogEntriesMax: CHANGE_LOG_ENTRIES })
      const broadcaster = new Broadcaster(market, { flushMs: 0, now: () => 0 })
      const readers: (Reader | undefined)[] = []
      const followers: Follower[] = []
      let ts = 1_000_000
      let name = 0
      const write = (index: number) =>
        market.apply({ type: 'token', mint: MINTS[index], ts: ++ts, name: `name ${++name}`, symbol: 'S' }, ts)
      for (const index of MINTS.keys()) write(index)
      for (const one of steps) {
        if ('change' in one) write(one.change)
        if ('live' in one) market.apply({ type: 'live', mint: MINTS[one.live], ts, isLive: one.isLive }, ++ts)
        if ('flush' in one) await turn()
        if ('stop' in one && readers[one.stop]) readers[one.stop]!.isReading = false
        if ('goOn' in one && readers[one.goOn]) goOn(readers[one.goOn]!)
        if ('join' in one && readers[one.join] === undefined) {
          const reader = new Reader(one.tab)
          const channel = new MarketChannel(market, one.tab)
          readers[one.join] = reader
          followers.push(broadcaster.connect(reader, FORMATS[one.join % FORMATS.length]))
          const request = {
            tab: one.tab,
            sort: 'hot',
            order: 'desc',
            offset: 0,
            limit: MINTS.length,
          } as const
          broadcaster.subscribe(followers.at(-1)!, channel, channel.open(request))
        }
      }
      for (const reader of readers) if (reader) goOn(reader)
      for (let turns = 0; turns < 5; turns++) await turn()
      for (const reader of readers) if (reader) expectNewest(market, reader)
      broadcaster.close('draining')
    }),
    { numRuns: 40 },
  )
})

function goOn(reader: Reader): void {
  reader.isReading = true
  reader.resume()
}

/** Rows that left the tab were sent one last time, and show that they left. */
function expectNewest(market: Market, { tab, rows }: Reader): void {
  for (const mint of MINTS) {
    const item = market.item(mint)
    if (item !== null && (tab === 'all' || item.is_currently_live)) expect(rows.get(mint)).toEqual(item)
    else if (tab === 'all') expect(rows.has(mint)).toBe(false)
    else expect(rows.get(mint)?.is_currently_live ?? false).toBe(false)
  }
}
