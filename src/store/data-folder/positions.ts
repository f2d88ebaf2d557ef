// Reserves stream positions, so that each run begins above all positions of earlier runs. Either of two sources suffices: a file
// with the reserved range, written ahead of use, and the wall clock, at a rate that no market reaches.
//
// Without both, positions may go back: a run that could not reserve any, then a clock that was set back on a machine that was started anew, or
// does not tell for how long it is up (`Clock.boot`). A disk that takes nothing leaves no third place to remember them.
import { readFile } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { assert } from '../../lib/assert.ts'
import { systemCode } from '../../lib/error-text.ts'
import { replaceFile } from '../../lib/files.ts'
import {
  POSITIONS_AHEAD,
  POSITIONS_CHECK_MS,
  POSITIONS_CLOCK_MS_MAX,
  POSITIONS_PER_MS,
  POSITIONS_RESTORED_AHEAD,
} from '../limits.ts'
import { positionsPath } from '../paths.ts'
import type { StoreLog } from '../types.ts'

const checksum = (reservedTo: number): string => crc32(`${reservedTo}`).toString(16)
const formatReservation = (reservedTo: number): string =>
  `${JSON.stringify({ reservedTo, crc32: checksum(reservedTo) })}\n`

/** The last position that earlier runs have reserved; 0 where there is no valid file. */
async function readReservation(path: string, log: StoreLog): Promise<number> {
  try {
    const content = await readFile(path, 'utf8')
    const reservedTo = Number(/"reservedTo":(\d{1,16})\b/.exec(content)?.[1])
    if (Number.isSafeInteger(reservedTo) && content === formatReservation(reservedTo)) return reservedTo
    log.warn({ path }, 'the reservation of stream positions is damaged: positions follow the clock')
  } catch (error) {
    if (systemCode(error) !== 'ENOENT')
      log.warn(
        { path, err: error },
        'the reservation of stream positions cannot be read: positions follow the clock',
      )
  }
  return 0
}

const writeReservation = (path: string, reservedTo: number): Promise<void> =>
  replaceFile(path, formatReservation(reservedTo))

/** The first position for a time; 0 for a clock that is centuries off, which would use up all positions. */
const positionAt = (nowMs: number): number =>
  nowMs > 0 && nowMs < POSITIONS_CLOCK_MS_MAX ? Math.floor(nowMs) * POSITIONS_PER_MS : 0

/**
 * Reserves positions in a restored folder, so that its next run begins above those of the run that was lost, which went on
 * after the backup: a day's positions above its reservation and above the clock.
 * @param nowMs wall time, Unix ms; or that of the backup, if it is later
 */
export async function reserveAboveLostRun(dataDir: string, nowMs: number, log: StoreLog): Promise<void> {
  const path = positionsPath(dataDir)
  const reached = Math.max(await readReservation(path, log), positionAt(nowMs))
  await writeReservation(path, reached + POSITIONS_RESTORED_AHEAD)
}

/** Begins a run, at a wall time. Where the disk refuses the reservation, this is logged and tried again; the clock suffices meanwhile. */
export async function openPositions(dataDir: string, nowMs: number, log: StoreLog): Promise<Positions> {
  const path = positionsPath(dataDir)
  const reservedTo = await readReservation(path, log)
  const positions = new Positions(path, log, reservedTo, Math.max(reservedTo + 1, positionAt(nowMs)))
  await positions.reserveAhead(positions.first)
  return positions
}

export class Positions {
  /** The first position of this run: no earlier run has reached it. */
  readonly first: number
  readonly #path: string
  readonly #log: StoreLog
  #reservedTo: number
  #isRefused = false
  #writing: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null

  constructor(path: string, log: StoreLog, reservedTo: number, first: number) {
    assert(Number.isSafeInteger(first + POSITIONS_AHEAD), 'positions are not used up')
    this.#path = path
    this.#log = log
    this.#reservedTo = reservedTo
    this.first = first
  }

  /** Keeps the reservation ahead of the position that `reached` returns. Called once. */
  keepAhead(reached: () => number): void {
    this.#timer = setInterval(() => {
      const position = reached()
      if (this.#writing !== null || this.#reservedTo - position > POSITIONS_AHEAD / 2) return
      this.#writing = this.reserveAhead(position).finally(() => {
        this.#writing = null
      })
    }, POSITIONS_CHECK_MS)
  }

  /** Reserves POSITIONS_AHEAD positions after this one. A failure is logged. */
  async reserveAhead(position: number): Promise<void> {
    const to = position + POSITIONS_AHEAD
    try {
      await writeReservation(this.#path, to)
      this.#reservedTo = to
      if (this.#isRefused) this.#log.info({ path: this.#path }, 'stream positions are reserved again')
      this.#isRefused = false
    } catch (error) {
      if (!this.#isRefused)
        this.#log.error(
          { path: this.#path, err: error },
          'stream positions cannot be reserved: they follow the clock',
        )
      this.#isRefused = true
    }
  }

  /** Called when no more positions are used. */
  async close(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    await this.#writing
  }
}
