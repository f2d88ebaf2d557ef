// `losses.json`: what this data folder has lost, each with a sentence for the operator. It stays told, in /health and by
// `mintlake lake repair`, over all starts, until that command acknowledges it.
import { readFile, rename } from 'node:fs/promises'
import pLimit from 'p-limit'
import { z } from 'zod'
import { systemCode } from '../../lib/error-text.ts'
import { replaceFile } from '../../lib/files.ts'
import { safeParse } from '../../lib/safe-parse.ts'
import { parseJson } from '../../lib/text/json-text.ts'
import { lossSchema } from '../../schema/api/admin.ts'
import { LOSSES_MAX, LOSSES_TOLD_MAX } from '../limits.ts'
import { lossesPath } from '../paths.ts'
import type { Loss } from '../types.ts'

const FORMAT = 1
const noted = lossSchema.extend({ acknowledgedAtMs: z.number().nullable() })
type NotedLoss = z.infer<typeof noted>
const content = z.object({
  format: z.literal(FORMAT),
  losses: z.array(noted),
  /** Losses that were found while the list was full, and not acknowledged since. */
  omitted: z.number().int().min(0),
})

/** A loss that was found. Ranges are inclusive, of LSNs, event numbers, row numbers or times as the kind has it. */
export type FoundLoss = Pick<Loss, 'kind' | 'sentence'> & Partial<Omit<Loss, 'foundAtMs'>>

const UNKNOWN = { table: null, from: null, to: null, count: null, file: null }
const toNoted = (found: FoundLoss, nowMs: number): NotedLoss => ({
  ...UNKNOWN,
  ...found,
  foundAtMs: nowMs,
  acknowledgedAtMs: null,
})

/** Equal for two entries that tell of the same. */
const identify = ({ kind, table, from, to, count, file, sentence }: Loss): string =>
  JSON.stringify([kind, table, from, to, count, file, sentence])

export class Losses {
  readonly #path: string
  /** One change of the file at a time. */
  readonly #turns = pLimit(1)
  #losses: NotedLoss[] = []
  #omitted = 0
  /** The file is no list of losses: it is set aside when the next one is written. */
  #isDamaged = false

  constructor(dataDir: string) {
    this.#path = lossesPath(dataDir)
  }

  /** Reads the file, which the lake process writes too. A damaged one is itself a loss. */
  load(nowMs: number): Promise<void> {
    return this.#turns(() => this.#load(nowMs))
  }

  /** Those that nobody has acknowledged, oldest first. */
  get unacknowledged(): Loss[] {
    return this.#losses
      .filter(({ acknowledgedAtMs }) => acknowledgedAtMs === null)
      .map(({ acknowledgedAtMs: _, ...loss }) => loss)
  }

  /** How many nobody has acknowledged. */
  get count(): number {
    return this.unacknowledged.length + this.#omitted
  }

  /** A sentence for each of the first ones, and how many there are besides. */
  get sentences(): string[] {
    const losses = this.unacknowledged
    const more = this.count - LOSSES_TOLD_MAX
    return [
      ...losses
        .slice(0, LOSSES_TOLD_MAX)
        .map(({ sentence }) => `${sentence}; mintlake lake repair acknowledges it`),
      ...(more > 0 ? [`further losses: ${more}; see mintlake lake repair`] : []),
    ]
  }

  /** Whether a loss was acknowledged: that of this file, which stays, or of these numbers, which are never used again. */
  isAcknowledged({ kind, file = null, from = null, to = null }: Omit<FoundLoss, 'sentence'>): boolean {
    return this.#losses.some(
      (loss) =>
        loss.acknowledgedAtMs !== null &&
        (file !== null
          ? loss.file === file
          : from !== null && loss.kind === kind && loss.from === from && loss.to === to),
    )
  }

  /** Whether a loss of this file, of as many rows, was noted, acknowledged or not. */
  names({ file, count }: FoundLoss): boolean {
    return this.#losses.some((loss) => loss.file === file && loss.count === (count ?? null))
  }

  /**
   * Notes a loss, durably. One that is noted already is not noted again: until it is acknowledged, or, where it names a file that
   * stays or numbers that are never used again, for good. Where the file cannot be written it is told nevertheless, by this process.
   */
  record(found: FoundLoss, nowMs: number): Promise<void> {
    const loss = toNoted(found, nowMs)
    return this.#turns(async () => {
      await this.#load(nowMs)
      if (this.#add(loss)) await this.#save()
    })
  }

  /** Acknowledges all losses. @returns those that were not acknowledged yet */
  acknowledge(nowMs: number): Promise<Loss[]> {
    return this.#turns(async () => {
      await this.#load(nowMs)
      const losses = this.unacknowledged
      if (losses.length === 0 && this.#omitted === 0) return losses
      const before = { losses: this.#losses, omitted: this.#omitted }
      this.#losses = this.#losses.map((loss) => ({
        ...loss,
        acknowledgedAtMs: loss.acknowledgedAtMs ?? nowMs,
      }))
      this.#omitted = 0
      try {
        await this.#save()
      } catch (error) {
        // Not acknowledged: the next start would tell of them.
        this.#losses = before.losses
        this.#omitted = before.omitted
        throw error
      }
      return losses
    })
  }

  async #load(nowMs: number): Promise<void> {
    const text = await readFile(this.#path, 'utf8').catch((error: unknown) => {
      if (systemCode(error) === 'ENOENT') return null
      if (systemCode(error) === 'EISDIR') return ''
      throw error
    })
    if (text === null) return
    const parsed = safeParse(content, parseJson(text))
    this.#isDamaged = !parsed.success
    if (!parsed.success) {
      const sentence = 'the list of losses (losses.json) was damaged: what it told is not known'
      this.#add(toNoted({ kind: 'losses', sentence }, nowMs))
      return
    }
    const saved = parsed.data
    const known = new Set(saved.losses.map(identify))
    // What could not be written yet.
    const unsaved = this.#losses.filter((loss) => !known.has(identify(loss)))
    this.#losses = saved.losses
    this.#omitted = Math.max(this.#omitted, saved.omitted)
    for (const loss of unsaved) this.#add(loss)
  }

  /** @returns whether anything has changed */
  #add(loss: NotedLoss): boolean {
    const isSame = (other: NotedLoss): boolean =>
      identify(other) === identify(loss) &&
      (other.acknowledgedAtMs === null || loss.file !== null || loss.from !== null)
    if (this.#losses.some(isSame)) return false
    if (this.#losses.length >= LOSSES_MAX) {
      const oldest = this.#losses.findIndex(({ acknowledgedAtMs }) => acknowledgedAtMs !== null)
      if (oldest === -1) {
        this.#omitted++
        return true
      }
      this.#losses.splice(oldest, 1)
    }
    this.#losses.push(loss)
    return true
  }

  async #save(): Promise<void> {
    if (this.#isDamaged) await rename(this.#path, `${this.#path}.${Date.now()}.set-aside`)
    this.#isDamaged = false
    const saved = { format: FORMAT, losses: this.#losses, omitted: this.#omitted }
    await replaceFile(this.#path, `${JSON.stringify(saved, null, 2)}\n`)
  }
}
