// Tests of how a feed tells that it refuses much of what it gets: from which share, for how long, with what.
import { beforeEach, describe, expect, test } from 'vitest'
import {
  REFUSAL_JUDGED_MIN,
  REFUSAL_REASONS_MAX,
  REFUSAL_SAMPLE_CHARS_MAX,
  REFUSAL_SAMPLES_MAX,
  REFUSAL_SPAN_MS,
  REFUSAL_SPANS,
} from '../../src/ingest/limits.ts'
import { RefusalWatch, tellRefusals } from '../../src/ingest/refusals.ts'
import { MemoryLog } from './memory-sink.ts'

let nowMs: number
let log: MemoryLog
let watch: RefusalWatch
beforeEach(() => {
  nowMs = 5_000_000
  log = new MemoryLog()
  watch = new RefusalWatch('push', { now: () => 0, monotonicMs: () => nowMs }, log)
})

const accept = (count: number): void => {
  for (let left = count; left > 0; left--) watch.accept()
}
const refuse = (count: number, reason = 'late', sample = 'a sample'): void => {
  for (let left = count; left > 0; left--) watch.refuse(reason, () => sample)
}

describe('a feed that refuses', () => {
  test('a tenth is not told, more than a tenth is: once in the log, with reasons and the first samples', () => {
    accept(900)
    refuse(100, 'late', 'the first')
    expect(watch.status()).toMatchObject({ isTooMuch: false, share: 0.1, refused: 100, received: 1_000 })
    expect(log.lines).toEqual([])
    refuse(1, 'time_invalid', 'time "06/01/2025"')
    refuse(5, 'late', 'another')
    const status = watch.status()
    expect(status).toMatchObject({
      isTooMuch: true,
      reasons: { late: 105, time_invalid: 1 },
      samples: [
        { reason: 'late', sample: 'the first' },
        { reason: 'time_invalid', sample: 'time "06/01/2025"' },
      ],
    })
    expect(tellRefusals('push', status)).toBe(
      'the feed push has refused 106 of 1006 records of the last 5 minutes (late 105, time_invalid 1); ' +
        'the first of them: late: the first; time_invalid: time "06/01/2025"',
    )
    expect(log.lines).toHaveLength(1)
    expect(log.lines[0]).toMatchObject({ level: 'warn', message: expect.stringContaining('late') })
  })

  test('recovers when the window has passed, and says so', () => {
    refuse(REFUSAL_JUDGED_MIN)
    expect(watch.status().isTooMuch).toBe(true)
    nowMs += REFUSAL_SPANS * REFUSAL_SPAN_MS
    expect(watch.status()).toMatchObject({ isTooMuch: false, received: 0, reasons: {}, samples: [] })
    expect(log.lines.map(({ level }) => level)).toEqual(['warn', 'info'])
    refuse(REFUSAL_JUDGED_MIN)
    expect(log.lines.map(({ level }) => level)).toEqual(['warn', 'info', 'warn'])
  })

  test('recovers as soon as the share has fallen, and says so without being asked', () => {
    refuse(10)
    accept(1_000)
    nowMs += REFUSAL_SPAN_MS
    accept(64)
    expect(log.lines.map(({ level }) => level)).toEqual(['warn', 'info'])
  })

  test('does not forget what the last minutes brought: they slide', () => {
    for (let span = 0; span < REFUSAL_SPANS; span++) {
      refuse(4)
      nowMs += REFUSAL_SPAN_MS
    }
    // The first span has just left.
    expect(watch.status().refused).toBe(4 * (REFUSAL_SPANS - 1))
  })

  test('is not judged by very little, unless that was all', () => {
    refuse(REFUSAL_JUDGED_MIN - 1)
    expect(watch.status().isTooMuch).toBe(false)
    nowMs += 2 * REFUSAL_SPANS * REFUSAL_SPAN_MS
    expect(watch.end()).toBe(
      `the feed push has refused ${REFUSAL_JUDGED_MIN - 1} of ${REFUSAL_JUDGED_MIN - 1} records ` +
        `(late ${REFUSAL_JUDGED_MIN - 1}); the first of them: late: a sample`,
    )
    expect(watch.status()).toMatchObject({ isTooMuch: true, windowMs: null })
  })
})

test('reasons and samples have their maxima, and control characters do not reach the log', () => {
  for (let at = 0; at < 2 * REFUSAL_REASONS_MAX; at++)
    refuse(1, `reason ${at}`, `a\n\u0000b${'x'.repeat(500)}`)
  const { reasons, samples, refused } = watch.status()
  expect(refused).toBe(2 * REFUSAL_REASONS_MAX)
  expect(Object.keys(reasons)).toHaveLength(REFUSAL_REASONS_MAX)
  expect(samples).toHaveLength(REFUSAL_SAMPLES_MAX)
  expect(samples[0].sample).toHaveLength(REFUSAL_SAMPLE_CHARS_MAX)
  expect(samples[0].sample).toMatch(/^a b/)
})
