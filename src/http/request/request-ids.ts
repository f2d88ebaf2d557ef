import { randomBytes } from 'node:crypto'
import { REQUEST_ID_CHARACTERS_MAX } from '../limits.ts'

const SENT_PATTERN = new RegExp(`^[\\w.:-]{1,${REQUEST_ID_CHARACTERS_MAX}}$`)
const RADIX = 36
const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'
/** Digits of the counter: enough for a million requests a second for three years. */
const COUNT_DIGITS = 9

/** Makes request ids: a random prefix of this process and a counter, all of the same length. */
export class RequestIds {
  readonly #prefix = randomBytes(6).toString('hex')
  #count = 0

  /** The id that the client sent if it is valid, otherwise a new one. */
  idFor(sent: string): string {
    return sent !== '' && SENT_PATTERN.test(sent) ? sent : this.next()
  }

  next(): string {
    return `${this.#prefix}-${(this.#count++).toString(RADIX).padStart(COUNT_DIGITS, '0')}`
  }

  /**
   * Overwrites the id at the end of `head` with a new one, without making a string. The counter only grows, so the digits
   * before its first are zeros already.
   */
  renew(head: Buffer): void {
    let rest = this.#count++
    for (let at = head.length - 1; rest > 0; at--) {
      head[at] = DIGITS.charCodeAt(rest % RADIX)
      rest = Math.floor(rest / RADIX)
    }
  }
}
