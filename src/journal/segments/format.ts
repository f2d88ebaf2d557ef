// The frames of a segment: kind, length and CRC-32 of a payload, then the payload. All numbers are little-endian.
import { crc32 } from 'node:zlib'
import { z } from 'zod'
import { NumberedNames } from '../../lib/segments/numbered-names.ts'
import { engineSettingsSchema } from '../../schema/event.ts'
import { FRAME_BYTES_MAX } from '../limits.ts'

/** 2: batches with the columns of quotes. 3: feeds that heal, which tell so in `disconnect` and `reconnect`. */
export const FORMAT = 3
/** Kind, payload length, CRC of both and the payload, and four bytes that are zero. */
export const FRAME_HEAD_BYTES = 16
/** A copy of a segment whose sync failed, while it is written. */
export const COPY_NAME = 'copy.tmp'

export const segmentNames = new NumberedNames('events')
/** The first bytes of every frame. */
export const MAGIC = Buffer.from('MJ\xf5', 'latin1')
const KINDS = { header: 0x48, batch: 0x42, quotedBatch: 0x51, end: 0x45 } as const
export type FrameKind = keyof typeof KINDS

const [LENGTH_AT, CRC_AT, ZERO_AT] = [4, 8, 12]

/** Number of an event; 0: before the first. */
export const eventNo = z.int().min(0)

/** First frame of a segment, as JSON. Events from `firstEventNo` on that earlier segments hold are void: they were not whole when a new
 *  process went on behind them. */
export const headerSchema = z.object({
  /** Identity of the data folder, so that a segment of another one is not taken for its own. */
  folderId: z.string(),
  firstEventNo: eventNo.min(1),
  /** Events up to this one were durable when the segment was begun. */
  syncedEventNo: eventNo,
  runId: z.string(),
  /** Number of the `run` event with which an empty market began: this segment goes on from it. */
  originEventNo: eventNo.min(1),
  /** Whether the market is made up. */
  simulated: z.boolean(),
  settings: engineSettingsSchema,
})
export type SegmentHeader = z.infer<typeof headerSchema>

/** Writes the head of a frame whose payload is in place already. */
export function sealFrame(frame: Buffer, kind: FrameKind): Buffer {
  MAGIC.copy(frame)
  frame[MAGIC.length] = KINDS[kind]
  frame.writeUInt32LE(frame.length - FRAME_HEAD_BYTES, LENGTH_AT)
  frame.writeUInt32LE(0, ZERO_AT)
  frame.writeUInt32LE(checksum(frame), CRC_AT)
  return frame
}

const checksum = (frame: Buffer): number =>
  crc32(frame.subarray(FRAME_HEAD_BYTES), crc32(frame.subarray(0, CRC_AT)))

function jsonFrame(kind: FrameKind, value: object): Buffer {
  const text = JSON.stringify(value)
  const frame = Buffer.alloc(FRAME_HEAD_BYTES + Buffer.byteLength(text))
  frame.write(text, FRAME_HEAD_BYTES)
  return sealFrame(frame, kind)
}

export const headerFrame = (header: SegmentHeader): Buffer =>
  jsonFrame('header', { format: FORMAT, ...header })

/** The last frame of a sealed segment, written once its events are durable. */
export const endFrame = (lastEventNo: number): Buffer => jsonFrame('end', { lastEventNo })

const KIND_NAMES = Object.keys(KINDS) as FrameKind[]
const kindOf = (byte: number | undefined): FrameKind | null =>
  KIND_NAMES.find((kind) => KINDS[kind] === byte) ?? null

/** Whether a frame of events has the columns of quotes. */
export const hasQuotes = (frame: Buffer): boolean => kindOf(frame[MAGIC.length]) === 'quotedBatch'

export interface FrameHead {
  kind: FrameKind
  /** Of the whole frame. */
  bytes: number
}

/** What the 16 bytes at `at` say; null where no frame begins there. */
export function readFrameHead(bytes: Buffer, at: number): FrameHead | null {
  if (bytes.compare(MAGIC, 0, MAGIC.length, at, at + MAGIC.length) !== 0) return null
  const kind = kindOf(bytes[at + MAGIC.length])
  const length = bytes.readUInt32LE(at + LENGTH_AT)
  if (kind === null || length > FRAME_BYTES_MAX || bytes.readUInt32LE(at + ZERO_AT) !== 0) return null
  return { kind, bytes: FRAME_HEAD_BYTES + length }
}

/** Whether a frame is as it was written. */
export const isWhole = (frame: Buffer): boolean => frame.readUInt32LE(CRC_AT) === checksum(frame)
