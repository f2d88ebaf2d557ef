// Followers of windows of sorted and filtered lists join, stop reading and go on at any time. After every frame each has exactly the
// rows that the list has in its window at that position, in the same order.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import type { BodyWriter } from '../../../src/http/context.ts'
import { Broadcaster } from '../../../src/http/stream/broadcaster.ts'
import { WindowChannel, type WindowRequest } from '../../../src/http/stream/window-channel.ts'
import { Market } from '../../../src/market/market.ts'
import type { ListFilter } from '../../../src/market/types.ts'
import { COMPACT_ROW_FIELDS, type RowField } from '../../../src/schema/market-item.ts'
import { mintOfSymbol } from '../../../src/schema/mint.ts'
import { ORDERS, SORTS, TABS } from '../../../src/schema/vocabulary.ts'

const MINTS = Array.from({ length: 8 }, (_, index) => mintOfSymbol(`window ${index}`))
/** Fewer than there are mints, so that tokens are evicted. */
const TOKENS_MAX = 6
const START_MS = 1_700_000_000_000

const fieldsOf = (fields: readonly RowField[]) => ({ key: fields.join(), fields })
const filter: fc.Arbitrary<ListFilter | null> = fc.oneof(
  fc.constant(null),
  fc.constant({ search: 'a', analysesMax: null }),
  fc.record({
    search: fc.constant(null),
    analysesMax: fc.constant(null),
    ranges: fc.constantFrom(
      [{ figure: 'volume_1h', min: 1, max: null }] as const,
      [{ figure: 'change_5m', min: null, max: 0 }] as const,
      [{ figure: 'age_ms', min: 60_000, max: null }] as const,
    ),
  }),
  fc.subarray(MINTS).map((mints) => ({ search: null, analysesMax: null, mints })),
)
const window: fc.Arbitrary<WindowRequest> = fc.record({
  tab: fc.constantFrom(...TABS),
  sort: fc.constantFrom(...SORTS),
  order: fc.constantFrom(...ORDERS),
  offset: fc.nat(3),
  limit: fc.integer({ min: 1, max: 5 }),
  filter,
  fields: fc.constantFrom(null, fieldsOf(COMPACT_ROW_FIELDS), fieldsOf(['mint', 'change_5m'])),
})
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ trade: fc.nat(7), price: fc.integer({ min: 1, max: 9 }) }) },
  { weight: 2, arbitrary: fc.record({ token: fc.nat(7) }) },
  { weight: 1, arbitrary: fc.record({ live: fc.nat(7), isLive: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ passMs: fc.constantFrom(100, 1_000, 20_000, 400_000, 4_000_000) }) },
  { weight: 4, arbitrary: fc.record({ look: fc.constant(true) }) },
  { weight: 1, arbitrary: fc.record({ join: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ stop: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ goOn: fc.nat(2) }) },
)

/** Windows are looked at in an interval, and a flush that took long, as on a busy machine, is followed by a pause. */
beforeAll(() => vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] }))
afterAll(() => vi.useRealTimers())

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** What a client has of its window. Reads or stops as the test decides; like a full socket it keeps what was written to it. */
class Reader implements BodyWriter {
  readonly #rows = new Map<string, string>()
  #order: string[] | null = null
  total = -1
  seq = -1
  isReading = true
  resume: () => void = () => {}
  readonly #onFrame: (reader: Reader) => void

  constructor(onFrame: (reader: Reader) => void) {
    this.#onFrame = onFrame
  }

  /** The rows in order. */
  get lines(): (string | undefined)[] {
    return (this.#order ?? []).map((mint) => this.#rows.get(mint))
  }

  write(bytes: Buffer): boolean {
    for (const text of bytes.toString().trimEnd().split('\n')) {
      const line = JSON.parse(text)
      if (line.event === undefined) this.#rows.set(line.mint, text)
      else if (line.event === 'window') {
        this.#order = line.order ?? this.#order
        for (const mint of this.#rows.keys()) if (!this.#order!.includes(mint)) this.#rows.delete(mint)
        this.total = line.total
        this.seq = line.seq
        this.#onFrame(this)
      }
    }
    return this.isReading
  }

  end(): void {}
  fail(): void {}
  onClosed(): void {}
  onWritable(resume: () => void): void {
    this.resume = resume
  }
}

it('a follower of a window has the list at its position after every frame', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(window, { minLength: 2, maxLength: 2 }),
      fc.array(step, { maxLength: 60 }),
      play,
    ),
    { numRuns: 60 },
  )
})

async function play(windows: readonly WindowRequest[], steps: readonly object[]): Promise<void> {
  const market = new Market({ tokensMax: TOKENS_MAX, changeLogEntriesMax: 1_024 })
  let atMs = START_MS
  let monotonicMs = 0
  const broadcaster = new Broadcaster(market, {
    flushMs: 0,
    heartbeatMs: 1e9,
    stalledMsMax: 1e9,
    ageMsMax: 1e9,
    now: () => monotonicMs,
  })
  const readers: Reader[] = []
  const expected = ({ tab, sort, order, offset, limit, filter, fields }: WindowRequest) => {
    const list = market.freeze(tab, sort, filter)
    const page = list.page(order, offset, limit, fields)
    return { total: list.size, lines: page.lines.map((line) => line.toString().trimEnd()) }
  }
  let looked = true
  const join = (index: number) => {
    const request = windows[index]
    const reader = new Reader(({ lines, total, seq }) => {
      // A frame shows the window when it was looked at last; what has not been looked at since is compared at the end.
      if (seq === market.seq && looked) expect({ lines, total }).toEqual(expected(request))
      expect(lines.every((line) => line !== undefined)).toBe(true)
    })
    readers.push(reader)
    broadcaster.subscribe(
      broadcaster.connect(reader, 'ndjson'),
      broadcaster.window(new WindowChannel(market, request), ''),
      0,
    )
    return { reader, request }
  }
  const followed = [join(0), join(1)]
  looked = false
  const look = async () => {
    looked = true
    monotonicMs += 1_000
    vi.advanceTimersByTime(1_000)
    for (let turns = 0; turns < 3; turns++) await turn()
    looked = false
  }
  for (const one of steps as Record<string, never>[]) {
    if ('trade' in one) {
      const trade = {
        mint: MINTS[one.trade],
        ts: atMs,
        side: 'buy',
        tokenAmount: 1,
        priceUsd: one.price,
      } as const
      market.apply({ type: 'trade', ...trade }, atMs)
    }
    if ('token' in one)
      market.apply(
        { type: 'token', mint: MINTS[one.token], ts: atMs, name: `a ${one.token}`, symbol: 'S' },
        atMs,
      )
    if ('live' in one)
      market.apply({ type: 'live', mint: MINTS[one.live], ts: atMs, isLive: one.isLive }, atMs)
    if ('passMs' in one) {
      atMs += one.passMs
      market.advanceTo(atMs)
    }
    if ('look' in one) await look()
    if ('join' in one) followed.push(join(one.join))
    if ('stop' in one && one.stop < readers.length) readers[one.stop].isReading = false
    if ('goOn' in one && one.goOn < readers.length) {
      readers[one.goOn].isReading = true
      readers[one.goOn].resume()
      await turn()
    }
  }
  for (const reader of readers) {
    reader.isReading = true
    reader.resume()
  }
  await look()
  for (const { reader, request } of followed)
    expect({ lines: reader.lines, total: reader.total }).toEqual(expected(request))
  broadcaster.close('draining')
}
