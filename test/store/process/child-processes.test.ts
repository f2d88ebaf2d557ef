// Child processes that cannot be started, or that do not end.

import type { ChildProcess } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Merger } from '../../../src/store/compaction/merger.ts'
import { Exports } from '../../../src/store/export/exports.ts'
import { EXPORT_IDLE_MS, LAKE_PROCESS_EXIT_MS } from '../../../src/store/limits.ts'
import { LakeProcess } from '../../../src/store/process/rpc.ts'
import { KEEP_FOR_EVER } from '../../../src/store/retention-setting.ts'
import { quietLog, removeFolder, temporaryFolder } from '../support.ts'
import { watchFork } from './forked.ts'

const fork = watchFork()

/** A process that does only what the test tells it to do. */
class Process extends EventEmitter {
  readonly pid = 4_711
  connected = true
  readonly exitCode = null
  readonly signalCode = null
  readonly heard: unknown[] = []
  readonly send = (message: unknown): void => void this.heard.push(message)
  readonly kill = vi.fn()
  readonly disconnect = (): void => {
    this.connected = false
  }
  readonly ref = (): void => {}
  readonly unref = (): void => {}
}

const asChild = (process: Process) => process as unknown as ChildProcess

const cannotStart = (): never => {
  throw Object.assign(new Error('spawn ENOMEM'), { code: 'ENOMEM' })
}
const unavailable = { name: 'StoreError', code: 'unavailable' }

let dataDir: string
beforeEach(() => {
  fork.mockReset()
  dataDir = temporaryFolder()
})
afterEach(() => {
  vi.useRealTimers()
  removeFolder(dataDir)
})

const MERGE = { table: 'training', files: [], rows: 0, target: '', spillDir: '' }
const EXPORT = { format: 'arrow', limit: 1, fromMs: null, toMs: null, since: null } as const

test('a merge whose process cannot be started is refused; the next one starts another', async () => {
  const merger = new Merger()
  fork.mockImplementationOnce(cannotStart)
  await expect(merger.copy(MERGE)).rejects.toMatchObject(unavailable)
  const process = new Process()
  fork.mockReturnValueOnce(asChild(process))
  const copied = merger.copy(MERGE)
  process.emit('message', { result: { rows: 3, sha256: '', peakBytes: 0 } })
  expect(await copied).toMatchObject({ rows: 3 })
})

test('an export whose process cannot be started is refused, and does not count as running', async () => {
  const exports = new Exports({ dataDir, log: quietLog })
  fork.mockImplementationOnce(cannotStart)
  await expect(exports.begin(EXPORT).head).rejects.toMatchObject(unavailable)
  expect(exports.running).toBe(0)
})

test('a process that is being ended for idleness gets no further export', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const [first, second] = [new Process(), new Process()]
  fork.mockReturnValueOnce(asChild(first)).mockReturnValueOnce(asChild(second))
  const exports = new Exports({ dataDir, log: quietLog })
  const job = exports.begin(EXPORT)
  first.emit('message', { result: undefined })
  await expect.poll(() => exports.running).toBe(0)
  expect(await job.next()).toBeNull()
  vi.advanceTimersByTime(EXPORT_IDLE_MS)
  exports.begin(EXPORT)
  expect(first.heard).toHaveLength(1)
  expect(second.heard).toHaveLength(1)
})

test('a lake process that does not end after it was killed is not waited for; its requests are rejected', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const child = new Process()
  fork.mockReturnValueOnce(asChild(child))
  const lines: string[] = []
  const onExit = vi.fn()
  const settings = { dataDir, logId: 'test', runId: 'run', provenance: null, crash: null, ages: null }
  const lake = new LakeProcess(
    {
      ...settings,
      lakeGraceMs: 0,
      retain: KEEP_FOR_EVER,
      diskReserveMb: 0,
    },
    { log: ({ message }) => void lines.push(message), onTrouble: () => {}, onExit },
  )
  const asked = lake.request('status', {}, 10 * LAKE_PROCESS_EXIT_MS)
  const rejected = expect(asked).rejects.toMatchObject(unavailable)
  const ended = lake.end(100)
  await vi.advanceTimersByTimeAsync(100)
  expect(child.kill).toHaveBeenCalledWith('SIGKILL')
  await vi.advanceTimersByTimeAsync(LAKE_PROCESS_EXIT_MS)
  await ended
  await rejected
  expect(lines).toEqual([expect.stringContaining('has not ended')])
  expect(onExit).not.toHaveBeenCalled()
})
