// Pages per CPU second of the server: 100 000 tokens, 20 000 trades a second in the server's process or pushed to it. Compared
// with the same HTTP engine sending one constant buffer, and with fastify. Also other tabs, sorts and offsets, uncached
// pages, filtered pages, a market of 1 000 tokens, and DataPoints.
import { Market } from '../../src/market/market.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import type { Comparison, Measured, Question, RunOptions } from '../harness.ts'
import { compiled, microsecondsOf, sha } from '../harness.ts'
import { endProgram, loadServer, measureLoad, measurePushed, pushCost, startServer } from '../load.ts'
import type { ServerOptions } from '../servers/server.ts'

const PAGE = '/api/v1/market?format=ndjson&limit=100'
const HOT = `${PAGE}&tab=all&sort=hot&order=desc`
const DATAPOINT = `/api/v1/datapoint?mint=${mintOfSymbol('token 7')}`
const VARIANTS = [
  `${PAGE}&tab=all&sort=market_cap&order=desc`,
  `${PAGE}&tab=new&sort=created_timestamp&order=asc`,
  `${PAGE}&tab=new&sort=hot&order=asc`,
]

/** What every token is found by, a tenth, one, and none. */
const SEARCHES = ['token', 't7', 'token 77', 'walrus']
const START_MS = 1_772_000_000_000

const market = ({ small }: RunOptions, more: Partial<ServerOptions> = {}): ServerOptions => ({
  tokens: small ? 500 : 100_000,
  ticksPerSecond: small ? 1_000 : 20_000,
  body: 'page',
  ...more,
})

const ours =
  (path: string, more: Partial<ServerOptions> = {}) =>
  (options: RunOptions) =>
    loadServer('mintlake', market(options, more), path, options)
const peer = (kind: string, body: ServerOptions['body']) => (options: RunOptions) =>
  loadServer(kind, market(options, { body }), '/', options)

/** The same trades pushed by a feed; their own cost is subtracted. */
const pushed = (perPost: number) => async (options: RunOptions) => {
  const server = await startServer('mintlake', market(options, { ticksPerSecond: 0 }))
  try {
    const push = { perPost, rate: market(options).ticksPerSecond }
    return await measurePushed(server, HOT, push, await pushCost(server, push, options), options)
  } finally {
    await endProgram(server)
  }
}

/** The slowest of several tabs, sorts and orders. */
async function anyPage(options: RunOptions): Promise<Measured> {
  const server = await startServer('mintlake', market(options))
  try {
    let worst: Measured | null = null
    for (const path of VARIANTS) {
      const measured = await measureLoad(server, path, options)
      if (worst === null || measured.metrics.perCpuSecond < worst.metrics.perCpuSecond) worst = measured
    }
    return worst!
  } finally {
    await endProgram(server)
  }
}

/** A page of 100 rows of a filtered list, in the engine: of the slowest of several searches, and of tokens without analyses. */
async function filteredPages(options: RunOptions): Promise<Measured> {
  const { tokens } = market(options)
  const engine = new Market({ tokensMax: tokens })
  const mints = Array.from({ length: tokens }, (_, index) => mintOfSymbol(`token ${index}`))
  for (const [index, mint] of mints.entries()) {
    const texts = { name: `Token ${index}`, symbol: `T${index}` }
    engine.apply({ type: 'token', mint, ts: START_MS, ...texts }, START_MS)
    engine.apply({ type: 'analysisCount', mint, ts: START_MS, count: index % 2 }, START_MS)
  }
  const page = (search: string | null, analysesMax: number | null) =>
    engine.freeze('all', 'hot', { search, analysesMax }).page('desc', 0, 100)
  const ms = options.small ? 20 : 500
  const searchUs: number[] = []
  for (const search of SEARCHES) searchUs.push(await microsecondsOf(() => page(search, null), ms))
  return {
    metrics: {
      searchUs: Math.max(...searchUs),
      fewAnalysesUs: await microsecondsOf(() => page(null, 0), ms),
    },
    checksum: sha(page('token', 0).ndjson),
  }
}

