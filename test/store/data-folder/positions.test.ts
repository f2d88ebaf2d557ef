// Where each run of a server begins to count, whatever became of the file that says so, of the clock and of the disk.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import {
  openPositions,
  type Positions,
  reserveAboveLostRun,
} from '../../../src/store/data-folder/positions.ts'
import { POSITIONS_AHEAD, POSITIONS_PER_MS } from '../../../src/store/limits.ts'
import { temporaryFolder } from '../../support/test-server.ts'

const NOW_MS = 1_800_000_000_000
const DAY_MS = 86_400_000

let dataDir: string
let told: string[]
const log = {
  info: (_: object, message: string) => told.push(message),
  warn: (_: object, message: string) => told.push(message),
  error: (_: object, message: string) => told.push(message),
}
const opened: Positions[] = []
async function open(nowMs: number): Promise<Positions> {
  const positions = await openPositions(dataDir, nowMs, log)
  opened.push(positions)
  return positions
}
beforeEach(() => {
  dataDir = temporaryFolder()
  told = []
})
afterEach(async () => {
  for (const positions of opened.splice(0)) await positions.close()
  rmSync(dataDir, { recursive: true, force: true })
})
const path = () => join(dataDir, 'positions.json')
const reservedTo = (): number => JSON.parse(readFileSync(path(), 'utf8')).reservedTo

it('every run begins above all that the ones before it had reserved, on a clock that stands still or is set back', async () => {
  let highest = 0
  for (const nowMs of [NOW_MS, NOW_MS, NOW_MS - 400 * DAY_MS, 0, Number.NaN, -1, NOW_MS + 1_000, 9e15]) {
    const { first } = await open(nowMs)
    expect(first).toBeGreaterThan(highest)
    expect(reservedTo()).toBe(first + POSITIONS_AHEAD)
    expect(Number.isSafeInteger(first + POSITIONS_AHEAD)).toBe(true)
    highest = reservedTo()
  }
  expect(told).toEqual([])
  expect(readdirSync(dataDir)).toEqual(['positions.json'])
})

it('a restored folder begins above what the lost run reached after the backup, on a clock that is a day behind too', async () => {
  const backedUp = await open(NOW_MS)
  await backedUp.reserveAhead(backedUp.first)
  const lostReached = (NOW_MS + DAY_MS / 2) * POSITIONS_PER_MS
  await reserveAboveLostRun(dataDir, NOW_MS, log)
  expect((await open(NOW_MS - DAY_MS)).first).toBeGreaterThan(lostReached)
})

it.each([
  ['lost', () => rmSync(path())],
  ['empty', () => writeFileSync(path(), '')],
  ['of zeros', () => writeFileSync(path(), Buffer.alloc(40))],
  [
    'damaged in a digit',
    () =>
      writeFileSync(
        path(),
        readFileSync(path(), 'utf8').replace(/\d(?=,)/, (digit) => `${9 - Number(digit)}`),
      ),
  ],
  ['cut', () => writeFileSync(path(), readFileSync(path()).subarray(0, 20))],
])(
  'a reservation that is %s costs nothing: the clock stands above whatever a market can have used',
  async (_, damage) => {
    const { first } = await open(NOW_MS)
    // A run of an hour with a million changes in each second.
    const used = first + 3_600 * 1e6
    damage()
    expect((await open(NOW_MS + 3_600_000)).first).toBeGreaterThan(used)
    expect(reservedTo()).toBeGreaterThan(used)
  },
)

it('a running market never gets ahead of what is reserved', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    const positions = await open(NOW_MS)
    let reached = positions.first
    positions.keepAhead(() => reached)
    for (let round = 0; round < 20; round++) {
      reached += 2_000_000
      vi.advanceTimersByTime(250)
      await vi.waitFor(() => expect(reservedTo()).toBeGreaterThan(reached + 1_000_000))
    }
    await positions.close()
    expect((await open(NOW_MS)).first).toBeGreaterThan(reached)
  } finally {
    vi.useRealTimers()
  }
})

it('a disk that refuses is told of once, and the reservation is made up for when it takes it', async () => {
  const folder = dataDir
  dataDir = join(folder, 'missing')
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    const positions = await open(NOW_MS)
    expect(positions.first).toBeGreaterThan(NOW_MS)
    positions.keepAhead(() => positions.first)
    for (let round = 0; round < 3; round++) {
      vi.advanceTimersByTime(250)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(told).toEqual(['stream positions cannot be reserved: they follow the clock'])
    mkdirSync(dataDir)
    await vi.waitFor(() => {
      vi.advanceTimersByTime(250)
      expect(reservedTo()).toBe(positions.first + POSITIONS_AHEAD)
    })
    await vi.waitFor(() => expect(told.at(-1)).toBe('stream positions are reserved again'))
  } finally {
    vi.useRealTimers()
    dataDir = folder
  }
})
