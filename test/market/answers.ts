// Everything that a market answers about a few tokens, to compare two markets byte for byte.
import type { Market } from '../../src/market/market.ts'
import { BAR_FILLS, BAR_SHAPES, TIMEFRAMES } from '../../src/schema/bar.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { ORDERS, SORTS, TABS } from '../../src/schema/vocabulary.ts'

export const MINTS = ['one', 'two', 'three', 'four', 'five'].map(mintOfSymbol)

export const READS = {
  pages: (market: Market) =>
    TABS.flatMap((tab) =>
      SORTS.flatMap((sort) =>
        ORDERS.map((order) => {
          const page = market.page({ tab, sort, order, offset: 0, limit: 10 })
          return [page.ndjson.toString(), page.total, page.version]
        }),
      ),
    ),
  frozen: (market: Market) => {
    const list = market.freeze('all', 'hot')
    return [list.size, list.version, list.page('asc', 0, 10).ndjson.toString()]
  },
  filtered: (market: Market) =>
    ['a', 'b', MINTS[0].slice(0, 3)].map((search) => {
      const list = market.freeze('all', 'hot', { search, analysesMax: 4 })
      return [list.size, list.page('desc', 0, 10).ndjson.toString()]
    }),
  changes: (market: Market) =>
    TABS.map((tab) => JSON.stringify(market.changesSince(market.oldestSince, tab, 100))),
  items: (market: Market) => MINTS.map((of) => market.item(of)),
  profiles: (market: Market) => MINTS.map((of) => [market.profile(of), market.enriched(of)]),
  snapshots: (market: Market) => MINTS.map((of) => market.snapshot(of)),
  // What else was served in a millisecond is known to the process that served it, and no part of the market.
  moments: (market: Market) =>
    MINTS.map((of) =>
      [0, 1, 900, 60_000, 290_000].map((age) => market.versionsAt(of, market.timeMs - age).slice(0, 1)),
    ),
  datapoints: (market: Market) => MINTS.map((of) => market.datapoint(of)),
  datapointTexts: (market: Market) =>
    MINTS.map((of) => {
      const text = market.datapointJson(of)
      return text && [text.json.toString(), text.version]
    }),
  bars: (market: Market) =>
    MINTS.flatMap((of) =>
      TIMEFRAMES.flatMap((tf) =>
        BAR_FILLS.map((fill) => market.bars({ mint: of, tf, limit: 50, fromMs: null, toMs: null, fill })),
      ),
    ),
  barTexts: (market: Market) =>
    MINTS.flatMap((of) =>
      TIMEFRAMES.flatMap((tf) =>
        BAR_SHAPES.map((shape) => {
          const query = { mint: of, tf, limit: 50, fromMs: null, toMs: null, fill: 'none' } as const
          const text = market.barsText(query, { shape, separator: ',' })
          return text && [text.closed.toString() + text.open, text.rowCount, text.gaps, text.version]
        }),
      ),
    ),
} satisfies Record<string, (market: Market) => unknown>
export const KINDS = Object.keys(READS) as (keyof typeof READS)[]
