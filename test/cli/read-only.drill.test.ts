// @module-tag drill
// Commands on a data folder whose disk is mounted read-only: those that read work, the others say why they do not.
import { execFileSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  closedBar,
  NOON_MS,
  openTestStore,
  removeFolder,
  submission,
  temporaryFolder,
} from '../store/support.ts'
import { runCommand } from '../support/terminal.ts'

const disk = temporaryFolder()
const mount = (...args: string[]): boolean => {
  try {
    execFileSync('mount', args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
const mayMount = mount('-t', 'tmpfs', 'none', disk)
const folder = join(disk, 'data')

describe.skipIf(!mayMount)('a read-only disk (needs the right to mount one)', () => {
  beforeAll(async () => {
    const writable = temporaryFolder()
    const store = await openTestStore(writable)
    await store.commit(submission('an_1'))
    store.bars.add(closedBar())
    await store.close()
    cpSync(writable, folder, { recursive: true })
    removeFolder(writable)
    mount('-o', 'remount,ro', disk)
  })
  afterAll(() => {
    execFileSync('umount', [disk])
    removeFolder(disk)
  })

  it('is read by a server and by commands', async () => {
    const store = await openTestStore(folder)
    expect(store.recovered.coverage).toMatchObject([{ count: 1 }])
    await store.close()
    expect(await runCommand(['sql', 'SELECT 1 FROM training', '--data-dir', folder])).toMatchObject({
      code: 0,
    })
  })

  it('goes on being read where bars cannot be brought to the lake: its process is not ended for that', async () => {
    const store = await openTestStore(folder)
    for (const t of [NOON_MS, NOON_MS + 60_000]) {
      store.bars.add(closedBar({ t }))
      await expect(store.flushLake()).rejects.toThrow('read-only')
    }
    expect((await store.status()).lakeProcess).toEqual({ isRunning: true, starts: 1 })
    await store.close()
  })

  it.for([['repair'], ['lake', 'repair'], ['lake', 'catalog'], ['backup', '--out', '/tmp/none']])(
    'is told by what writes: %s',
    async (words) => {
      const { code, err } = await runCommand([...words, '--data-dir', folder])
      expect(code).toBe(1)
      expect(err).toMatch(/^mintlake: the disk is read-only: nothing can be written \(.*\)\n$/)
      expect(err).not.toMatch(/ENOENT|\n {4}at |\[object/)
    },
  )
})
