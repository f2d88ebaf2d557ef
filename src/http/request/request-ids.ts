// In: the request id that a client sent, if any. Out: the one that its answer bears: that one when it is a plain word, else
// one that no other request of this server bears, all of them of one length. Never remembers one.
import { randomBytes } from 'node:crypto'
import { REQUEST_ID_CHARACTERS_MAX } from '../limits.ts'

const SENT_PATTERN = new RegExp(`^[\\w.:-]{1,${REQUEST_ID_CHARACTERS_MAX}}$`)
const RADIX = 36
const DIGITS = Buffer.from('0123456789abcdefghijklmnopqrstuvwxyz')
/** Digits of the count: enough for a million requests a second, for three years. */
const COUNT_DIGITS = 9

export class RequestIds {
  readonly #run = randomBytes(6).toString('hex')
  #count = 0

  /** The id of a request whose client sent `sent`, or nothing. */
  of(sent: string): string {
    return sent !== '' && SENT_PATTERN.test(sent) ? sent : this.next()
  }

  next(): string {
    return `${this.#run}-${(this.#count++).toString(RADIX).padStart(COUNT_DIGITS, '0')}`
  }

  /**
   * Makes the id that `text` ends with a new one, in its place: no string is made, nor copied by the engine. The count
   * only grows, so the digits before its first are zeros already.
   */
  renew(text: Buffer): void {
    let rest = this.#count++
    for (let at = text.length - 1; rest > 0; at--) {
      text[at] = DIGITS[rest % RADIX]
      rest = Math.floor(rest / RADIX)
    }
  }
}
