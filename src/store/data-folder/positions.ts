// In: the data folder and the time at the start; then, again and again, the position that the market has reached. Out: the
// position at which this run begins: above every one that an earlier run has handed out. Two things see to it, and either
// is enough: a file that says up to where positions are reserved, always written ahead of what is used; and the wall clock,
// at a rate that no market keeps up with. So a lost file costs nothing, nor a clock that was set back, nor a full disk.
// Never reads what the positions are of.
import { readFile, writeFile } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { assert } from '../../lib/assert.ts'
import { systemCode } from '../../lib/error-text.ts'
import { syncPath } from '../../lib/files.ts'
import { publish, temporaryPath } from '../lake/lake-files.ts'
import { POSITIONS_AHEAD, POSITIONS_CHECK_MS, POSITIONS_CLOCK_MS_MAX, POSITIONS_PER_MS } from '../limits.ts'
import { positionsPath } from '../paths.ts'
import type { StoreLog } from '../types.ts'

export interface Positions {
  /** Where this run begins: no earlier one has reached it. */
  readonly first: number
  /** Keeps the reservation ahead of what `reached` says. Called once. */
  keepAhead(reached: () => number): void
  /** Ends that, when nothing more is handed out. */
  close(): Promise<void>
}

export interface PositionsOptions {
  dataDir: string
  /** Wall time, Unix ms. */
  nowMs: number
  log: StoreLog
}

const checksum = (reservedTo: number): string => crc32(`${reservedTo}`).toString(16)
const contentOf = (reservedTo: number): string =>
  `${JSON.stringify({ reservedTo, crc32: checksum(reservedTo) })}\n`

/** Up to where earlier runs have reserved; 0 when no file says so. */
async function readReservation(path: string, log: StoreLog): Promise<number> {
  try {
    const content = await readFile(path, 'utf8')
    const reservedTo = Number(/"reservedTo":(\d{1,16})\b/.exec(content)?.[1])
    if (Number.isSafeInteger(reservedTo) && content === contentOf(reservedTo)) return reservedTo
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

async function writeReservation(path: string, reservedTo: number): Promise<void> {
  await writeFile(temporaryPath(path), contentOf(reservedTo))
  await syncPath(temporaryPath(path))
  await publish(path)
}

/** The position that stands for a time. A clock that is centuries off stands for none: it would use up all positions. */
const positionAt = (nowMs: number): number =>
  nowMs > 0 && nowMs < POSITIONS_CLOCK_MS_MAX ? Math.floor(nowMs) * POSITIONS_PER_MS : 0

/** Begins a run. A disk that refuses the reservation is told of, and tried again: the clock does for the time being. */
export async function openPositions({ dataDir, nowMs, log }: PositionsOptions): Promise<Positions> {
  const path = positionsPath(dataDir)
  let reservedTo = await readReservation(path, log)
  const first = Math.max(reservedTo + 1, positionAt(nowMs))
  assert(Number.isSafeInteger(first + POSITIONS_AHEAD), 'positions are not used up')
  let isRefused = false
  let writing: Promise<void> | null = null

  async function reserve(to: number): Promise<void> {
    try {
      await writeReservation(path, to)
      reservedTo = to
      if (isRefused) log.info({ path }, 'stream positions are reserved again')
      isRefused = false
    } catch (error) {
      if (!isRefused)
        log.error({ path, err: error }, 'stream positions cannot be reserved: they follow the clock')
      isRefused = true
    }
  }

  await reserve(first + POSITIONS_AHEAD)
  let timer: NodeJS.Timeout | null = null
  return {
    first,
    keepAhead(reached) {
      timer = setInterval(() => {
        const position = reached()
        if (writing !== null || reservedTo - position > POSITIONS_AHEAD / 2) return
        writing = reserve(position + POSITIONS_AHEAD).finally(() => {
          writing = null
        })
      }, POSITIONS_CHECK_MS)
    },
    async close() {
      if (timer !== null) clearInterval(timer)
      await writing
    },
  }
}
