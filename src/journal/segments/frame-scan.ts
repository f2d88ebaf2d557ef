// Finds the frames of a file and the byte ranges between them that are none. Holds one chunk, or one frame if that is larger.
import type { DiskFile } from '../../lib/disk/disk.ts'
import { SCAN_CHUNK_BYTES } from '../limits.ts'
import { FRAME_HEAD_BYTES, type FrameKind, isWhole, MAGIC, readFrameHead } from './format.ts'

export interface ScannedFrame {
  /** Null for a range of bytes that are no frame. */
  kind: FrameKind | null
  offset: number
  length: number
  /** The whole frame. A view, valid until the next item. */
  frame: Buffer
  /** Why the rest of the file, which this item stands for, could not be read. */
  error?: unknown
}

const NO_BYTES = Buffer.alloc(0)

/** A buffer that moves forward over a file. The bytes from `at` to `end` are not consumed yet. */
class FileWindow {
  bytes: Buffer
  at = 0
  end = 0
  isAtEnd = false
  /** Offset in the file of the first byte of `bytes`. */
  #base = 0
  readonly #file: DiskFile

  constructor(file: DiskFile, chunkBytes: number) {
    this.#file = file
    this.bytes = Buffer.allocUnsafeSlow(chunkBytes)
  }

  get available(): number {
    return this.end - this.at
  }

  /** Offset in the file of `at`, and of `end`. */
  get offset(): number {
    return this.#base + this.at
  }

  get endOffset(): number {
    return this.#base + this.end
  }

  /** Reads until `wanted` bytes are available or the file ends. */
  async fill(wanted: number): Promise<void> {
    while (this.available < wanted && !this.isAtEnd) {
      this.#makeRoom(wanted)
      const read = await this.#file.read(this.bytes.subarray(this.end), this.#base + this.end)
      if (read === 0) this.isAtEnd = true
      this.end += read
    }
  }

  #makeRoom(wanted: number): void {
    if (this.at > 0) {
      this.bytes.copyWithin(0, this.at, this.end)
      this.#base += this.at
      this.end -= this.at
      this.at = 0
    }
    if (wanted <= this.bytes.length) return
    const larger = Buffer.allocUnsafeSlow(wanted)
    this.bytes.copy(larger, 0, 0, this.end)
    this.bytes = larger
  }
}

/** Yields everything in a file in order; together the items cover each byte once. */
export async function* scanFrames(file: DiskFile): AsyncGenerator<ScannedFrame, void> {
  const fileBytes = await file.size()
  const window = new FileWindow(file, Math.max(FRAME_HEAD_BYTES, Math.min(fileBytes, SCAN_CHUNK_BYTES)))
  try {
    for (;;) {
      await window.fill(FRAME_HEAD_BYTES)
      if (window.available === 0) return
      const frame = (await readFrame(window)) ?? (await skipToFrame(window))
      yield frame
      window.at += frame.kind === null ? 0 : frame.length
    }
  } catch (error) {
    yield { ...invalidRange(window.endOffset, 0), error }
  }
}

const invalidRange = (offset: number, length: number): ScannedFrame => ({
  kind: null,
  offset,
  length,
  frame: NO_BYTES,
})

/** The frame at the start of the window; null where there is none. Does not move the window. */
async function readFrame(window: FileWindow): Promise<ScannedFrame | null> {
  if (window.available < FRAME_HEAD_BYTES) return null
  const head = readFrameHead(window.bytes, window.at)
  if (head === null) return null
  await window.fill(head.bytes)
  if (window.available < head.bytes) return null
  const frame = window.bytes.subarray(window.at, window.at + head.bytes)
  return isWhole(frame) ? { kind: head.kind, offset: window.offset, length: head.bytes, frame } : null
}

/** Moves the window to the next place at which a frame may begin, or to the end of the file. @returns what was skipped */
async function skipToFrame(window: FileWindow): Promise<ScannedFrame> {
  const from = window.offset
  window.at++
  for (;;) {
    await window.fill(MAGIC.length)
    const found = window.bytes.subarray(0, window.end).indexOf(MAGIC, window.at)
    if (found !== -1) {
      window.at = found
      return invalidRange(from, window.offset - from)
    }
    // The first bytes of the next frame may be the last ones here.
    window.at = window.isAtEnd ? window.end : Math.max(window.at, window.end - MAGIC.length + 1)
    if (window.isAtEnd) return invalidRange(from, window.offset - from)
    await window.fill(window.bytes.length)
  }
}
