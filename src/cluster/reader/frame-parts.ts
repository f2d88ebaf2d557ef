// Puts the parts of a frame together, which is cut where it is larger than a message may be.
import type { BusMessage } from '../messages.ts'

export class FrameParts {
  #parts: Uint8Array[] = []
  #firstEventNo = 0

  /**
   * @returns the frame once all its parts are there; null: not yet, or the message has none. Parts that do not follow on the part
   * before are dropped, and what they belong to is missing.
   */
  add({ frame, part, parts, firstEventNo }: BusMessage): Buffer | null {
    if (frame === null) return null
    if (part === 0) this.#parts = []
    if (part !== this.#parts.length || (part > 0 && firstEventNo !== this.#firstEventNo)) {
      this.#parts = []
      return null
    }
    this.#firstEventNo = firstEventNo
    this.#parts.push(frame)
    if (this.#parts.length < parts) return null
    const whole = Buffer.concat(this.#parts)
    this.#parts = []
    return whole
  }
}
