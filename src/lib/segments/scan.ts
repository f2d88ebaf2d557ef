// Finds the frames of a file and the byte ranges between them that are none. Holds a few chunks, or one frame if that is larger, in
// memory. segment-check.ts decides what a range that is no frame means.
import type { DiskFile } from '../disk/disk.ts'
import { SCAN_CHUNK_BYTES } from './limits.ts'
import type { EntriesHead, FrameHead, HeaderHead, SegmentFormat } from './types.ts'

/** A frame, or a range of bytes that are none. */
export interface ScanItem<Header extends HeaderHead, Entries extends EntriesHead> {
  /** Null where the bytes are no frame. */
  head: FrameHead<Header, Entries> | null
  offset: number
  length: number
  /** The whole frame. A view, valid until the next item. */
  frame: Buffer
  /** The bytes were a frame that was written whole, and have changed since: no power cut does that. */
  isChanged?: boolean
  /** Why the rest of the file, which this item stands for, could not be read. */
  error?: unknown
}

const NO_BYTES = Buffer.alloc(0)

/** A buffer that moves forward over a file. The bytes from `at` to `end` are not consumed yet; while they are, the disk reads the next. */
class FileWindow {
  bytes: Buffer
  at = 0
  end = 0
  /** Offset in the file of the first byte of `bytes`. */
  base: number
  isAtEnd = false
  readonly #file: DiskFile
  readonly #chunk: Buffer
  /** The bytes behind those of the window; none at the end of the file. */
  #ahead: Promise<Buffer>

  constructor(file: DiskFile, chunkBytes: number, fromByte: number) {
    this.#file = file
    this.base = fromByte
    // The bytes that are left of a chunk stand before the next one.
    this.bytes = Buffer.allocUnsafeSlow(2 * chunkBytes)
    this.#chunk = Buffer.allocUnsafeSlow(chunkBytes)
    this.#ahead = this.#read()
  }

  get available(): number {
    return this.end - this.at
  }

  /** Offset in the file of `at`. */
  get offset(): number {
    return this.base + this.at
  }

  /** Reads until `wanted` bytes are available or the file ends. Rejects with the error of the disk. */
  async fill(wanted: number): Promise<void> {
    while (this.available < wanted && !this.isAtEnd) {
      const chunk = await this.#ahead
      this.#append(chunk)
      if (chunk.length === 0) this.isAtEnd = true
      else this.#ahead = this.#read()
    }
  }

  /** Resolves once nothing reads any more. */
  async close(): Promise<void> {
    await this.#ahead.catch(() => undefined)
  }

  #read(): Promise<Buffer> {
    const read = this.#file
      .read(this.#chunk, this.base + this.end)
      .then((length) => this.#chunk.subarray(0, length))
    // Its error is for `fill`, if that asks for it.
    read.catch(() => undefined)
    return read
  }

  #append(chunk: Buffer): void {
    const length = this.available + chunk.length
    // Doubled, so that a frame of many chunks is not copied for each of them.
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
 *  file: a writer puts them there, or a power cut, and the next frames replace them. */
export async function* scan<Header extends HeaderHead, Entries extends EntriesHead>(
  file: DiskFile,
  format: SegmentFormat<Header, Entries>,
  { chunkBytes = SCAN_CHUNK_BYTES, fromByte = 0 }: { chunkBytes?: number; fromByte?: number } = {},
): AsyncGenerator<ScanItem<Header, Entries>, void> {
  const window = new FileWindow(file, chunkBytes, fromByte)
  try {
    for (;;) {
      await window.fill(format.headBytes)
      if (window.available === 0) return
      const found = await readFrame(window, format)
      if (found === null) {
        const { offset } = window
        const { length, isChanged } = await skip(window, format)
        if (length > 0) yield { head: null, offset, length, frame: NO_BYTES, isChanged }
        continue
      }
      yield found
      window.at += found.length
    }
  } catch (error) {
    yield { head: null, offset: window.base + window.end, length: 0, frame: NO_BYTES, error }
  } finally {
    await window.close()
  }
}

/** The frame at the start of the window; null where there is none. Does not move the window. */
async function readFrame<Header extends HeaderHead, Entries extends EntriesHead>(
  window: FileWindow,
  format: SegmentFormat<Header, Entries>,
): Promise<ScanItem<Header, Entries> | null> {
  if (window.available < format.headBytes) return null
  const wanted = format.lengthOf(window.bytes, window.at)
  if (wanted === null) return null
  if (window.available < wanted) await window.fill(wanted)
  const { bytes, at, end, offset } = window
  const found = format.decode(bytes.subarray(at, Math.min(at + wanted, end)))
  if (found === null) return null
  const { head, length } = found
  return { head, offset, length, frame: bytes.subarray(at, at + length) }
}

/**
 * Moves the window to where the next frame may begin.
 * @returns how many bytes were skipped, without the zeros that end the file, and whether they are a frame that has changed
 */
async function skip(
  window: FileWindow,
  { changed, find, markBytes }: Pick<SegmentFormat, 'changed' | 'find' | 'markBytes'>,
): Promise<{ length: number; isChanged: boolean }> {
  await window.fill(markBytes)
  const { offset } = window
  const begins = changed?.beginsAt(window.bytes.subarray(0, window.end), window.at) ?? false
  let hasZero = false
  /** Where the last byte ends that is not zero. */
  let contentEnd = offset
  for (let from = window.at + 1; ; from = window.at) {
    const next = find(window.bytes.subarray(0, window.end), from)
    if (next !== -1) {
      hasZero ||= window.bytes.subarray(window.at, next).includes(0)
      window.at = next
      const isChanged = begins && !hasZero && window.bytes[next - 1] === changed?.endByte
      return { length: window.offset - offset, isChanged }
    }
    // The last bytes may be the beginning of a frame, which only the bytes after them can show.
    const skipTo = window.isAtEnd ? window.end : Math.max(from, window.end - markBytes + 1)
    const content = lastContent(window.bytes, window.at, skipTo)
    if (content !== -1) contentEnd = window.base + content + 1
    hasZero ||= window.bytes.subarray(window.at, skipTo).includes(0)
    window.at = skipTo
    if (window.available === 0 && window.isAtEnd) return { length: contentEnd - offset, isChanged: false }
    await window.fill(window.available + 1)
  }
}

/** Index of the last byte in a range that is not zero; -1 where all are. */
function lastContent(bytes: Buffer, from: number, to: number): number {
  for (let index = to - 1; index >= from; index--) if (bytes[index] !== 0) return index
  return -1
}
