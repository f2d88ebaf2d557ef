// Reads the versions of a checkpoint of format 1. Beside its end each had the start of the window that its 24-hour sums covered
// instead of its beginning, and the sums of an earlier window were made from them: NaN where a patch had set any.
import { z } from 'zod'
import type { SectionReader } from '../../lib/sections/sections.ts'
import { TIMEFRAME_LENGTHS_MS } from '../../schema/timeframe.ts'
import { buyCount, tradeCount } from '../bars/bar-ring.ts'
import { dayMovedAtMs, timeframeOf } from '../bars/windows.ts'
import type { MarketParts } from '../market-parts.ts'
import { VERSION_VALUES } from '../tokens/version-history.ts'

const ENDED_AT = VERSION_VALUES
const WINDOW_FROM = VERSION_VALUES + 1
const STRIDE = VERSION_VALUES + 2
const SEGMENT_RECORDS = 16_384
/** Of the values that are compared. */
const [VOLUME_24H, BUYS_24H, SELLS_24H] = [2, 6, 7]

const savedSchema = z.object({ firstNumber: z.number(), nextNumber: z.number(), droppedEarly: z.number() })

type RestoredParts = Pick<MarketParts, 'tokens' | 'bars' | 'versions'>

/** Puts the versions into `parts`, whose tokens, bars and windows are restored already. */
export function* restoreVersions(parts: RestoredParts, sections: SectionReader): Iterable<void> {
  const { firstNumber, nextNumber, droppedEarly } = sections.json('versions', savedSchema)
  const { slotsUsed } = parts.tokens
  const count = Math.max(0, nextNumber - firstNumber)
  const [values, previous] = [new Float64Array(count * STRIDE), new Float64Array(count)]
  for (let index = 0, first = 0; first < count; index++, first += SEGMENT_RECORDS) {
    const end = Math.min(count, first + SEGMENT_RECORDS)
    sections.fill(`versions.values.${index}`, values.subarray(first * STRIDE, end * STRIDE))
    sections.fill(`versions.previous.${index}`, previous.subarray(first, end))
    yield
  }
  const latest = new Float64Array(slotsUsed)
  sections.fill('versions.latest', latest)
  // By record: the slot of its token, plus one; 0: it was forgotten.
  const slots = new Uint32Array(count)
  for (let slot = 0; slot < slotsUsed; slot++)
    for (let number = latest[slot]; number >= firstNumber; number = previous[number - firstNumber])
      slots[number - firstNumber] = slot + 1
  parts.versions.droppedEarly = droppedEarly
  const beganAtMs = new Float64Array(slotsUsed)
  for (let record = 0; record < count; record++) {
    const slot = slots[record] - 1
    if (slot === -1) continue
    const version = values.subarray(record * STRIDE, (record + 1) * STRIDE)
    add(parts, slot, version, beganAtMs[slot])
    beganAtMs[slot] = version[ENDED_AT]
  }
}

/** What was shown before the window moved becomes a version of its own. */
function add({ bars, versions }: RestoredParts, slot: number, version: Float64Array, beganAtMs: number) {
  const [endedAtMs, windowFromMs] = [version[ENDED_AT], version[WINDOW_FROM]]
  const movedAtMs = dayMovedAtMs(endedAtMs)
  if (Number.isNaN(windowFromMs) || beganAtMs >= movedAtMs) {
    versions.push(slot, version, beganAtMs, endedAtMs)
    return
  }
  const timeframe = timeframeOf('24h')
  const fromMs = windowFromMs - TIMEFRAME_LENGTHS_MS[timeframe]
  const { volume, counts } = bars.sum(slot, timeframe, fromMs, windowFromMs)
  const before = version.slice(0, VERSION_VALUES)
  before[VOLUME_24H] += volume
  before[BUYS_24H] += buyCount(counts)
  before[SELLS_24H] += tradeCount(counts) - buyCount(counts)
  versions.push(slot, before, beganAtMs, movedAtMs)
  versions.push(slot, version, movedAtMs, endedAtMs)
}
