// Whether all profiles are with the store, while a write of some is on its way.
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createLog } from '../../src/lib/log.ts'
import { Market } from '../../src/market/market.ts'
import { prepareRecorder } from '../../src/recording/market-recorder.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import type { BarSink } from '../../src/store/types.ts'

const START_MS = 1_772_000_000_000
/** More than one commit has. */
const TOKENS = 300

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

test('they are not before it ends, also where the interval and a caller would write at once', async () => {
  const bars: BarSink = {
    ...{ add() {}, completeTo() {}, noteRewound() {}, compareWith() {}, flush: async () => {} },
    stats: () => ({ waiting: 0, dropped: 0 }),
  }
  const writes: { rows: number; end(): void }[] = []
  const write = (rows: readonly unknown[]) =>
    new Promise<void>((end) => void writes.push({ rows: rows.length, end }))
  const { callbacks, recorderOf } = prepareRecorder(
    { bars, profiles: { write, unconfirmed: 0 } },
    createLog('warn'),
  )
  const market = new Market({ tokensMax: TOKENS, ...callbacks })
  const recorder = recorderOf(market)
  for (let index = 0; index < TOKENS; index++) {
    const mint = mintOfSymbol(`token ${index}`)
    market.apply({ type: 'token', mint, ts: START_MS, name: `n${index}`, symbol: 'S' }, START_MS)
  }
  recorder.start()
  let isRecorded = false
  const recorded = recorder.recorded().then(() => {
    isRecorded = true
  })
  let written = 0
  while (written < TOKENS) {
    await expect.poll(() => writes.length, { interval: 1 }).toBeGreaterThan(0)
    await vi.advanceTimersByTimeAsync(1_000)
    expect({ isRecorded, hasAll: recorder.hasAllProfiles }).toEqual({ isRecorded: false, hasAll: false })
    const [{ rows, end }] = writes.splice(0, 1)
    written += rows
    end()
  }
  await recorded
  expect({ written, hasAll: recorder.hasAllProfiles }).toEqual({ written: TOKENS, hasAll: true })
  await recorder.stop()
})
