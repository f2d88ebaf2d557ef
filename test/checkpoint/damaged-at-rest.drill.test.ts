// @module-tag drill
// A byte of the journal that changes at rest, under a running server: its market has what the journal lacks, and the next checkpoint
// keeps it.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CheckpointFile, type CheckpointHead, checkpointNames } from '../../src/checkpoint/checkpoint-file.ts'
import type { SteppedClock } from '../support/clock.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'
import {
  answersOf,
  checkpointsOf,
  crashImage,
  flipNewestSegment,
  journalOf,
  noonClock,
  pushSome,
  whenRecorded,
} from './support.ts'

let clock: SteppedClock
let server: TestServer
const others: TestServer[] = []

beforeEach(async () => {
  clock = noonClock()
  server = await openTestServer({}, { clock })
  await pushSome(server, clock, 6)
  await server.checkpoint()
  await pushSome(server, clock, 4)
  // Of what was never durable, no damage can be told: a power cut leaves the same.
  const eventNo = await whenRecorded(server)
  while ((await recordingOf(server)).journal.syncedEventNo < eventNo);
})
afterEach(async () => {
  for (const other of others.splice(0)) await other.remove()
  await server.remove()
})

const recordingOf = async (of: TestServer) => (await of.client.get('/health')).body.recording

/** A server that begins with what a power cut has left of another. */
async function afterCrash(of: TestServer, damage: (dataDir: string) => void = () => {}): Promise<TestServer> {
  const image = await crashImage(of)
  damage(image)
  const other = await openTestServer({}, { clock }, image)
  others.push(other)
  return other
}

const pathOf = (dataDir: string, eventNo: number): string =>
  join(checkpointsOf(dataDir), checkpointNames.nameOf(eventNo))

function headOf(dataDir: string, eventNo: number): CheckpointHead {
  const file = new CheckpointFile(pathOf(dataDir, eventNo))
  file.close()
  return file.head
}

test('the running market is copied, and nothing is lost', async () => {
  flipNewestSegment(server.dataDir)
  await pushSome(server, clock, 2)
  await server.checkpoint()
  const { checkpoints } = await recordingOf(server)
  expect(checkpoints).toMatchObject({ made: 2, copied: 1, failures: 0, trouble: null })
  expect(checkpoints.latest.lost).toBeGreaterThan(0)
  expect((await server.client.get('/metrics')).text).toMatch(/^mintlake_checkpoints_copied_total 1$/m)
  expect(headOf(server.dataDir, checkpoints.newest.eventNo).lostEvents).toBe(0)
  // As by versions that do not count.
  expect(readFileSync(pathOf(server.dataDir, checkpoints.newest.eventNo)).includes('lostEvents')).toBe(false)
  const before = answersOf(server.market)
  const other = await afterCrash(server)
  const { restored } = await recordingOf(other)
  expect(restored).toMatchObject({ fromEventNo: checkpoints.newest.eventNo, lost: 0 })
  expect(answersOf(other.market)).toEqual(before)
  // The next one is made by the process, from the copy.
  await pushSome(server, clock, 1)
  await server.checkpoint()
  expect((await recordingOf(server)).checkpoints).toMatchObject({ made: 3, copied: 1 })
})

test('it is copied too where no checkpoint is left to begin with, nor the beginning of the journal', async () => {
  await pushSome(server, clock, 2)
  await server.checkpoint()
  const damaged = readdirSync(checkpointsOf(server.dataDir)).filter((name) => name.endsWith('.checkpoint'))
  for (const name of damaged) writeFileSync(join(checkpointsOf(server.dataDir), name), 'no checkpoint')
  rmSync(join(journalOf(server.dataDir), readdirSync(journalOf(server.dataDir)).toSorted()[0]))
  await pushSome(server, clock, 1)
  await server.checkpoint()
  const { checkpoints } = await recordingOf(server)
  expect(checkpoints).toMatchObject({ made: 3, copied: 1, failures: 0, trouble: null })
  expect(checkpoints.latest.unusable).toHaveLength(1 + damaged.length)
  const before = answersOf(server.market)
  const other = await afterCrash(server)
  expect((await recordingOf(other)).restored).toMatchObject({
    fromEventNo: checkpoints.newest.eventNo,
    lost: 0,
  })
  expect(answersOf(other.market)).toEqual(before)
})

test('where it is killed before, the next run lacks events, and so do its checkpoints, which tell how many', async () => {
  await pushSome(server, clock, 2)
  const other = await afterCrash(server, flipNewestSegment)
  const { restored } = await recordingOf(other)
  expect(restored.lost).toBeGreaterThan(0)
  await pushSome(other, clock, 1)
  await other.checkpoint()
  const { checkpoints } = await recordingOf(other)
  expect(checkpoints).toMatchObject({ made: 1, copied: 0, failures: 0 })
  expect(headOf(other.dataDir, checkpoints.newest.eventNo).lostEvents).toBe(restored.lost)
  // It is the same count for the run behind it, which loses nothing more.
  const next = await afterCrash(other)
  expect((await recordingOf(next)).restored.lost).toBe(0)
  await pushSome(next, clock, 1)
  await next.checkpoint()
  const { newest } = (await recordingOf(next)).checkpoints
  expect(headOf(next.dataDir, newest.eventNo).lostEvents).toBe(restored.lost)
})
