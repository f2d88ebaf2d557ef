// Whether a Zstandard file is whole: Node's decompressor takes a cut one for a shorter one.
import { type FileHandle, open } from 'node:fs/promises'
import { errorMessage } from '../../lib/error-text.ts'

/** What is wrong with the end of a Zstandard file; null: nothing, or it is another file. The end of a gzip file is told by reading it. */
export async function findCut(path: string, signal: AbortSignal): Promise<string | null> {
  if (!/\.zst$/i.test(path)) return null
  try {
    const file = await open(path, 'r')
    try {
      await walkFrames(file, signal)
      return null
    } finally {
      await file.close()
    }
  } catch (error) {
    return errorMessage(error)
  }
}

/** Parts of a Zstandard frame (RFC 8878, 3.1) */
const ZSTD_MAGIC = 0xfd2fb528
const SKIPPABLE_MAGIC = 0x184d2a50
const SKIPPABLE_MASK = 0xfffffff0
const DICTIONARY_ID_BYTES = [0, 1, 2, 4] as const
const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const
const BLOCK_HEADER_BYTES = 3
const CHECKSUM_BYTES = 4
/** The type of a block that is one byte, repeated. */
const RUN = 1
const RESERVED = 3

/** Follows the lengths of frames and blocks, and decompresses nothing. */
async function walkFrames(file: FileHandle, signal: AbortSignal): Promise<void> {
  const { size } = await file.stat()
  if (size === 0) throw new Error('it is empty')
  for (let at = 0; at < size; ) {
    signal.throwIfAborted()
    const magic = (await readAt(file, at, 4)).readUInt32LE()
    at += 4
    if ((magic & SKIPPABLE_MASK) >>> 0 === SKIPPABLE_MAGIC)
      at += 4 + (await readAt(file, at, 4)).readUInt32LE()
    else if (magic === ZSTD_MAGIC) at = await walkFrame(file, at, signal)
    else throw new Error(`there is no frame at byte ${at - 4}`)
    if (at > size) throw unexpectedEnd()
  }
}

/** @returns where the frame ends */
async function walkFrame(file: FileHandle, from: number, signal: AbortSignal): Promise<number> {
  const [descriptor] = await readAt(file, from, 1)
  const isSingleSegment = (descriptor & 0b10_0000) !== 0
  const sizeBytes = descriptor >> 6 === 0 && isSingleSegment ? 1 : CONTENT_SIZE_BYTES[descriptor >> 6]
  let at = from + 1 + (isSingleSegment ? 0 : 1) + DICTIONARY_ID_BYTES[descriptor & 0b11] + sizeBytes
  for (let isLast = false; !isLast; ) {
    signal.throwIfAborted()
    const header = (await readAt(file, at, BLOCK_HEADER_BYTES)).readUIntLE(0, BLOCK_HEADER_BYTES)
    const type = (header >> 1) & 0b11
    if (type === RESERVED) throw new Error(`there is no block at byte ${at}`)
    isLast = (header & 1) === 1
    at += BLOCK_HEADER_BYTES + (type === RUN ? 1 : header >> 3)
  }
  return at + ((descriptor & 0b100) === 0 ? 0 : CHECKSUM_BYTES)
}

async function readAt(file: FileHandle, at: number, bytes: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(bytes), 0, bytes, at)
  if (bytesRead < bytes) throw unexpectedEnd()
  return buffer
}

const unexpectedEnd = (): Error => new Error('unexpected end of file')
