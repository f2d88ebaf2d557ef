// Saves a market as sections of bytes, and restores one from them. What decides later answers is saved; what follows from it, such
// as the order of lists and the words of searches, is made again. Caches and the change log begin empty.
import { crc32 } from 'node:zlib'
import { z } from 'zod'
import { assert } from '../../lib/assert.ts'
import { CheckpointError } from '../../lib/sections/checkpoint-error.ts'
import {
  jsonSection,
  parseSection,
  type Saved,
  type Section,
  type SectionIndex,
  SectionReader,
  sectionIndexSchema,
} from '../../lib/sections/sections.ts'
import { TIMEFRAMES } from '../../schema/bar.ts'
import { RECENT_TRADES_MAX, SNAPSHOT_FIELDS } from '../../schema/datapoint.ts'
import { HOT_HALF_LIFE_MS } from '../../schema/market-item.ts'
import { KEPT_SORTS, TABS } from '../../schema/vocabulary.ts'
import { BAR_STRIDE } from '../bars/bar-ring.ts'
import { CHUNK_BARS, WINDOWS } from '../bars/limits.ts'
import { BARS_END } from '../bars/token-block.ts'
import { WINDOW_FIELDS } from '../bars/windows.ts'
import type { MarketParts } from '../market-parts.ts'
import { LATE_GRACE_MS, SILENCE_MS } from '../time/limits.ts'
import { TOKEN_LAYOUT, TOKEN_LAYOUT_BEFORE_QUOTES } from '../tokens/token-table.ts'
import { restoreVersions } from './format-1.ts'

/**
 * Raised with every change of what sections hold or mean that LAYOUT does not show. 1 had other versions: format-1.ts. 1 and 2 knew no feed
 * that heals, had no wallets, and one source for all enriched fields: tokens/sparse-fields.ts. 1 to 3 knew lost bars of the 24-hour window
 * alone, and took all windows for unknown then.
 */
const FORMAT = 4
const FORMATS_READ = [1, 2, 3, FORMAT]
const WALLETS_SINCE_FORMAT = 3
/** What the saved numbers mean: a layout that is neither of these cannot be read. */
const layoutWith = (tokenLayout: string): string =>
  JSON.stringify([
    [TIMEFRAMES, CHUNK_BARS, BAR_STRIDE, BARS_END, WINDOWS, WINDOW_FIELDS, SNAPSHOT_FIELDS, KEPT_SORTS, TABS],
    [tokenLayout, RECENT_TRADES_MAX, HOT_HALF_LIFE_MS, LATE_GRACE_MS, SILENCE_MS],
  ])
const LAYOUT = layoutWith(TOKEN_LAYOUT)
const LAYOUTS_READ = [LAYOUT, layoutWith(TOKEN_LAYOUT_BEFORE_QUOTES)]

const HEAD = 'head'
const headSchema = z.object({
  format: z.number(),
  layout: z.string(),
  settings: z.object({ newWindowMs: z.number(), barsPerTokenMax: z.number(), versionsMax: z.number() }),
  sections: sectionIndexSchema,
})

const figuresSchema = z.object({
  nowMs: z.number(),
  sinceMs: z.number(),
  firstEventAtMs: z.number().optional(),
  seq: z.number(),
  events: z.number(),
  disconnects: z.number(),
  trades: z.number(),
  late: z.number(),
  evicted: z.number(),
  /** Of format 3. */
  earlierPriced: z.number().optional(),
  rewound: z.array(z.object({ fromMs: z.number(), toMs: z.number() })).default([]),
})

/** All but the tokens, which come first: the others refer to their slots. */
const savedParts = (parts: MarketParts): Saved[] => [
  parts.bars,
  parts.windows,
  parts.wallets,
  parts.rankings,
  parts.versions,
  parts.recentTrades,
  parts.analysisCounts,
  parts.evictedMints,
  parts.sweep,
  parts.solPrice,
  parts.gaps,
]

