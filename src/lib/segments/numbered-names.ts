// Names of files that are numbered, so that the order of their names is that of their numbers.

/** A file while its first bytes are written; it gets its own name then. */
export const NEXT_NAME = 'next.tmp'

const DIGITS = /^\d{20}$/

export class NumberedNames {
  readonly #suffix: string

  /** @param extension without the dot */
  constructor(extension: string) {
    this.#suffix = `.${extension}`
  }

  nameOf(number: number): string {
    return `${String(number).padStart(20, '0')}${this.#suffix}`
  }

  /** The number in a name; null where it is the name of something else. */
  numberOf(name: string): number | null {
    if (!name.endsWith(this.#suffix)) return null
    const digits = name.slice(0, -this.#suffix.length)
    const number = Number(digits)
    return DIGITS.test(digits) && Number.isSafeInteger(number) ? number : null
  }
}
