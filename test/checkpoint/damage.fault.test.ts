// Checkpoints that are damaged or foreign, a journal with holes or that cannot be written, a process that is killed while it makes a
// checkpoint: each is told in a sentence, and the server starts with what is good. A disk that is full: ../server/disk.fault.test.ts.
import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createLog } from '../../src/lib/log.ts'
import type { SteppedClock } from '../support/clock.ts'
import { openTestServer, type Settings, type TestServer } from '../support/test-server.ts'
import { answersOf, checkpointsOf, crashImage, journalOf, noonClock, pushSome } from './support.ts'

let clock: SteppedClock
let server: TestServer
const others: TestServer[] = []

beforeEach(async () => {
  clock = noonClock()
  server = await openTestServer({}, { clock })
})
afterEach(async () => {
  for (const other of others.splice(0)) await other.remove()
  await server.remove()
})

const recordingOf = async (of: TestServer) => (await of.client.get('/health')).body.recording

/** A log that collects its sentences. */
function listeningLog() {
  const sentences: string[] = []
  const log = createLog('warn')
  for (const level of ['info', 'warn', 'error'] as const)
    log[level] = (details: object, message?: string) =>
      void sentences.push(`${message} ${JSON.stringify(details)}`)
  return { log, sentences }
}

async function startOn(
  image: string,
  settings: Settings = {},
): Promise<{ other: TestServer; sentences: string[] }> {
  const { log, sentences } = listeningLog()
  const other = await openTestServer(settings, { clock, log }, image)
  others.push(other)
  return { other, sentences }
}

const filesOf = (folder: string): string[] =>
  readdirSync(folder)
    .toSorted()
    .map((name) => join(folder, name))

describe('a server with two checkpoints crashes', () => {
  let image: string
  let before: ReturnType<typeof answersOf>
  beforeEach(async () => {
    for (let round = 0; round < 2; round++) {
      await pushSome(server, clock, 6)
      await server.checkpoint()
    }
    await pushSome(server, clock, 2)
    before = answersOf(server.market)
    image = await crashImage(server)
  })

  // A flipped byte, anywhere in it: test/simulate.
  test.each(['its end', 'its name', 'all of it'])(
    'a newest one with damage to %s: the older one is taken',
    { tags: 'drill' },
    async (part) => {
      const [older, newest] = filesOf(checkpointsOf(image))
      if (part === 'its end') truncateSync(newest, readFileSync(newest).length - 5)
      else if (part === 'its name') renameSync(older, newest)
      else writeFileSync(newest, '')
      if (part === 'its name') cpSync(newest, older)
      const { other, sentences } = await startOn(image)
      expect(answersOf(other.market)).toEqual(before)
      expect(sentences.filter((sentence) => sentence.startsWith('a checkpoint cannot be used'))).toHaveLength(
        1,
      )
      // It is not counted on: further checkpoints are made from the good one, and it is deleted.
      await pushSome(other, clock, 1)
      await other.checkpoint()
      await pushSome(other, clock, 1)
      await other.checkpoint()
      expect((await recordingOf(other)).checkpoints).toMatchObject({ failures: 0, trouble: null })
      expect(filesOf(checkpointsOf(image))).not.toContain(newest)
    },
  )

  test('without any: the journal has not all, and the market begins empty', { tags: 'drill' }, async () => {
    rmSync(checkpointsOf(image), { recursive: true })
    // The part that was deleted since both checkpoints had it.
    rmSync(filesOf(journalOf(image))[0])
    const { other, sentences } = await startOn(image)
    expect(other.market.stats().tokens).toBe(0)
    expect(sentences.some((sentence) => sentence.includes('the market begins empty'))).toBe(true)
    expect((await recordingOf(other)).restored).toBeNull()
    // It is recorded as a new market, and restored as that.
    await pushSome(other, clock, 3)
    const { other: next } = await startOn(await crashImage(other))
    expect(answersOf(next.market)).toEqual(answersOf(other.market))
  })

  test('both of another folder: the market begins empty', { tags: 'drill' }, async () => {
    const foreign = await openTestServer({}, { clock })
    others.push(foreign)
    await pushSome(foreign, clock, 1)
    await foreign.checkpoint()
    const [file] = filesOf(checkpointsOf(foreign.dataDir))
    for (const path of filesOf(checkpointsOf(image))) cpSync(file, path)
    rmSync(journalOf(image), { recursive: true })
    const { other, sentences } = await startOn(image)
    expect(other.market.stats().tokens).toBe(0)
    expect(sentences.filter((sentence) => sentence.includes('belongs to another data folder'))).toHaveLength(
      2,
    )
  })

  test('a journal with a hole behind the checkpoint: what is behind it is taken, and the hole is a gap', {
    tags: 'drill',
  }, async () => {
    const segments = filesOf(journalOf(image))
    const newest = segments.at(-1)!
    // Half of the newest segment, whose events were durable: a later run has gone on behind it.
    const { other: first } = await startOn(image)
    await pushSome(first, clock, 2)
    const isSynced = async (): Promise<boolean> => {
      const { journal } = await recordingOf(first)
      return journal.syncedEventNo === journal.writtenEventNo
    }
    await expect.poll(isSynced).toBe(true)
    const later = await crashImage(first)
    truncateSync(
      join(journalOf(later), newest.slice(newest.lastIndexOf('/') + 1)),
      Math.floor(readFileSync(newest).length / 2),
    )
    const { other, sentences } = await startOn(later)
    expect(sentences.some((sentence) => sentence.startsWith('a part of the journal is damaged'))).toBe(true)
    const { restored } = await recordingOf(other)
    expect(restored.lost).toBeGreaterThan(0)
    const { gaps } = (await other.client.get('/health')).body
    expect(gaps.recent.some(({ reason }: { reason: string }) => reason === 'lost')).toBe(true)
    expect(other.market.stats().tokens).toBe(first.market.stats().tokens)
  })

  test('a torn end of the journal loses what was being written', async () => {
    const newest = filesOf(journalOf(image)).at(-1)!
    truncateSync(newest, readFileSync(newest).length - 30)
    // It may have been synced meanwhile: as if it had not.
    rmSync(join(image, 'journal.mark'), { force: true })
    const { other, sentences } = await startOn(image)
    expect(sentences.filter((sentence) => sentence.includes('damaged'))).toEqual([])
    expect((await recordingOf(other)).restored.lost).toBe(0)
    expect(other.market.stats().tokens).toBe(before.tokens.length)
  })
})

