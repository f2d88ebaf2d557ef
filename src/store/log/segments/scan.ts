// In: a file. Out: the records in it, in order, and the ranges of bytes between them that are none. Holds one chunk and at
// most one record more, whatever the file holds. Never judges what an invalid range means: reader.ts does.
import type { DiskFile } from '../disk.ts'
import { SCAN_CHUNK_BYTES } from '../limits.ts'
import { FRAME_BYTES, NEWLINE, PREFIX_BYTES, payloadLengthAt, type RecordHead, recordAt } from './format.ts'

/** What lies at `offset`: a record with its newline, if that is there; or bytes that are none. */
export interface Scanned {
  /** Null: no record. */
  head: RecordHead | null
  offset: number
  length: number
  /** The record's payload: a view that is good until the next one. */
  payload: Buffer
  /** Why the rest of the file could not be read: this item stands for it. */
  error?: unknown
}

const NO_BYTES = Buffer.alloc(0)
/** In the payload a quote never follows a space and a brace: JSON has no spaces between its tokens here, and escapes the
 *  quotes in its texts. */
const MARK = Buffer.from(' {"')
/** Bytes from the beginning of a line to it. */
const MARK_AT = PREFIX_BYTES - 1

/** A window over a file, from `at` to `end`, that moves forward. */
class Window {
  bytes: Buffer
  at = 0
  end = 0
  /** Of the file, where `bytes` begins. */
  base = 0
  isAtEnd = false
  readonly #file: DiskFile

  constructor(file: DiskFile, chunkBytes: number) {
    this.#file = file
    this.bytes = Buffer.allocUnsafeSlow(chunkBytes)
  }

  get available(): number {
    return this.end - this.at
  }

  /** Offset in the file of `at`. */
  get offset(): number {
    return this.base + this.at
  }

  /** Bytes from `at` that decide what lies there. */
  get needed(): number {
    if (this.available < PREFIX_BYTES) return PREFIX_BYTES
    const payloadLength = payloadLengthAt(this.bytes, this.at)
    return payloadLength === -1 ? PREFIX_BYTES : FRAME_BYTES + payloadLength
  }

  /** Reads on until there are `wanted` bytes from `at`, or the file ends. */
  async fill(wanted: number): Promise<void> {
    while (this.available < wanted && !this.isAtEnd) {
      this.#makeRoom(wanted)
      const read = await this.#file.read(this.bytes.subarray(this.end), this.base + this.end)
      if (read === 0) this.isAtEnd = true
      this.end += read
    }
  }

  #makeRoom(wanted: number): void {
    if (this.at > 0) {
      this.bytes.copyWithin(0, this.at, this.end)
      this.base += this.at
      this.end -= this.at
      this.at = 0
    }
    if (wanted <= this.bytes.length) return
    const larger = Buffer.allocUnsafeSlow(wanted)
    this.bytes.copy(larger, 0, 0, this.end)
    this.bytes = larger
  }
}

/** Everything in a file from its beginning to its end, read in chunks of that size. */
export async function* scan(file: DiskFile, chunkBytes = SCAN_CHUNK_BYTES): AsyncGenerator<Scanned, void> {
  const window = new Window(file, chunkBytes)
  try {
    for (;;) {
      while (window.available < window.needed && !window.isAtEnd)
        await window.fill(Math.max(window.needed, chunkBytes))
      if (window.available === 0) return
      const record = recordHere(window)
      if (record === null) {
        yield await skipLine(window)
        continue
      }
      yield record
      window.at += record.length
    }
  } catch (error) {
    yield { ...none(window.base + window.end, 0), error }
  }
}

const none = (offset: number, length: number): Scanned => ({ head: null, offset, length, payload: NO_BYTES })

function recordHere({ bytes, at, available, offset }: Window): Scanned | null {
  if (available < PREFIX_BYTES) return null
  const payloadLength = payloadLengthAt(bytes, at)
  if (payloadLength === -1 || available < PREFIX_BYTES + payloadLength) return null
  const head = recordAt(bytes, at, payloadLength)
  if (head === null) return null
  const end = at + PREFIX_BYTES + payloadLength
  // Where the newline was damaged, the record before it is whole, and so is the one behind it.
  const hasNewline = payloadLength + PREFIX_BYTES < available && bytes[end] === NEWLINE
  const length = PREFIX_BYTES + payloadLength + (hasNewline ? 1 : 0)
  return { head, offset, length, payload: bytes.subarray(at + PREFIX_BYTES, end) }
}

/** The bytes up to where the next line may begin. */
async function skipLine(window: Window): Promise<Scanned> {
  const { offset } = window
  for (let isFirstLook = true; ; isFirstLook = false) {
    const next = nextLine(window, isFirstLook ? 1 : 0)
    if (next !== -1) {
      window.at = next
      break
    }
    // A line may begin in the last bytes, and be known only by the ones to come.
    if (!window.isAtEnd)
      window.at = Math.max(window.at + (isFirstLook ? 1 : 0), window.end - MARK_AT - MARK.length + 1)
    else window.at = window.end
    if (window.available === 0) break
    await window.fill(window.available + 1)
  }
  return none(offset, window.offset - offset)
}

/** Where a line may begin, so many bytes from here or later; -1: not in the window. It begins behind a newline, or,
 *  should that be lost, before the mark that only the beginning of a payload has. */
function nextLine({ bytes, at, end }: Window, from: number): number {
  const view = bytes.subarray(0, end)
  const newline = view.indexOf(NEWLINE, at)
  const mark = view.indexOf(MARK, at + from + MARK_AT)
  if (mark === -1 || (newline !== -1 && newline + 1 <= mark - MARK_AT))
    return newline === -1 ? -1 : newline + 1
  return mark - MARK_AT
}
