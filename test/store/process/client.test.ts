// The client of the lake process where a process cannot be started, and where it is closed during a start.
import type { ChildProcess } from 'node:child_process'
import { expect, test, vi } from 'vitest'
import { LakeClient } from '../../../src/store/process/client.ts'
import type { StoreLog } from '../../../src/store/types.ts'
import { NOON_MS, quietLog, removeFolder, temporaryFolder } from '../support.ts'

const started = vi.hoisted((): ChildProcess[] => [])
const machine = vi.hoisted(() => ({ isFull: false }))
vi.mock('node:child_process', async (load) => {
  const real = await load<typeof import('node:child_process')>()
  const fork = (...asked: Parameters<typeof real.fork>): ChildProcess => {
    if (machine.isFull) throw Object.assign(new Error('spawn ENOMEM'), { code: 'ENOMEM' })
    const child = real.fork(...asked)
    started.push(child)
    return child
  }
  return { ...real, fork }
})

const clientOn = (dataDir: string, log: StoreLog = quietLog): LakeClient =>
  new LakeClient({
    ...{ dataDir, logId: 'test', provenance: null, crash: null, now: () => NOON_MS },
    ...{
      cooldownKeptMs: 0,
      lakeGraceMs: 0,
      retainDays: {},
      retainEvents: { days: 0, bytesMax: 0, diskPct: 0 },
      diskReserveMb: 0,
      log,
    },
  })

test('a process that the machine has no memory for is an error of the store, and can be started later', async () => {
  const dataDir = temporaryFolder()
  const client = clientOn(dataDir)
  machine.isFull = true
  await expect(client.open()).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('ENOMEM'),
  })
  expect(client.lastFailure).toContain('could not be started')
  machine.isFull = false
  await client.open()
  expect(client.lastFailure).toBeNull()
  await client.close()
  removeFolder(dataDir)
})

test('a client that is closed ends the process that it is just starting, and logs nothing about it', async () => {
  const dataDir = temporaryFolder()
  const lines: string[] = []
  const error = (_fields: unknown, line: string): void => void lines.push(line)
  const client = clientOn(dataDir, { ...quietLog, error })
  started.length = 0
  await client.open()
  process.kill(client.pid!, 'SIGKILL')
  await vi.waitUntil(() => started.length === 2, { timeout: 30_000 })
  await client.close()
  const [, { exitCode, signalCode }] = started
  expect(exitCode ?? signalCode).not.toBeNull()
  expect(lines).toEqual(['the lake process ended; starting another'])
  removeFolder(dataDir)
})
