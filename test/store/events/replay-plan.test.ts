// Where a replay begins and ends, by what a lake has.
import { describe, expect, it } from 'vitest'
import type { RecordedRun } from '../../../src/store/query/recorded-events.ts'
import { type LakeContents, planReplay } from '../../../src/store/query/replay-plan.ts'

const SETTINGS = {
  tokensMax: 100,
  newWindowMs: 1,
  solPriceMaxAgeMs: 0,
  barsPerTokenMax: 1_024,
  versionsMax: 64,
}
const runAt = (eventNo: number, checkpointEventNo: number | null, settings = SETTINGS): RecordedRun => ({
  eventNo,
  atMs: eventNo,
  event: {
    type: 'run',
    ts: eventNo,
    firstSeq: 0,
    header: {
      runId: `run-${eventNo}`,
      version: '0.2.0',
      formatVersion: 1,
      node: 'v22',
      settings,
      feeds: ['push'],
      simulated: true,
      checkpointEventNo,
      startedAtMs: eventNo,
    },
  },
})

const keptAt = (eventNo: number, settings = SETTINGS) => ({ eventNo, settings })

/** A lake of three runs, of which the second continued the first one and the third began anew. */
const lake = (over: Partial<LakeContents> = {}): LakeContents => ({
  runs: [runAt(1, null), runAt(100, 90), runAt(200, null)],
  held: { from: 1, to: 300, lost: [] },
  checkpoints: [],
  wanted: { from: 1, to: 300 },
  warmUpFrom: 1,
  ...over,
})

describe('a replay', () => {
  it('of everything goes through a run that continued the first, and ends where another market began', () => {
    expect(planReplay(lake())).toMatchObject({
      range: { from: 1, to: 199 },
      checkpointEventNo: null,
      playFromNo: 1,
      settings: SETTINGS,
      simulated: true,
      approximate: null,
      endsEarly: expect.stringContaining('1970-01-01T00:00:00.200Z'),
    })
  })

  it('from a moment on begins with its run, and plays from that moment', () => {
    expect(planReplay(lake({ wanted: { from: 150, to: 180 } }))).toMatchObject({
      range: { from: 1, to: 180 },
      playFromNo: 150,
      approximate: null,
      endsEarly: null,
    })
    expect(planReplay(lake({ wanted: { from: 250, to: 300 } }))).toMatchObject({
      range: { from: 200, to: 300 },
      playFromNo: 250,
    })
  })

  it('begins with the latest checkpoint that is not behind the moment', () => {
    const plan = planReplay(
      lake({ wanted: { from: 150, to: 180 }, checkpoints: [90, 149, 160].map((at) => keptAt(at)) }),
    )
    expect(plan).toMatchObject({ range: { from: 150, to: 180 }, checkpointEventNo: 149, approximate: null })
  })

  it('does not use a checkpoint of another market', () => {
    const plan = planReplay(lake({ wanted: { from: 250, to: 300 }, checkpoints: [keptAt(199)] }))
    expect(plan).toMatchObject({ range: { from: 200, to: 300 }, checkpointEventNo: null })
  })

  it('without an exact start is approximate, and says so', () => {
    const contents = lake({
      held: { from: 50, to: 300, lost: [] },
      wanted: { from: 150, to: 180 },
      warmUpFrom: 120,
    })
    expect(planReplay({ ...contents, runs: contents.runs.slice(1) })).toMatchObject({
      range: { from: 120, to: 180 },
      playFromNo: 150,
      settings: SETTINGS,
      approximate: expect.stringContaining('neither the beginning of this run'),
    })
    // The events behind a checkpoint may have gone.
    expect(planReplay({ ...contents, checkpoints: [keptAt(20)] })).toMatchObject({ checkpointEventNo: null })
  })

  it('is approximate by losses of its range that are settled, and ends at one that is not', () => {
    const lost = [
      { from: 20, to: 30, isSettled: true },
      { from: 31, to: 40, isSettled: true },
      { from: 25, to: 35, isSettled: true },
      { from: 120, to: 130, isSettled: true },
      { from: 250, to: 260, isSettled: false },
      { from: 255, to: 270, isSettled: true },
    ]
    const held = { from: 1, to: 300, lost }
    expect(planReplay(lake({ held, wanted: { from: 1, to: 110 } }))).toMatchObject({
      lost: [{ from: 20, to: 40, isSettled: true }],
      approximate: 'events between the numbers 20 and 40 are lost',
      endsEarly: null,
    })
    expect(planReplay(lake({ held, wanted: { from: 1, to: 125 } }))).toMatchObject({
      lost: [{ to: 40 }, { from: 120, to: 125 }],
      approximate: 'events between the numbers 20 and 125 are lost, in 2 places',
    })
    expect(planReplay(lake({ held, wanted: { from: 250, to: 300 } }))).toMatchObject({
      lost: [],
      approximate: null,
      endsEarly: expect.stringMatching(
        /^events between the numbers 250 and 270 are lost: the replay fails there/,
      ),
    })
  })

  it('ends where a run had other settings', () => {
    const runs = [runAt(1, null), runAt(100, 90, { ...SETTINGS, tokensMax: 5 })]
    expect(planReplay(lake({ runs }))).toMatchObject({ range: { from: 1, to: 99 } })
    expect(
      planReplay(
        lake({
          runs,
          wanted: { from: 150, to: 180 },
          checkpoints: [keptAt(140, runs[1].event.header.settings)],
        }),
      ),
    ).toMatchObject({
      range: { from: 141, to: 180 },
      settings: { tokensMax: 5 },
    })
  })
})
