// Replays of a recorded market: every event in its order and with its market time, not before it is due.
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { LakeReplay, type LakeReplayOptions } from '../../src/ingest/replay/lake-replay.ts'
import type { RecordedEvent } from '../../src/journal/event-batch.ts'
import type { MarketEvent } from '../../src/schema/event.ts'
import { MemorySink, silentLog } from './memory-sink.ts'

const START_MS = 1_772_000_000_000
const recorded = (eventNo: number, offsetMs: number, event: Partial<MarketEvent> = {}): RecordedEvent => ({
  eventNo,
  atMs: START_MS + offsetMs,
  receivedAtMs: START_MS + offsetMs - 1,
  feed: 'push',
  event: { type: 'solPrice', ts: START_MS, usd: eventNo, ...event } as MarketEvent,
})

async function* batches(...parts: RecordedEvent[][]): AsyncGenerator<RecordedEvent[]> {
  yield* parts
}

function start(options: Partial<LakeReplayOptions> & Pick<LakeReplayOptions, 'events'>) {
  const clock = { timeMs: 5, now: () => START_MS * 2, monotonicMs: () => clock.timeMs }
  const sink = new MemorySink()
  const replay = new LakeReplay(
    {
      eventsTotal: 3,
      playFromNo: 1,
      speed: 'max',
      simulated: true,
      approximate: null,
      endsEarly: null,
      label: 'lake',
      lost: [],
      market: { seq: 77, timeMs: START_MS - 5_000 },
      ...options,
    },
    sink,
    clock,
    silentLog,
  )
  return { clock, sink, replay }
}

const offsets = (sink: MemorySink) => sink.received.map(({ receivedAtMs }) => receivedAtMs - START_MS)

describe('a replay of a lake', () => {
  it('applies every event with the market time that was in effect', async () => {
    const parts = [[recorded(1, 0), recorded(2, 10)], [recorded(3, 10)]]
    const { sink, replay } = start({ events: batches(...parts) })
    await replay.ready
    await replay.done
    expect(sink.received).toEqual(parts.flat().map(({ event, atMs }) => ({ event, receivedAtMs: atMs })))
    expect(replay.describe()).toMatchObject({
      state: 'finished',
      simulated: true,
      events: 3,
      eventsTotal: 3,
      accepted: 3,
      atMs: START_MS + 10,
    })
  })

  it('keeps its speed, and is ready when it has reached the wanted moment', async () => {
    const events = batches([recorded(1, 0), recorded(2, 60_000), recorded(3, 61_000), recorded(4, 63_000)])
    const { clock, sink, replay } = start({ events, speed: 10, playFromNo: 2 })
    await replay.ready
    await vi.waitFor(() => expect(offsets(sink)).toEqual([0, 60_000]))
    clock.timeMs += 100
    await vi.waitFor(() => expect(offsets(sink)).toEqual([0, 60_000, 61_000]))
    clock.timeMs += 199
    await sleep(20)
    expect(offsets(sink)).toHaveLength(3)
    clock.timeMs += 1
    await replay.done
    expect(offsets(sink)).toEqual([0, 60_000, 61_000, 63_000])
  })

  it('begins a recorded run at the position of this market, which never goes back', async () => {
    const run = { type: 'run', firstSeq: 3 } as Partial<MarketEvent>
    const { sink, replay } = start({ events: batches([recorded(1, 0, run)]) })
    await replay.done
    expect(sink.events).toMatchObject([{ type: 'run', firstSeq: 77 }])
  })

  it('has a gap from the last event before lost ones to the first behind them', async () => {
    const run = { type: 'run', firstSeq: 3 } as Partial<MarketEvent>
    const parts = [
      [recorded(3, 0), recorded(4, 10)],
      [recorded(8, 20, run)],
      [recorded(9, 30), recorded(12, 40)],
    ]
    const lost = [
      { from: 1, to: 2 },
      { from: 5, to: 10 },
    ]
    const { sink, replay } = start({ events: batches(...parts), lost, eventsTotal: 5 })
    await replay.done
    const gaps = sink.events.filter(({ type }) => type.endsWith('connect'))
    const away = (sinceMs: number, ts: number) => [
      { type: 'disconnect', feed: 'replay', sinceMs: START_MS + sinceMs, ts: START_MS + ts },
    ]
    const back = (ts: number) => [{ type: 'reconnect', feed: 'replay', ts: START_MS + ts }]
    expect(gaps).toEqual([
      ...[...away(-5_000, 0), ...back(0)],
      ...[...away(10, 20), ...back(20)],
      ...[...away(30, 40), ...back(40)],
    ])
    expect(replay.describe()).toMatchObject({ state: 'finished', events: 5, percent: 100 })
  })

  it('stops in the middle, and closes its source', async () => {
    let isClosed = false
    async function* endless(): AsyncGenerator<RecordedEvent[]> {
      try {
        for (let eventNo = 1; ; eventNo++) yield [recorded(eventNo, eventNo * 1_000)]
      } finally {
        isClosed = true
      }
    }
    const { sink, replay } = start({ events: endless(), speed: 1 })
    await replay.ready
    await replay.stop()
    const count = sink.received.length
    await sleep(20)
    expect(sink.received).toHaveLength(count)
    expect(isClosed).toBe(true)
    expect(replay.describe()).toMatchObject({ state: 'stopped' })
  })

  it('fails with its source: what came before stays, and the market is told of the loss', async () => {
    async function* broken(): AsyncGenerator<RecordedEvent[]> {
      yield [recorded(1, 0)]
      throw new Error('the lake does not have the events 2 to 3')
    }
    const { sink, replay } = start({ events: broken() })
    await replay.done
    expect(sink.events).toMatchObject([
      { type: 'solPrice' },
      { type: 'disconnect', feed: 'replay', ts: START_MS },
    ])
    expect(replay.describe()).toMatchObject({
      state: 'failed',
      error: 'the lake does not have the events 2 to 3',
    })
    const early = start({ events: broken(), playFromNo: 2 })
    await expect(early.replay.ready).rejects.toThrow('does not have')
  })
})
