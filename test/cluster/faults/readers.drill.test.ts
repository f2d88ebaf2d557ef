// @module-tag drill
// Readers whose clocks are wrong, and that are of another version, while the cluster is under load. That they end: short.drill.test.ts; that
// they stand still: the simulation.
import { describe, expect, test } from 'vitest'
import { hasNats, skipped } from '../support.ts'
import { pause } from './nodes.ts'
import { statusOf, underLoad, untilHealth } from './run.ts'

/** Makes Node's wall clock wrong by so much. */
const shiftedBy = (ms: number): string[] => [
  '--import',
  `data:text/javascript,const now = Date.now; Date.now = () => now() + ${ms}`,
]
/** Makes a program of the version of messages before this one. */
const OLDER = [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    import { registerHooks } from 'node:module'
    registerHooks({
      load(url, context, next) {
        const loaded = next(url, context)
        if (!url.endsWith('/cluster/messages.ts')) return loaded
        return { ...loaded, source: String(loaded.source).replace(/MESSAGE_FORMAT = \\d+/, 'MESSAGE_FORMAT = 0') }
      },
    })`)}`,
]

describe.skipIf(!hasNats)(`readers under load${skipped}`, () => {
  test(
    'clocks are ten seconds ahead and behind; one of an older version is refused with a sentence',
    {
      timeout: 180_000,
    },
    () =>
      underLoad({ firstReader: { nodeFlags: shiftedBy(10_000) } }, async (running) => {
        const behind = await running.addReader({}, { nodeFlags: shiftedBy(-10_000) })
        for (const { client } of running.readers) {
          const answer = await fetch(`${client.url}/api/v1/market?limit=1`)
          expect(answer.status).toBe(200)
          expect(Number(answer.headers.get('x-lag-ms'))).toBeLessThan(1_000)
        }
        await pause(1_500)
        expect(await statusOf(behind.client, '/readyz')).toBe(200)

        const older = running.cluster.launch({ role: 'reader' }, { nodeFlags: OLDER })
        const sentence = /run the same version of Mintlake everywhere/
        const client = await older.listening.catch(() => null)
        if (client === null) expect(older.errorLines.join('\n')).toMatch(sentence)
        else {
          await untilHealth(client, sentence)
          expect(await statusOf(client, '/readyz')).toBe(503)
          expect(await statusOf(client, '/api/v1/market')).toBe(503)
        }
        await older.kill()
      }),
  )
})
