// Which bars were held open is recorded with what tells of a loss: a start, and a feed that heals, mark none of those as incomplete.
import { expect, test } from 'vitest'
import { beginRun } from '../../src/checkpoint/begin-run.ts'
import { SourceLink } from '../../src/ingest/source-link.ts'
import { Market } from '../../src/market/market.ts'
import { recordedSinks } from '../../src/recording/event-recorder.ts'
import type { MarketEvent, RunHeader } from '../../src/schema/event.ts'
import { findLateIntervals } from '../../src/store/events/late-gaps.ts'

const START_MS = 1_772_000_000_000
const DOWN_MS = 400_000
const HEADER: RunHeader = {
  ...{ runId: 'run', version: '0', formatVersion: 3, node: 'v22', feeds: ['solana'], simulated: false },
  settings: { tokensMax: 1, newWindowMs: 1, solPriceMaxAgeMs: 0, barsPerTokenMax: 1, versionsMax: 1 },
  ...{ checkpointEventNo: null, startedAtMs: START_MS },
}

/** A market that ended at START_MS, and what a recorder of it records. */
function recorded() {
  const market = new Market({ tokensMax: 8 })
  market.advanceTo(START_MS)
  const events: { event: MarketEvent; atMs: number }[] = []
  const append = (event: MarketEvent, atMs: number) => void events.push({ event, atMs })
  const sinkOf = recordedSinks(market, { append, isLosing: false } as never)
  const sink = sinkOf('solana')
  const link = new SourceLink('solana', sink, (error) => {
    throw error
  })
  const late = () => events.flatMap(({ event, atMs }) => findLateIntervals(event, atMs))
  return { market, sink, link, late }
}

async function begin({ market, sink }: ReturnType<typeof recorded>, heals: boolean): Promise<number> {
  const nowMs = START_MS + DOWN_MS
  await beginRun({
    ...{ market, apply: sink.apply, journal: null, nowMs, firstSeq: 1, header: HEADER, isRestored: true },
    healing: heals ? { feed: 'solana', healMs: 600_000 } : null,
    coverage: [],
  })
  return nowMs
}

test('after a restart a feed that heals says since when it was away: no bar of that time has closed', async () => {
  const running = recorded()
  const nowMs = await begin(running, true)
  running.market.advanceTo(nowMs + 5_000)
  // As the feed does when it begins, when it is connected, and when it finds out what stays missing.
  for (const atMs of [nowMs + 5_000, nowMs + 90_000]) {
    running.market.advanceTo(atMs)
    running.link.lose(START_MS - 3_000, atMs, atMs + 600_000)
  }
  const part = { fromMs: START_MS + 100_000, toMs: START_MS + 101_000, reason: 'pruned' as const }
  running.link.miss(START_MS - 3_000, nowMs + 100_000, nowMs + 700_000, [part])
  expect(running.late()).toEqual([])
})

test('a feed that does not heal marks the bars of the downtime, and one that is found late those before it was', async () => {
  const down = recorded()
  await begin(down, false)
  expect(down.late().filter(({ tf }) => tf === '1m').length).toBeGreaterThan(4)
  const running = recorded()
  running.market.advanceTo(START_MS + 300_000)
  running.link.lose(START_MS, START_MS + 300_000, START_MS + 900_000)
  const { length } = running.late()
  expect(length).toBeGreaterThan(3)
  // Told once more it marks no more of them, though the gap has become longer.
  running.market.advanceTo(START_MS + 800_000)
  running.link.lose(START_MS, START_MS + 800_000, START_MS + 1_500_000)
  const marked = new Set(running.late().map(({ tf, tMs }) => `${tf} ${tMs}`))
  expect(marked.size).toBe(length)
})
