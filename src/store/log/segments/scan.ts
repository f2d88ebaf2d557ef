// Finds the records of a file and the byte ranges between them that are not records. Holds a few chunks, or one record if that is
// larger, in memory. segment-validator.ts decides what an invalid range means.
import type { DiskFile } from '../../../lib/disk/disk.ts'
import { SCAN_CHUNK_BYTES } from '../limits.ts'
import {
  decodeLine,
  FRAME_BYTES,
  NEWLINE,
  PREFIX_BYTES,
  parsePayloadLength,
  type RecordHead,
} from './format.ts'

/** A record with its newline, unless that is damaged; or a range of bytes that are not a record. */
export interface ScanItem {
  /** Null where the bytes are not a record. */
  head: RecordHead | null
  offset: number
  length: number
  /** The record's payload. A view, valid until the next item. */
  payload: Buffer
  /** Why the rest of the file, which this item stands for, could not be read. */
  error?: unknown
}

const NO_BYTES = Buffer.alloc(0)
/** The start of a payload with the space before it. Occurs nowhere else in a line: the JSON has no spaces between its tokens and
 *  escapes the quotes in its strings. */
const PAYLOAD_START = Buffer.from(' {"')
/** Where `PAYLOAD_START` is in a line, in bytes. */
const PAYLOAD_START_OFFSET = PREFIX_BYTES - 1

/** Reads a file chunk by chunk, one ahead of what was asked for: while one is decoded, the disk reads the next. */
class ChunkReader {
  readonly #file: DiskFile
  readonly #buffers: readonly [Buffer, Buffer]
  #offset: number
  #isSecond = false
  #ahead: Promise<Buffer> | null = null

  constructor(file: DiskFile, chunkBytes: number, fromByte: number) {
    this.#file = file
    this.#buffers = [Buffer.allocUnsafeSlow(chunkBytes), Buffer.allocUnsafeSlow(chunkBytes)]
    this.#offset = fromByte
  }

  /** The next bytes; none at the end of the file. A view, valid until the next call. Rejects with the error of the disk. */
  async next(): Promise<Buffer> {
    const bytes = await (this.#ahead ?? this.#read())
    this.#ahead = bytes.length === 0 ? null : this.#read()
    // Its error is for the call that asks for it, if there is one.
    this.#ahead?.catch(() => undefined)
    return bytes
  }

  /** Resolves once nothing reads any more. */
  async end(): Promise<void> {
    await this.#ahead?.catch(() => undefined)
  }

  async #read(): Promise<Buffer> {
    const buffer = this.#buffers[this.#isSecond ? 1 : 0]
    this.#isSecond = !this.#isSecond
    const read = await this.#file.read(buffer, this.#offset)
    this.#offset += read
    return buffer.subarray(0, read)
  }
}

/** A buffer that moves forward over a file. The bytes from `at` to `end` are not consumed yet. */
class FileWindow {
  bytes: Buffer
  at = 0
  end = 0
  /** Offset in the file of the first byte of `bytes`. */
  base: number
  isAtEnd = false
  readonly #chunks: ChunkReader

  constructor(chunks: ChunkReader, chunkBytes: number, fromByte: number) {
    this.#chunks = chunks
    this.base = fromByte
    // The bytes that are left of a chunk stand before the next one.
    this.bytes = Buffer.allocUnsafeSlow(chunkBytes + PREFIX_BYTES)
  }

  get available(): number {
    return this.end - this.at
  }

  /** Offset in the file of `at`. */
  get offset(): number {
    return this.base + this.at
  }

  /** How many bytes from `at` on are needed to decode what begins there. */
  get needed(): number {
    if (this.available < PREFIX_BYTES) return PREFIX_BYTES
    const payloadLength = parsePayloadLength(this.bytes, this.at)
    return payloadLength === -1 ? PREFIX_BYTES : FRAME_BYTES + payloadLength
  }

  /** Reads until `wanted` bytes are available or the file ends. */
  async fill(wanted: number): Promise<void> {
    while (this.available < wanted && !this.isAtEnd) {
      const chunk = await this.#chunks.next()
      if (chunk.length === 0) this.isAtEnd = true
      this.#append(chunk)
    }
  }

