// In: a server that closes while its lake process is being started anew. Out: proof that no process is left behind.
import type { ChildProcess } from 'node:child_process'
import { expect, test, vi } from 'vitest'
import { LakeClient } from '../../src/store/process/client.ts'
import { NOON_MS, quietLog, removeFolder, temporaryFolder } from './support.ts'

const started = vi.hoisted((): ChildProcess[] => [])
vi.mock('node:child_process', async (load) => {
  const real = await load<typeof import('node:child_process')>()
  const fork = (...asked: Parameters<typeof real.fork>): ChildProcess => {
    const child = real.fork(...asked)
    started.push(child)
    return child
  }
  return { ...real, fork }
})

test('a client that is closed ends the process that it is just starting, and says no word on it', async () => {
  const dataDir = temporaryFolder()
  const lines: string[] = []
  const error = (_fields: unknown, line: string): void => void lines.push(line)
  const client = new LakeClient({
    ...{ dataDir, logId: 'test', provenance: null, crash: null, now: () => NOON_MS },
    ...{ cooldownKeptMs: 0, lakeGraceMs: 0, retainDays: {}, diskReserveMb: 0, log: { ...quietLog, error } },
  })
  await client.open()
  process.kill(client.pid!, 'SIGKILL')
  await vi.waitUntil(() => started.length === 2, { timeout: 30_000 })
  await client.close()
  const [, { exitCode, signalCode }] = started
  expect(exitCode ?? signalCode).not.toBeNull()
  expect(lines).toEqual(['the lake process ended; starting another'])
  removeFolder(dataDir)
})
