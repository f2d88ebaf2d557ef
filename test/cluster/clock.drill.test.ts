// @module-tag drill
// A node whose clock is set back while it has no connection to NATS.
import { afterEach, expect, it, vi } from 'vitest'
import { connectBus } from '../../src/cluster/bus.ts'
import { HOUR_MS } from '../../src/lib/time.ts'
import { busSettingsOf, hasNats, skipped, startNats } from './support.ts'

afterEach(() => void vi.restoreAllMocks())

it.skipIf(!hasNats)(`connects again in time, whatever its clock says${skipped}`, async () => {
  const nats = await startNats()
  try {
    const bus = await connectBus(busSettingsOf(nats.url), 'a node of this test')
    try {
      const connected = Promise.withResolvers<void>()
      bus.watch.onConnected(connected.resolve)
      const now = Date.now
      await nats.kill()
      vi.spyOn(Date, 'now').mockImplementation(() => now() - HOUR_MS)
      await nats.start()
      await connected.promise
      expect(bus.watch.isConnected).toBe(true)
    } finally {
      await bus.close()
    }
  } finally {
    await nats.remove()
  }
})
