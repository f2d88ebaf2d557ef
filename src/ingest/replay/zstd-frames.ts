// The frames of a Zstandard file. Node's decompressor reads the first frame alone, and takes a cut one for a shorter one.
import { type FileHandle, open } from 'node:fs/promises'

/** Parts of a Zstandard frame (RFC 8878, 3.1) */
const ZSTD_MAGIC = 0xfd2fb528
const MAGIC_BYTES = 4
const SKIPPABLE_MAGIC = 0x184d2a50
const SKIPPABLE_MASK = 0xfffffff0
const DICTIONARY_ID_BYTES = [0, 1, 2, 4] as const
const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const
const BLOCK_HEADER_BYTES = 3
const CHECKSUM_BYTES = 4
/** The type of a block that is one byte, repeated. */
const RUN = 1
const RESERVED = 3

/**
 * The frames with content of a Zstandard file, in order: each from its first byte to before `to`. It follows the lengths of frames and blocks, and decompresses nothing.
 * @throws an error where the file was cut, or a frame is none
 */
export async function* zstdFrames(path: string): AsyncGenerator<{ from: number; to: number }> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    for (let at = 0; at < size; ) {
      const magic = (await readAt(file, at, MAGIC_BYTES)).readUInt32LE()
      const isSkipped = (magic & SKIPPABLE_MASK) >>> 0 === SKIPPABLE_MAGIC
      if (!isSkipped && magic !== ZSTD_MAGIC) throw new Error(`there is no frame at byte ${at}`)
      const from = at
      at = isSkipped
        ? at + 2 * MAGIC_BYTES + (await readAt(file, at + MAGIC_BYTES, 4)).readUInt32LE()
        : await walkFrame(file, at + MAGIC_BYTES)
      if (at > size) throw unexpectedEnd()
      if (!isSkipped) yield { from, to: at }
    }
  } finally {
    await file.close()
  }
}

/** @returns where the frame ends */
async function walkFrame(file: FileHandle, from: number): Promise<number> {
  const [descriptor] = await readAt(file, from, 1)
  const isSingleSegment = (descriptor & 0b10_0000) !== 0
  const sizeBytes = descriptor >> 6 === 0 && isSingleSegment ? 1 : CONTENT_SIZE_BYTES[descriptor >> 6]
  let at = from + 1 + (isSingleSegment ? 0 : 1) + DICTIONARY_ID_BYTES[descriptor & 0b11] + sizeBytes
  for (let isLast = false; !isLast; ) {
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
