import type { Page } from '../types.ts'

/** A page of at most this many rows keeps its joined bytes; a larger one does so only while `share` is in force. */
export const SMALL_ROWS_MAX = 1_000

type PageParts = Pick<Page, 'lines' | 'total' | 'version' | 'contentVersion' | 'isCurrent'>

/** Rows of the market list as of one moment, each as a line of bytes that nobody writes to. */
export class RowPage implements Page {
  readonly lines: readonly Buffer[]
  readonly bytes: number
  readonly total: number
  readonly version: number
  readonly contentVersion: string
  readonly isCurrent: () => boolean
  #ndjson: Buffer | null

  /** @param earlier where it has the same lines, its joined bytes serve again */
  constructor({ lines, total, version, contentVersion, isCurrent }: PageParts, earlier?: RowPage) {
    const like = earlier?.rowCount === lines.length ? earlier : null
    let bytes = like?.bytes ?? 0
    let joined = like?.joined ?? null
    for (let row = 0; row < lines.length; row++) {
      // Most changes are of rows that a page does not have: a line that is the same is not even looked at.
      const replaced = like?.lines[row]
      if (lines[row] === replaced) continue
      bytes += lines[row].length - (replaced?.length ?? 0)
      joined = null
    }
    this.lines = lines
    this.bytes = bytes
    this.total = total
    this.version = version
    this.contentVersion = contentVersion
    this.isCurrent = isCurrent
    this.#ndjson = joined
  }

  get rowCount(): number {
    return this.lines.length
  }

  get ndjson(): Buffer {
    if (this.#ndjson !== null) return this.#ndjson
    const joined = concatOwn(this.lines, this.bytes)
    if (this.rowCount <= SMALL_ROWS_MAX) this.#ndjson = joined
    return joined
  }

  get joined(): Buffer | null {
    return this.#ndjson
  }

  /** Several readers ask for this large page: they share one joined copy while it is the newest. */
  share(): void {
    this.#ndjson ??= concatOwn(this.lines, this.bytes)
  }

  /** The page is out of date: readers who are still being sent it go on line by line. */
  unshare(): void {
    this.#ndjson = null
  }
}

/** Concatenates into memory of its own: a kept page must not pin Node's pool of small buffers. */
function concatOwn(parts: readonly Buffer[], bytes: number): Buffer {
  const joined = Buffer.allocUnsafeSlow(bytes)
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}
