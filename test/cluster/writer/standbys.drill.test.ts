// @module-tag drill
// Standbys of one data folder: which is not there yet, or which they find free at once.
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { seedToken } from '../../support/submission.ts'
import { temporaryFolder, untilReady } from '../../support/test-server.ts'
import { hasNats, skipped, TestCluster } from '../support.ts'

let cluster: TestCluster
afterEach(() => cluster.remove())

const SETTINGS = { role: 'standby', 'log-level': 'info' }

describe.skipIf(!hasNats)(`several standbys${skipped}`, () => {
  it('of a new cluster say who makes their folder, and one takes over once it is made', async () => {
    cluster = await TestCluster.start()
    const dataDir = join(temporaryFolder(), 'data')
    const standbys = [1, 2].map(() => cluster.launch(SETTINGS, { dataDir }))
    for (const { lines } of standbys)
      await expect
        .poll(() => lines.join('\n'), { timeout: 20_000 })
        .toMatch(/is not there: .* start once with --role writer/)
    await (await cluster.writer({}, { dataDir })).terminate()
    await untilReady(await Promise.race(standbys.map((each) => each.listening.then(() => each))))
  })

  it('that can never take over say so at once: the folder is of the other kind of market, or a file is missing', async () => {
    cluster = await TestCluster.start()
    const writer = await cluster.writer({ feed: 'none' }, { dataDir: temporaryFolder() })
    await seedToken(writer.client, Date.now())
    const info = () => readFileSync(join(writer.dataDir, 'store.json'), 'utf8')
    await expect.poll(info, { timeout: 20_000 }).toContain('"holdsReal": true')
    for (const [settings, sentence] of [
      [{ feed: 'simulator' }, "holds real data, and this feed's is simulated"],
      [{ feed: 'none', 'bus-login': 'ca=/no/such/file' }, '--bus-login ca: /no/such/file cannot be read'],
    ] as const) {
      const standby = cluster.launch({ ...SETTINGS, ...settings }, { dataDir: writer.dataDir })
      expect(await standby.exited).toBe(1)
      expect(standby.errorLines.join()).toContain(sentence)
      expect(standby.lines.join()).not.toContain('standing by')
    }
  })

  it('wait for the disk of their data folder, where a file that a setting names may be too, and for one that cannot be read now', async () => {
    cluster = await TestCluster.start()
    const disk = temporaryFolder()
    const dataDir = join(disk, 'data')
    const settings = { ...SETTINGS, feed: 'replay', replay: `file=${join(disk, 'trades.csv')}` }
    const standby = cluster.launch(settings, { dataDir })
    const lines = () => standby.lines.join('\n')
    await expect.poll(lines, { timeout: 20_000 }).toContain('is not there: mount its disk')
    writeFileSync(join(disk, 'trades.csv'), '')
    // A link to itself cannot be read, whoever asks.
    mkdirSync(join(disk, 'made'))
    symlinkSync('store.json', join(disk, 'made', 'store.json'))
    renameSync(join(disk, 'made'), dataDir)
    await expect.poll(lines, { timeout: 20_000 }).toContain('store.json cannot be read: ELOOP')
    rmSync(dataDir, { recursive: true })
    await expect.poll(() => lines().split('mount its disk').length, { timeout: 20_000 }).toBe(3)
  })

  it('take over one after another, and none ends because another was faster', async () => {
    cluster = await TestCluster.start()
    const first = await cluster.writer()
    const standbys = [1, 2, 3].map(() => cluster.launch(SETTINGS, { dataDir: first.dataDir }))
    let holder = first.process.pid
    let end = first.terminate
    while (standbys.length > 0) {
      for (const { lines } of standbys)
        await expect
          .poll(() => lines.join('\n'), { timeout: 20_000 })
          .toContain(`in use by process ${holder}`)
      await end()
      const next = await Promise.race(standbys.map((each) => each.listening.then(() => each)))
      await untilReady(next)
      standbys.splice(standbys.indexOf(next), 1)
      holder = next.process.pid
      end = next.terminate
    }
  })
})
