// @module-tag drill
// Standbys that find the data folder free at once: one takes over, and the others go on standing by.
import { afterEach, describe, expect, it } from 'vitest'
import { untilReady } from '../../support/test-server.ts'
import { hasNats, skipped, TestCluster } from '../support.ts'

let cluster: TestCluster
afterEach(() => cluster.remove())

describe.skipIf(!hasNats)(`several standbys${skipped}`, () => {
  it('take over one after another, and none ends because another was faster', async () => {
    cluster = await TestCluster.start()
    const first = await cluster.writer()
    const settings = { role: 'standby', 'log-level': 'info' }
    const standbys = [1, 2, 3].map(() => cluster.launch(settings, { dataDir: first.dataDir }))
    let holder = first.process.pid
    let end = first.terminate
    while (standbys.length > 0) {
      for (const { lines } of standbys)
        await expect
          .poll(() => lines.join('\n'), { timeout: 20_000 })
          .toContain(`in use by process ${holder}`)
      await end()
      const next = await Promise.race(standbys.map(async (each) => each.listening.then(() => each)))
      await untilReady(next)
      standbys.splice(standbys.indexOf(next), 1)
      holder = next.process.pid
      end = next.terminate
    }
  })
})
