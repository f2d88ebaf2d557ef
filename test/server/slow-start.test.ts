// A start that takes long: the history that a feed begins with is not late, however far the clock has gone on meanwhile.
import { expect, it, vi } from 'vitest'
import { SteppedClock } from '../support/clock.ts'
import { openTestServer } from '../support/test-server.ts'

it('the history of a simulated market is taken in whole, where a minute passes while it is delivered', {
  tags: 'drill',
}, async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const clock = new SteppedClock(1_795_000_000_000)
  let isReady = false
  const pass = (): void => {
    if (isReady) return
    clock.pass(15_000)
    vi.advanceTimersByTime(100)
    setImmediate(pass)
  }
  setImmediate(pass)
  try {
    const server = await openTestServer({ feed: 'simulator', simulator: 'tokens=400' }, { clock })
    isReady = true
    const { trades, lateDropped } = server.market.stats()
    expect(trades).toBeGreaterThan(5_000)
    expect(lateDropped).toBe(0)
    await server.remove()
  } finally {
    isReady = true
    vi.useRealTimers()
  }
})