/** Kills the process that makes a checkpoint, as soon as there is one. */
async function killCheckpointProcess(): Promise<void> {
  const pidOf = () =>
    execFileSync('ps', ['-A', '-o', 'ppid=,pid=,args='], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line.includes('checkpoint-process'))
      .map((line) => line.trim().split(/\s+/))
      .find(([parent]) => parent === `${process.pid}`)?.[1]
  let pid: string | undefined
  await expect.poll(() => (pid = pidOf()), { timeout: 10_000, interval: 5 }).toBeDefined()
  process.kill(Number(pid), 'SIGKILL')
}

// At each operation on the disk: crash.test.ts.
test('a process that is killed while it makes a checkpoint harms nothing, which is told, and the next one makes it', {
  tags: 'drill',
}, async () => {
  await pushSome(server, clock, 4)
  const before = answersOf(server.market)
  const made = server.checkpoint()
  await killCheckpointProcess()
  await made
  const { checkpoints, reasons } = await recordingOf(server)
  expect(checkpoints).toMatchObject({ made: 0, failures: 1, trouble: expect.stringContaining('SIGKILL') })
  expect(reasons[0]).toContain('no checkpoint of the market can be made')
  const { other } = await startOn(await crashImage(server))
  expect(answersOf(other.market)).toEqual(before)
  await server.checkpoint()
  expect((await recordingOf(server)).checkpoints).toMatchObject({ made: 1, failures: 1, trouble: null })
  expect(readdirSync(checkpointsOf(server.dataDir)).map((name) => name.split('.')[1])).toEqual(['checkpoint'])
})

test('a journal folder that cannot be written: the server works, says so, and records once it can', {
  tags: 'drill',
}, async () => {
  // A file where the folder should be.
  rmSync(journalOf(server.dataDir), { recursive: true, force: true })
  writeFileSync(journalOf(server.dataDir), '')
  await pushSome(server, clock, 2)
  await expect.poll(async () => (await server.client.get('/health')).body.status).toBe('degraded')
  const { reasons } = (await server.client.get('/health')).body
  expect(reasons[0]).toContain('market events are not recorded')
  rmSync(journalOf(server.dataDir))
  await expect
    .poll(async () => (await server.client.get('/health')).body.status, { timeout: 10_000 })
    .toBe('ready')
  const before = answersOf(server.market)
  const { other } = await startOn(await crashImage(server))
  expect(answersOf(other.market)).toEqual(before)
})

describe('a checkpoint that is older than what the lake has', () => {
  test('is not restored where the journal was emptied into the lake meanwhile: the market begins empty, and says so', {
    tags: 'drill',
  }, async () => {
    await pushSome(server, clock)
    server = await server.restart({ record: 'checkpoint-ms=0' })
    await pushSome(server, clock)
    await server.store.events.flush()
    const { other, sentences } = await startOn(await crashImage(server))
    expect((await recordingOf(other)).restored).toBeNull()
    expect(other.market.stats().tokens).toBe(0)
    expect(sentences).toContainEqual(expect.stringContaining('the market begins empty'))
    const { status, reasons } = (await other.client.get('/health')).body
    expect(status).toBe('degraded')
    expect(reasons).toContainEqual(expect.stringMatching(/^the market began empty: neither a checkpoint/))
  })

  test('nor where a recorded simulator began another market since', { tags: 'drill' }, async () => {
    await pushSome(server, clock)
    const simulated = { feed: 'simulator', record: 'true', mixed: 'true', simulator: 'tokens=20' }
    server = await server.restart(simulated)
    await server.store.events.flush()
    await server.stop()
    server = await openTestServer({ mixed: 'true' }, { clock }, server.dataDir)
    expect((await recordingOf(server)).restored).toBeNull()
    expect(server.market.stats().tokens).toBe(0)
  })
})

test('a market of more tokens than the server may hold now begins empty, and says so', {
  tags: 'drill',
}, async () => {
  await pushSome(server, clock)
  const image = await crashImage(server)
  const { other, sentences } = await startOn(image, { 'tokens-max': '5' })
  expect(other.market.stats().tokens).toBe(0)
  expect(sentences).toContainEqual(expect.stringContaining('under these settings'))
  const { reasons } = (await other.client.get('/health')).body
  expect(reasons).toContainEqual(
    expect.stringMatching(/^the market began empty: .* holds \d+ tokens, .* at most 5\. See --tokens-max$/),
  )
})

test('what was applied again under other settings is told', { tags: 'drill' }, async () => {
  await pushSome(server, clock)
  const { other } = await startOn(await crashImage(server), { 'new-hours': '3' })
  const { restored } = await recordingOf(other)
  expect(restored).toMatchObject({ fromEventNo: 0, lost: 0 })
  expect(restored.events).toBeGreaterThan(100)
  expect(answersOf(other.market).timeMs).toBe(answersOf(server.market).timeMs)
})
