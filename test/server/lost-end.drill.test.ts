// The newest files of log and journal are deleted or cut after a kill: what was acknowledged and is gone is told by `lake verify`, in the
// log and in /health, and the server starts. What a kill leaves is not taken for it.
// @module-tag drill
import { cpSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { nodeDisk } from '../../src/lib/disk/disk.ts'
import { readHighWaterMark } from '../../src/lib/disk/high-water-mark.ts'
import { readFolderInfo } from '../../src/store/data-folder/folder-info.ts'
import { readLog } from '../../src/store/log/reader.ts'
import { journalMarkPath, logFolder, logMarkPath } from '../../src/store/paths.ts'
import { seedToken, submission, submit } from '../support/submission.ts'
import { runCommand } from '../support/terminal.ts'
import {
  launchServer,
  type ServerProcess,
  spawnServer,
  temporaryFolder,
  untilReady,
} from '../support/test-server.ts'

const SETTINGS = { 'submit-limits': 'rate=0,cooldown-ms=0', 'lake-tidy': 'every-ms=0', 'log-level': 'info' }
const SUBMISSIONS = 12
const TRADES = 500

const folders: string[] = []
let server: ServerProcess | null = null
afterAll(async () => {
  await server?.kill()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

let killed = ''
/** Of the last submission. */
let analysisId = ''
/** The marks are written without anyone waiting for them: a kill right after an answer may come before its mark. */
async function untilNoted(): Promise<void> {
  const { logId } = readFolderInfo(killed)!
  const { lastLsn } = await readLog({ folder: logFolder(killed), logId, afterLsn: 0 }, () => undefined)
  const isNoted = async (): Promise<boolean> =>
    (await readHighWaterMark(nodeDisk, logMarkPath(killed), logId)) === lastLsn &&
    (await readHighWaterMark(nodeDisk, journalMarkPath(killed), logId)) > TRADES
  await vi.waitUntil(isNoted, { timeout: 20_000, interval: 20 })
}

/** A server is killed when its last submission was acknowledged, and is known to be durable. */
beforeAll(async () => {
  killed = temporaryFolder()
  folders.push(killed)
  server = await spawnServer(SETTINGS, killed)
  const { client } = server
  const key = await client.register()
  const mint = await seedToken(client, Date.now())
  const trade = { type: 'trade', mint, ts: Date.now(), side: 'buy', tokenAmount: 1, priceUsd: 1 }
  await client.push(...Array.from({ length: TRADES }, () => trade))
  const isSynced = async (): Promise<boolean> => {
    const { syncedEventNo, writtenEventNo } = (await client.get('/health')).body.recording.journal
    return writtenEventNo > TRADES && syncedEventNo === writtenEventNo
  }
  await vi.waitUntil(isSynced, { timeout: 20_000, interval: 50 })
  for (let sent = 0; sent < SUBMISSIONS; sent++) {
    const answer = await submit(client, key, submission(mint))
    expect(answer.status, answer.text).toBe(201)
    analysisId = answer.body.analysisId
  }
  await untilNoted()
  await server.kill()
})

const copyOfKilled = (): string => {
  const folder = temporaryFolder()
  folders.push(folder)
  cpSync(killed, folder, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !path.endsWith('.lock'),
  })
  return folder
}

const newest = (folder: string, of: 'log' | 'journal'): string =>
  join(
    folder,
    of,
    readdirSync(join(folder, of))
      .filter((name) => /^\d+\./.test(name))
      .sort()
      .at(-1)!,
  )

const verify = (folder: string) => runCommand(['lake', 'verify', '--data-dir', folder])

/** Starts on the folder, and stops. @returns what it said */
async function startAgain(folder: string) {
  const launched = launchServer(SETTINGS, folder)
  server = await untilReady(launched)
  const { reasons, status } = (await server.client.get('/health')).body
  const found = (await server.client.get(`/api/v1/analysis/${analysisId}`)).status
  expect(await server.terminate()).toBe(0)
  return { reasons: reasons.join('; '), status, found, lines: server.lines.join('\n') }
}

/** Cuts a log in the middle of the line of this submission. */
function cutAt(path: string, id: string): void {
  truncateSync(path, readFileSync(path).indexOf(id))
}

test('a kill alone is no loss', async () => {
  const folder = copyOfKilled()
  expect(await verify(folder)).toMatchObject({ code: 0 })
  expect(await startAgain(folder)).toMatchObject({ reasons: '', status: 'ready', found: 200 })
})

describe('of the log', () => {
  test.each([
    ['the last submission is cut off', (folder: string) => cutAt(newest(folder, 'log'), analysisId)],
    ['the folder is gone', (folder: string) => rmSync(join(folder, 'log'), { recursive: true })],
  ])('%s', async (_, damage) => {
    const folder = copyOfKilled()
    damage(folder)
    const verified = await verify(folder)
    expect(verified.code).toBe(1)
    expect(verified.out + verified.err).toMatch(/the commits \d+ to \d+ are lost/)
    const started = await startAgain(folder)
    expect(started).toMatchObject({ status: 'degraded', found: 404 })
    expect(started.reasons).toMatch(/the log is damaged: .*the commits \d+ to \d+ are lost/)
    expect(started.lines).toMatch(/the log is damaged/)
  })
})

describe('of the journal', () => {
  test.each([
    ['the newest segment is deleted', (folder: string) => rmSync(newest(folder, 'journal'))],
    ['the folder is gone', (folder: string) => rmSync(join(folder, 'journal'), { recursive: true })],
  ])('%s', async (_, damage) => {
    const folder = copyOfKilled()
    damage(folder)
    const verified = await verify(folder)
    expect(verified.code).toBe(1)
    expect(verified.out + verified.err).toMatch(/the events \d+ to \d+ are lost/)
    const started = await startAgain(folder)
    expect(started).toMatchObject({ status: 'degraded', found: 200 })
    expect(started.reasons).toMatch(/the end of the journal is missing|recorded events that are lost/)
    expect(started.lines).toMatch(/the end of the journal is missing/)
    // The lake knows from then on, until it is acknowledged.
    const told = await verify(folder)
    expect(told.out + told.err).toMatch(/recorded events \d+ to \d+ are lost/)
    expect((await runCommand(['lake', 'repair', '--data-dir', folder])).code).toBe(0)
    expect(await verify(folder)).toMatchObject({ code: 0 })
  })
})