  #append(chunk: Buffer): void {
    const length = this.available + chunk.length
    // Doubled, so that a record of many chunks is not copied for each of them.
    const target = length <= this.bytes.length ? this.bytes : Buffer.allocUnsafeSlow(2 * length)
    this.bytes.copy(target, 0, this.at, this.end)
    chunk.copy(target, this.available)
    this.bytes = target
    this.base += this.at
    this.at = 0
    this.end = length
  }
}

/** Yields everything in a file from a byte on, in order; together the items cover each byte once, but for the zeros that end the
 *  file: the writer puts them there, and the next lines replace them. */
export async function* scan(
  file: DiskFile,
  chunkBytes = SCAN_CHUNK_BYTES,
  fromByte = 0,
): AsyncGenerator<ScanItem, void> {
  const chunks = new ChunkReader(file, chunkBytes, fromByte)
  const window = new FileWindow(chunks, chunkBytes, fromByte)
  try {
    for (;;) {
      while (window.available < window.needed && !window.isAtEnd) await window.fill(window.needed)
      if (window.available === 0) return
      const record = decodeRecord(window)
      if (record === null) {
        const skipped = await skipLine(window)
        if (skipped.length > 0) yield skipped
        continue
      }
      yield record
      window.at += record.length
    }
  } catch (error) {
    yield { ...invalidRange(window.base + window.end, 0), error }
  } finally {
    await chunks.end()
  }
}

const invalidRange = (offset: number, length: number): ScanItem => ({
  head: null,
  offset,
  length,
  payload: NO_BYTES,
})

/** The record at the start of the window; null where there is none. Does not move the window. */
function decodeRecord({ bytes, at, available, offset }: FileWindow): ScanItem | null {
  if (available < PREFIX_BYTES) return null
  const payloadLength = parsePayloadLength(bytes, at)
  if (payloadLength === -1 || available < PREFIX_BYTES + payloadLength) return null
  const end = at + PREFIX_BYTES + payloadLength
  const payload = bytes.subarray(at + PREFIX_BYTES, end)
  const head = decodeLine(bytes, at, payload)
  if (head === null) return null
  // A damaged newline affects neither the record before it nor the one after it.
  const hasNewline = payloadLength + PREFIX_BYTES < available && bytes[end] === NEWLINE
  const length = PREFIX_BYTES + payloadLength + (hasNewline ? 1 : 0)
  return { head, offset, length, payload }
}

/** Moves the window to where the next line may begin. @returns the bytes that were skipped, without the zeros that end the file */
async function skipLine(window: FileWindow): Promise<ScanItem> {
  const { offset } = window
  /** Where the last byte ends that is not zero. */
  let contentEnd = offset
  for (let isFirstPass = true; ; isFirstPass = false) {
    const next = findNextLine(window, isFirstPass ? 1 : 0)
    if (next !== -1) {
      window.at = next
      return invalidRange(offset, window.offset - offset)
    }
    // The last bytes may be the prefix of a line, which only the bytes after them can show.
    const skipTo = window.isAtEnd
      ? window.end
      : Math.max(
          window.at + (isFirstPass ? 1 : 0),
          window.end - PAYLOAD_START_OFFSET - PAYLOAD_START.length + 1,
        )
    const content = lastContent(window.bytes, window.at, skipTo)
    if (content !== -1) contentEnd = window.base + content + 1
    window.at = skipTo
    if (window.available === 0) return invalidRange(offset, contentEnd - offset)
    await window.fill(window.available + 1)
  }
}

/** Index of the last byte in a range that is not zero; -1 where all are. */
function lastContent(bytes: Buffer, from: number, to: number): number {
  for (let index = to - 1; index >= from; index--) if (bytes[index] !== 0) return index
  return -1
}

/** Where the next line may begin, as an index into the window; -1 where it is not in the window. A line begins after a newline or,
 *  should that be damaged, before the start of a payload, searched for from `from` bytes on. */
function findNextLine({ bytes, at, end }: FileWindow, from: number): number {
  const view = bytes.subarray(0, end)
  const newline = view.indexOf(NEWLINE, at)
  const payloadStart = view.indexOf(PAYLOAD_START, at + from + PAYLOAD_START_OFFSET)
  if (payloadStart === -1 || (newline !== -1 && newline + 1 <= payloadStart - PAYLOAD_START_OFFSET))
    return newline === -1 ? -1 : newline + 1
  return payloadStart - PAYLOAD_START_OFFSET
}
