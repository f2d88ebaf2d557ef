// The log of a process whose disk is full for a while.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { removeFolder, temporaryFolder } from '../store/support.ts'
import { noSmallDisk, openSmallDisk } from '../support/disk/small-disk.ts'

const BEFORE = 20_000
const AFTER = 10
/** Lines of one length, so that none fits where the one before did not; then as many as are asked for, and a death without a flush. */
const PROGRAM = `
  const { createLog } = await import(process.argv[1])
  const log = createLog('info')
  for (let line = 0; line < ${BEFORE}; line++) log.info({ line: String(line).padStart(9) }, 'a line')
  process.stderr.write('full')
  process.stdin.once('data', () => {
    for (let line = 0; line < ${AFTER}; line++) log.info({ line: String(line).padStart(9) }, 'later!')
    setImmediate(() => process.kill(process.pid, 'SIGKILL'))
  })
`

it.skipIf(noSmallDisk !== null)(
  'goes on once there is room, and says how many lines it has left out',
  async () => {
    const folder = temporaryFolder()
    const disk = await openSmallDisk(folder, '4m')
    try {
      disk.fill(8_192)
      const path = join(disk.root, 'log')
      const file = openSync(path, 'a')
      const module = new URL('../../src/lib/log.ts', import.meta.url).href
      const args = ['--no-warnings', '--input-type=module', '--eval', PROGRAM, module]
      const child = spawn(process.execPath, args, { stdio: ['pipe', file, 'pipe'] })
      closeSync(file)
      await once(child.stderr!, 'data')
      disk.clear()
      child.stdin!.write('go on')
      await once(child, 'exit')
      const lines = readFileSync(path, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
      const count = (msg: string) => lines.filter((line) => line.msg === msg).length
      expect(count('later!')).toBe(AFTER)
      const [{ lines: leftOut }, ...more] = lines.filter((line) => line.level === 40)
      expect(more).toEqual([])
      expect(leftOut).toBeGreaterThan(0)
      expect(count('a line') + leftOut).toBe(BEFORE)
    } finally {
      await disk.remove()
      removeFolder(folder)
    }
  },
)
