// The client of the lake process where a process cannot be started, and where it is closed during a start.

import { expect, test, vi } from 'vitest'
import { LakeClient } from '../../../src/store/process/client.ts'
import { KEEP_FOR_EVER } from '../../../src/store/retention-setting.ts'
import type { StoreLog } from '../../../src/store/types.ts'
import { NOON_MS, quietLog, removeFolder, temporaryFolder } from '../support.ts'
import { watchFork } from './forked.ts'

const fork = watchFork()

const clientOn = (dataDir: string, log: StoreLog = quietLog): LakeClient =>
  new LakeClient({
    ...{ dataDir, logId: 'test', runId: 'run', provenance: null, crash: null, now: () => NOON_MS },
    ...{
      ages: null,
      lakeGraceMs: 0,
      retain: KEEP_FOR_EVER,
      diskReserveMb: 0,
      log,
    },
  })

test('a process that the machine has no memory for is an error of the store, and can be started later', async () => {
  const dataDir = temporaryFolder()
  const client = clientOn(dataDir)
  fork.mockImplementationOnce(() => {
    throw Object.assign(new Error('spawn ENOMEM'), { code: 'ENOMEM' })
  })
  await expect(client.open()).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('ENOMEM'),
  })
  expect(client.lastFailure).toContain('could not be started')
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
  fork.mockClear()
  await client.open()
  process.kill(fork.mock.results[0].value.pid, 'SIGKILL')
  await vi.waitUntil(() => fork.mock.results.length === 2, { timeout: 30_000 })
  await client.close()
  const { exitCode, signalCode } = fork.mock.results[1].value
  expect(exitCode ?? signalCode).not.toBeNull()
  expect(lines).toEqual(['the lake process ended; starting another'])
  removeFolder(dataDir)
})
