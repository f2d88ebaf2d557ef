// What the next run is to know of the time, in a file that is replaced every minute. It has the last word on what was recorded: what an
// operator has declared wrong may stand in rows for good.
import { readFile } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { z } from 'zod'
import { systemCode } from '../../lib/error-text.ts'
import { replaceFile } from '../../lib/files.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import type { KnownTime, SteadyClock } from '../../lib/steady-clock.ts'
import { CLOCK_SAVE_MS } from '../limits.ts'
import { clockPath } from '../paths.ts'
import type { StoreLog } from '../types.ts'

const savedSchema = z.object({
  atMs: z.number(),
  boot: z.object({ id: z.string(), atMs: z.number() }).nullable(),
}) satisfies z.ZodType<KnownTime>

function format({ atMs, boot }: KnownTime): string {
  const checksum = crc32(JSON.stringify({ atMs, boot }))
  return `${JSON.stringify({ atMs, boot, crc32: checksum })}\n`
}

/** Without a checksum. */
const formatOfEarlierVersions = ({ atMs, boot }: KnownTime): string => `${JSON.stringify({ atMs, boot })}\n`

/** Null where there is no valid file: then rows tell. */
export async function readKnownTime(dataDir: string, log: StoreLog): Promise<KnownTime | null> {
  const path = clockPath(dataDir)
  try {
    const content = await readFile(path, 'utf8')
    const { success, data } = safeParse(savedSchema, JSON.parse(content))
    // One wrong digit is another time, which would be believed; so would it be where the checksum is not found under its name.
    if (success && [format(data), formatOfEarlierVersions(data)].includes(content)) return data
    log.warn({ path }, 'the file of the clock is damaged: the clock is judged by what was recorded')
  } catch (error) {
    if (systemCode(error) !== 'ENOENT')
      log.warn(
        { path, err: error },
        'the file of the clock cannot be read: it is judged by what was recorded',
      )
  }
  return null
}

export class ClockFile {
  readonly #path: string
  readonly #clock: SteadyClock
  readonly #log: StoreLog
  readonly #timer: NodeJS.Timeout
  #saving: Promise<void> | null = null
  #isRefused = false

  /** Saves from now on, until `close`. */
  constructor(dataDir: string, clock: SteadyClock, log: StoreLog) {
    this.#path = clockPath(dataDir)
    this.#clock = clock
    this.#log = log
    this.#timer = setInterval(() => void this.save(), CLOCK_SAVE_MS)
    this.#timer.unref()
    void this.save()
  }

  /** Never rejects: a refusal is logged. @returns whether the file tells the time of now, or a later one */
  async save(): Promise<boolean> {
    await this.#saving
    this.#saving ??= this.#saveNow().finally(() => {
      this.#saving = null
    })
    await this.#saving
    return !this.#isRefused
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.save()
  }

  async #saveNow(): Promise<void> {
    try {
      await replaceFile(this.#path, format(this.#clock.known()))
      this.#isRefused = false
    } catch (error) {
      if (!this.#isRefused)
        this.#log.warn(
          { path: this.#path, err: error },
          'the file of the clock cannot be written; trying again',
        )
      this.#isRefused = true
    }
  }
}
