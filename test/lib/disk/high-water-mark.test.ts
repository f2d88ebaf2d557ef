// The note of how far a sequence went: never more than was noted, soon the last number, however many come.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, expect, test } from 'vitest'
import { type Disk, type DiskFile, nodeDisk } from '../../../src/lib/disk/disk.ts'
import { HighWaterMark, readHighWaterMark } from '../../../src/lib/disk/high-water-mark.ts'

const folder = mkdtempSync(join(tmpdir(), 'mintlake-mark-'))
const path = join(folder, 'log.mark')
afterEach(() => rmSync(path, { force: true }))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const read = (): Promise<number> => readHighWaterMark(nodeDisk, path, 'log-1')

test('the last number is there soon, over processes, and none is lower than one before', async () => {
  const first = new HighWaterMark(nodeDisk, path, 'log-1')
  for (let reached = 1; reached <= 20; reached++) {
    first.note(reached)
    await expect.poll(read, { interval: 1 }).toBe(reached)
  }
  first.note(3)
  await first.close()
  first.note(99)
  expect(await read()).toBe(20)
  const second = new HighWaterMark(nodeDisk, path, 'log-1')
  expect(await read()).toBe(20)
  second.note(21)
  await second.close()
  expect(await read()).toBe(21)
  expect(readdirSync(folder)).toEqual(['log.mark'])
})

test('of many numbers few are written, and the last one is', async () => {
  let writes = 0
  const counting: Disk = {
    ...nodeDisk,
    create: async (at) => {
      const file = await nodeDisk.create(at)
      const write: DiskFile['write'] = (bytes, offset) => {
        writes++
        return file.write(bytes, offset)
      }
      return {
        ...{ write, sync: () => file.sync(), close: () => file.close(), size: () => file.size() },
        ...{ truncate: (bytes) => file.truncate(bytes), read: (into, offset) => file.read(into, offset) },
      }
    },
  }
  const mark = new HighWaterMark(counting, path, 'log-1')
  const beganMs = performance.now()
  for (let reached = 1; reached <= 5_000; reached++) {
    mark.note(reached)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await mark.close()
  expect(await read()).toBe(5_000)
  expect(writes).toBeLessThanOrEqual(65 + (performance.now() - beganMs) / 10)
})

test('a disk that refuses is tried again with the next number', async () => {
  const mark = new HighWaterMark(nodeDisk, join(folder, 'missing', 'log.mark'), 'log-1')
  mark.note(1)
  await mark.close()
  const refused = Promise.withResolvers<void>()
  let renames = 0
  const disk = {
    ...nodeDisk,
    rename: async (from: string, to: string) => {
      if (renames++ > 0) return nodeDisk.rename(from, to)
      setImmediate(refused.resolve)
      throw new Error('refused')
    },
  }
  const again = new HighWaterMark(disk, path, 'log-1')
  again.note(1)
  await refused.promise
  expect(await read()).toBe(0)
  again.note(2)
  await again.close()
  expect(await read()).toBe(2)
})
