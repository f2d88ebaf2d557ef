// What a node knows of a writer that is away: whether a request that was sent to it still can be answered, and whether it is worth waiting
// for the next one. A writer that ends is back, or replaced, within seconds most often; until then requests wait, a bounded number of them.

import { setTimeout as sleep } from 'node:timers/promises'
import { unlessLate } from '../../lib/wait.ts'
import { ABSENCE_LOOK_MS, HELD_MAX, WRITER_GONE_MS, WRITER_HOLD_MS } from './limits.ts'

export class WriterAbsence {
  readonly #silentMs: () => number
  readonly #isThere: () => Promise<boolean>
  /** Requests that wait for a writer. */
  #held = 0
  #looking: Promise<boolean> | null = null
  readonly #unanswered = new Set<{ sentMs: number; giveUp(): void }>()
  #timer: NodeJS.Timeout | null = null

  /**
   * @param silentMs for how long the stream has had nothing of the writer; 0: it has, or that is not known at present
   * @param isThere whether a writer answers now. Never rejects
   */
  constructor(silentMs: () => number, isThere: () => Promise<boolean>) {
    this.#silentMs = silentMs
    this.#isThere = isThere
  }

  /**
   * `work`, the answer of a request that is sent now, or undefined as soon as it is known that the writer has ended before it answered:
   * it was there when the request was sent, and is not any more.
   */
  async answerOf<Value>(work: Promise<Value>): Promise<Value | undefined> {
    const gone = Promise.withResolvers<undefined>()
    const request = { sentMs: performance.now(), giveUp: () => gone.resolve(undefined) }
    this.#unanswered.add(request)
    this.#timer ??= setInterval(() => this.#look(), ABSENCE_LOOK_MS).unref()
    try {
      return await Promise.race([work, gone.promise])
    } finally {
      this.#unanswered.delete(request)
      if (this.#unanswered.size === 0 && this.#timer !== null) {
        clearInterval(this.#timer)
        this.#timer = null
      }
    }
  }

  /** Waits for a writer, where one may be expected. @returns whether one answers */
  async over(untilMs: number): Promise<boolean> {
    if (this.#held >= HELD_MAX || !this.#isExpected() || performance.now() >= untilMs) return false
    this.#held++
    try {
      this.#looking ??= this.#untilThere().finally(() => {
        this.#looking = null
      })
      return await unlessLate(untilMs - performance.now(), this.#looking, () => false)
    } finally {
      this.#held--
    }
  }

  #isExpected(): boolean {
    return this.#silentMs() < WRITER_HOLD_MS
  }

  /** One asks for all who wait. */
  async #untilThere(): Promise<boolean> {
    do {
      await sleep(ABSENCE_LOOK_MS)
      if (await this.#isThere()) return true
    } while (this.#held > 0 && this.#isExpected())
    return false
  }

  #look(): void {
    const silentMs = this.#silentMs()
    if (silentMs < WRITER_GONE_MS) return
    const seenMs = performance.now() - silentMs
    // What was sent later went to a process that began meanwhile.
    for (const { sentMs, giveUp } of this.#unanswered) if (sentMs < seenMs + WRITER_GONE_MS / 2) giveUp()
  }
}