/** The state of a market after its latest event. Neither an event nor time may come before the last section was taken. */
export function* saveMarket(parts: MarketParts): Iterable<Section> {
  const { slotsUsed } = parts.tokens
  const { eventCount } = parts.events
  const { nowMs } = parts.time
  const index: SectionIndex = {}
  for (const section of sectionsOf(parts, slotsUsed)) {
    const isUnchanged = parts.events.eventCount === eventCount && parts.time.nowMs === nowMs
    assert(isUnchanged, 'no event is applied while a market is being saved')
    index[section.name] = { bytes: section.bytes.length, crc32: crc32(section.bytes) }
    yield section
  }
  const { settings } = parts
  const head = JSON.stringify({ format: FORMAT, layout: LAYOUT, settings, sections: index })
  yield { name: HEAD, bytes: Buffer.from(`${crc32(head)} ${head}`) }
}

function* sectionsOf(parts: MarketParts, slotsUsed: number): Iterable<Section> {
  yield* parts.tokens.save()
  for (const part of savedParts(parts)) yield* part.save(slotsUsed)
  yield jsonSection('figures', figuresOf(parts))
}

function figuresOf({ time, log, events, trades, lifecycle }: MarketParts) {
  return {
    nowMs: time.nowMs,
    sinceMs: time.sinceMs,
    firstEventAtMs: time.firstEventAtMs,
    rewound: time.rewound,
    seq: log.seq,
    events: events.eventCount,
    disconnects: events.disconnectCount,
    trades: trades.tradeCount,
    late: trades.lateCount,
    evicted: lifecycle.evictedCount,
    earlierPriced: trades.earlierPricedCount,
  }
}

/**
 * Restores a saved market into the parts of an empty one, in slices: it yields after each.
 * @param read gives a section by its name; null: there is none. Each is asked for once.
 * @throws CheckpointError; the parts must not be used then.
 */
export function* restoreParts(
  parts: MarketParts,
  read: (name: string) => Uint8Array | null,
): Generator<void, void> {
  const { format, layout, settings, sections: index } = readHead(read)
  const { barsPerTokenMax, versionsMax, newWindowMs } = parts.settings
  if (settings.barsPerTokenMax !== barsPerTokenMax || settings.versionsMax !== versionsMax)
    throw new CheckpointError('The checkpoint was written under other bounds on bars or versions.')
  const sections = new SectionReader(read, index)
  yield* parts.tokens.restore(sections, layout === LAYOUT ? TOKEN_LAYOUT : TOKEN_LAYOUT_BEFORE_QUOTES)
  const { slotsUsed } = parts.tokens
  parts.mintOrder.restore(slotsUsed)
  yield
  parts.searchIndex.restore(slotsUsed)
  yield
  for (const part of savedParts(parts)) {
    const isOld = part === parts.versions && format === 1
    const slices = isOld ? restoreVersions(parts, sections) : part.restore(sections, slotsUsed)
    if (slices !== undefined) yield* slices
    yield
  }
  restoreFigures(parts, sections)
  if (format < WALLETS_SINCE_FORMAT) parts.wallets.beginAt(slotsUsed, parts.time.nowMs)
  parts.healing.update()
  if (settings.newWindowMs !== newWindowMs) parts.figures.reviewAges()
}

function readHead(read: (name: string) => Uint8Array | null): z.infer<typeof headSchema> {
  const bytes = read(HEAD)
  if (bytes === null) throw new CheckpointError('This is no checkpoint of a market: it has no head.')
  const text = Buffer.from(bytes).toString()
  const json = text.slice(text.indexOf(' ') + 1)
  if (text !== `${crc32(json)} ${json}`) throw new CheckpointError('The head of the checkpoint is damaged.')
  const head = parseSection(HEAD, json, headSchema)
  if (FORMATS_READ.includes(head.format) && LAYOUTS_READ.includes(head.layout)) return head
  throw new CheckpointError('The checkpoint was written by a version of Mintlake with another format.')
}

function restoreFigures(parts: MarketParts, sections: SectionReader): void {
  const { time, log, events, trades, lifecycle } = parts
  const saved = sections.json('figures', figuresSchema)
  time.nowMs = saved.nowMs
  time.sinceMs = saved.sinceMs
  time.rewound = saved.rewound
  time.firstEventAtMs = saved.firstEventAtMs ?? saved.sinceMs
  // Positions never go back: those of this market may have begun above.
  log.beginAnew(Math.max(saved.seq, log.seq))
  events.eventCount = saved.events
  events.disconnectCount = saved.disconnects
  trades.tradeCount = saved.trades
  trades.lateCount = saved.late
  trades.earlierPricedCount = saved.earlierPriced ?? 0
  lifecycle.evictedCount = saved.evicted
}
