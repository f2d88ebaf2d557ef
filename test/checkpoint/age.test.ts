// How old the newest checkpoint is: a start has to apply again what was recorded since.
import { expect, test } from 'vitest'
import { openTestServer } from '../support/test-server.ts'
import { noonClock, pushSome } from './support.ts'

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000

test('is 0 in a quiet market: the checkpoint has all that was recorded. Later events count from when it was last found so', async () => {
  const clock = noonClock()
  const server = await openTestServer({}, { clock })
  const ageMs = async () => {
    const { text } = await server.client.get('/metrics')
    return 1_000 * Number(/^mintlake_checkpoint_age_seconds (\S+)$/m.exec(text)?.[1])
  }
  try {
    await pushSome(server, clock)
    await server.checkpoint()
    clock.pass(2 * HOUR_MS)
    expect(await ageMs()).toBe(0)
    await server.checkpoint()
    const foundAtMs = clock.now()
    clock.pass(MINUTE_MS)
    await pushSome(server, clock, 1)
    // One text serves all who ask within a moment.
    await expect.poll(ageMs).toBe(clock.now() - foundAtMs)
  } finally {
    await server.remove()
  }
})
