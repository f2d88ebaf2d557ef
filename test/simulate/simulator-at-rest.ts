// What must be so of a simulated market at rest: each start makes another one, of other tokens, and the lake has what its seed makes.

import { SIMULATOR_DEFAULTS } from '../../src/ingest/limits.ts'
import { Simulation } from '../../src/ingest/simulator/simulation.ts'
import type { RecordedEvent } from '../../src/journal/event-batch.ts'
import { DAY_MS } from '../../src/lib/time.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import { simulatedEvents } from '../support/simulated-events.ts'
import type { Cast, LifeEnd } from './actors/cast.ts'
import { LOSES_MS, type Missing } from './recorded-at-rest.ts'
import { check, type World } from './world.ts'

/** The history of a simulated market reaches so far back, and begins with a price of SOL. */
const HISTORY_MS = DAY_MS
/** So often it catches up with the clock, and a turn takes a moment. */
const TICK_MS = 50

/** Events of each run of the server, from the one that says that it begins. */
export function runsOf(events: readonly RecordedEvent[]): RecordedEvent[][] {
  const begins = events.flatMap(({ event }, index) => (event.type === 'run' ? [index] : []))
  return begins.map((from, index) => events.slice(from, begins[index + 1]))
}

/** The events with prices in USD: what a trade paid in SOL, by the last price of SOL before it. */
export function pricedInUsd(events: readonly RecordedEvent[]): RecordedEvent[] {
  let solUsd = Number.NaN
  return events.map((each) => {
    const { event } = each
    if (event.type === 'solPrice') solUsd = event.usd
    if (event.type !== 'trade' || event.priceUsd != null) return each
    const { solAmount, tokenAmount, vSol, vTokens } = event
    const priceSol = vSol != null && vTokens != null ? vSol / vTokens : solAmount! / tokenAmount
    return { ...each, event: { ...event, priceUsd: priceSol * solUsd } }
  })
}

/** What tells an event from all others of its market. */
function keyOf(event: MarketEvent): string {
  const { type, ts } = event
  if (event.type === 'trade')
    return `trade ${event.tx} ${event.mint} ${ts} ${event.side} ${event.tokenAmount}`
  if (event.type === 'solPrice') return `solPrice ${ts} ${event.usd}`
  if (event.type === 'live') return `live ${event.mint} ${ts} ${event.isLive} ${event.viewerCount}`
  return `${type} ${'mint' in event ? event.mint : ''} ${ts}`
}

/**
 * The lake has each market as its seed makes it, from the first event on. @returns events that are missing: a
 * disk took none, which was told, or the end of the server has taken them
 */
export function checkSimulated(world: World, cast: Cast, events: readonly RecordedEvent[]): Missing[] {
  const missing: Missing[] = []
  const tokens = new Map<string, number>()
  // Who had no time to record anything has used up a generation too.
  let generation = 0
  const runs = runsOf(events)
  for (const [index, run] of runs.entries()) {
    const recorded = run.filter(({ feed }) => feed === 'simulator')
    if (recorded.length === 0) continue
    for (const { event } of recorded) {
      if (event.type !== 'token') continue
      const { mint } = event
      const isOfOne = (tokens.get(mint) ?? index) === index
      check(world, 'no token is of two simulated markets', isOfOne, () => `${mint} is in run ${index} again`)
      tokens.set(mint, index)
    }
    if (world.hadWrongClock || world.hasDamagedJournal) continue
    const found = findGeneration(world, generation, recorded)
    if (found < recorded[0]!.atMs - DAY_MS) generation = found
    const nextMs = runs[index + 1]?.[0]?.atMs ?? null
    missing.push(...compareWithSeed(world, cast, found, { recorded, beganMs: run[0]!.atMs, nextMs }))
  }
  return missing
}

const optionsOf = (world: World, generation: number, first: MarketEvent) => ({
  ...{
    seed: SIMULATOR_DEFAULTS.seed,
    generation,
    tokens: world.simulatorTokens,
    tradesPerSecond: 1,
    startMs: first.ts + HISTORY_MS,
  },
})

/** @returns the generation from `from` on whose market begins as the recorded one */
function findGeneration(world: World, from: number, recorded: readonly RecordedEvent[]): number {
  const first = keyOf(recorded[0]!.event)
  const { startMs } = optionsOf(world, from, recorded[0]!.event)
  const generations = Array.from({ length: world.server.lives + 1 }, (_, index) => from + index)
  // Where it could not be noted it is of the time.
  for (const generation of [...generations, startMs]) {
    const simulation = new Simulation(optionsOf(world, generation, recorded[0]!.event))
    const [begins] = simulatedEvents(simulation, Infinity, 1)
    if (begins !== undefined && keyOf(begins.event) === first) return generation
  }
  check(
    world,
    'a simulated market is that of a generation',
    false,
    () => `none from ${from} begins with ${first}`,
  )
  throw new Error('unreachable')
}

/** A run of the server, as it was recorded. */
interface RecordedRun {
  recorded: readonly RecordedEvent[]
  /** When it began, and the one behind it, Unix ms; null: there is none. */
  beganMs: number
  nextMs: number | null
}

function compareWithSeed(
  world: World,
  cast: Pick<Cast, 'ends' | 'hadBadDisk'>,
  generation: number,
  { recorded, beganMs, nextMs }: RecordedRun,
): Missing[] {
  const missing: Missing[] = []
  const options = optionsOf(world, generation, recorded[0]!.event)
  const made = simulatedEvents(new Simulation(options), nextMs ?? world.machine.trueMs).values()
  const miss = (event: MarketEvent): void => {
    if ('mint' in event) missing.push({ mint: event.mint, tsMs: event.ts })
  }
  for (const { event, eventNo } of recorded) {
    const key = keyOf(event)
    let next = made.next().value
    for (; next !== undefined && keyOf(next.event) !== key; next = made.next().value) miss(next.event)
    check(
      world,
      'the lake has a simulated market as its seed makes it',
      next !== undefined && (missing.length === 0 || cast.hadBadDisk),
      () => `event ${eventNo} of generation ${generation}: ${key}; ${missing.length} are missing before it`,
    )
  }
  if (nextMs === null) return missing
  // What its end has taken. The history comes at once.
  const end = endOf(world, cast, beganMs)
  for (const { event, receivedAtMs } of made) {
    const deliveredMs = Math.max(receivedAtMs, options.startMs) + TICK_MS
    if (end !== null && deliveredMs > end.feedUntilMs) break
    miss(event)
    check(
      world,
      'no more events are lost than a kill or a power cut may take',
      end === null || cast.hadBadDisk || deliveredMs >= end.atMs - LOSES_MS[end.kind],
      () =>
        `${keyOf(event)} of generation ${generation} came ${end!.atMs - deliveredMs} ms before its ${end!.kind}`,
    )
  }
  return missing
}

/** How the life that began then has ended, Unix ms. */
function endOf(
  { machine }: World,
  { ends }: Pick<Cast, 'ends'>,
  beganMs: number,
): Omit<LifeEnd, 'hadBadDisk'> | null {
  const { startMs } = machine
  for (const { kind, atMs, feedUntilMs } of ends.values())
    if (startMs + atMs >= beganMs) return { kind, atMs: startMs + atMs, feedUntilMs: startMs + feedUntilMs }
  return null
}
