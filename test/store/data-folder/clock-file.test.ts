// The file of the clock: a time that may be wrong is not believed.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { SteadyClock } from '../../../src/lib/steady-clock.ts'
import { ClockFile, readKnownTime } from '../../../src/store/data-folder/clock-file.ts'
import { temporaryFolder } from '../../support/test-server.ts'

const NOW_MS = 1_800_000_000_000
const KNOWN = { atMs: NOW_MS, boot: { id: 'boot', atMs: NOW_MS - 5_000 } }

let dataDir: string
let path: string
let told: string[]
const log = {
  info: (_: object, message: string) => told.push(message),
  warn: (_: object, message: string) => told.push(message),
  error: (_: object, message: string) => told.push(message),
}
beforeEach(() => {
  dataDir = temporaryFolder()
  path = join(dataDir, 'clock.json')
  told = []
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

it('tells the time that was saved', async () => {
  const machine = { now: () => NOW_MS, monotonicMs: () => 0, boot: () => ({ id: 'boot', uptimeMs: 5_000 }) }
  const file = new ClockFile(dataDir, new SteadyClock(machine, () => {}), log)
  await file.close()
  expect(await readKnownTime(dataDir, log)).toMatchObject(KNOWN)
  expect(told).toEqual([])
})

/** As a machine writes it that does not tell for how long it is up. */
const save = (): Promise<void> =>
  new ClockFile(dataDir, new SteadyClock({ now: () => NOW_MS, monotonicMs: () => 0 }, () => {}), log).close()

it('tells no other time where a bit of it has flipped', async () => {
  await save()
  const bytes = readFileSync(path)
  for (let at = 0; at < bytes.length; at++)
    for (let bit = 0; bit < 8; bit++) {
      const flipped = Buffer.from(bytes)
      flipped[at] ^= 1 << bit
      writeFileSync(path, flipped)
      expect((await readKnownTime(dataDir, log))?.atMs ?? NOW_MS).toBe(NOW_MS)
    }
  expect(told.length).toBeGreaterThan(bytes.length)
})

it('tells no time where a digit has changed, and the name of the checksum as well', async () => {
  await save()
  const content = readFileSync(path, 'utf8')
  writeFileSync(path, content.replace('"crc32"', '"crc22"').replace(`${NOW_MS}`, `${NOW_MS + 1_000_000}`))
  expect(await readKnownTime(dataDir, log)).toBeNull()
  expect(told).toEqual(['the file of the clock is damaged: the clock is judged by what was recorded'])
})

it('is believed as earlier versions wrote it', async () => {
  writeFileSync(path, `${JSON.stringify(KNOWN)}\n`)
  expect(await readKnownTime(dataDir, log)).toEqual(KNOWN)
})