/** A target for a figure of the filtered pages itself. */
const filtered = (title: string, metric: string, gate: number, stretch: number): Comparison => ({
  title,
  metric,
  of: 'filtered pages',
  unit: 'µs',
  gate,
  stretch,
  better: 'lower',
})

const comparison = (of: string, against: string, gate: number, stretch: number, title = of): Comparison => ({
  title,
  metric: 'perCpuSecond',
  of,
  against,
  unit: 'answers/CPU-s',
  gate,
  stretch,
  better: 'higher',
})

const CONSTANT = 'same engine, one constant buffer'
const PUSHED_200 = 'market page, 20 000 trades/s in POSTs of 200, their CPU taken off'
const PUSHED_20 = 'market page, 20 000 trades/s in POSTs of 20, their CPU taken off'
const HELLO = 'same engine, hello'

export const question: Question = {
  name: 'page',
  title: 'the market page over loopback',
  rounds: 3,
  variants: [
    PUSHED_200,
    PUSHED_20,
    'market page, worst of other tabs and sorts',
    'market page, always fresh',
    'market page at offset 50 000',
    'market page, no ticks',
    'market page, 1 000 tokens',
    'fastify, ready buffer',
    HELLO,
    'fastify, DataPoint',
  ],
  candidates: {
    'market page, 20 000 ticks/s': ours(HOT),
    [PUSHED_200]: pushed(200),
    [PUSHED_20]: pushed(20),
    'market page, worst of other tabs and sorts': anyPage,
    'market page, always fresh': ours(HOT, { pageAgeMs: 0 }),
    'market page at offset 50 000': ours(`${HOT}&offset=50000`),
    'filtered pages': filteredPages,
    'market page, no ticks': ours(HOT, { ticksPerSecond: 0 }),
    'market page, 1 000 tokens': (options) => ours(HOT, { tokens: options.small ? 200 : 1_000 })(options),
    [CONSTANT]: peer('uws', 'page'),
    'fastify, ready buffer': peer('fastify-buffer', 'page'),
    'fastify, stringify': peer('fastify-stringify', 'page'),
    DataPoint: ours(DATAPOINT),
    [HELLO]: peer('uws', 'hello'),
    'fastify, DataPoint': peer('fastify-stringify', 'datapoint'),
  },
  comparisons: [
    comparison('market page, 20 000 ticks/s', CONSTANT, 0.8, 0.95),
    comparison(PUSHED_200, CONSTANT, 0.85, 0.95),
    comparison(PUSHED_20, CONSTANT, 0.85, 0.95),
    comparison('market page, worst of other tabs and sorts', CONSTANT, 0.8, 0.95),
    comparison('market page, always fresh', CONSTANT, 0.5, 0.75),
    { ...comparison('market page, no ticks', CONSTANT, 0, 0), gate: undefined, stretch: undefined },
    comparison('market page, 20 000 ticks/s', 'fastify, ready buffer', 2, 2.5),
    comparison('market page, 20 000 ticks/s', 'fastify, stringify', 15, 20),
    comparison('market page at offset 50 000', 'market page, 20 000 ticks/s', 0.5, 0.8),
    comparison(
      'market page, 20 000 ticks/s',
      'market page, 1 000 tokens',
      0.9,
      1,
      'growth: pages, 100 000 tokens',
    ),
    filtered('page of 100 of a search, the slowest', 'searchUs', 10_000, 5_000),
    filtered('page of 100 of tokens without analyses', 'fewAnalysesUs', 3_000, 1_000),
    comparison('DataPoint', HELLO, 0.6, 0.8),
    comparison('DataPoint', 'fastify, DataPoint', 3, 4.5),
  ],
  prepare: () => void compiled(new URL('../limits/load.c', import.meta.url)),
}
