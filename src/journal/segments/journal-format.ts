// How the journal's files are read.
import { z } from 'zod'
import { safeParse } from '../../lib/safe-parse.ts'
import { NEXT_NAME } from '../../lib/segments/numbered-names.ts'
import type {
  EndHead,
  EntriesHead,
  FrameHead,
  HeaderHead,
  NewerHead,
  SegmentFormat,
} from '../../lib/segments/types.ts'
import { parseJson } from '../../lib/text/json-text.ts'
import { decodeBatchHead } from '../batch/batch-decoder.ts'
import {
  COPY_NAME,
  eventNo,
  FORMAT,
  FRAME_HEAD_BYTES,
  type FrameKind,
  headerSchema,
  isWhole,
  MAGIC,
  readFrameHead,
  type SegmentHeader,
  segmentNames,
} from './format.ts'

/** What a header says besides what all headers do, as in `SegmentHeader`. */
export type JournalHeader = HeaderHead &
  Pick<SegmentHeader, 'runId' | 'originEventNo' | 'simulated' | 'settings'>

const newerSchema = z.object({ format: z.number().gt(FORMAT) })
const endSchema = z.object({ lastEventNo: eventNo })

/** Null where the frame has no JSON of this form. */
const readJson = <Schema extends z.ZodType>(frame: Buffer, schema: Schema): z.infer<Schema> | null =>
  safeParse(schema, parseJson(frame.toString('utf8', FRAME_HEAD_BYTES))).data ?? null

function decodeHeader(frame: Buffer): JournalHeader | NewerHead | null {
  const newer = readJson(frame, newerSchema)
  if (newer !== null) return { kind: 'newer', format: newer.format, durableNo: 0 }
  const header = readJson(frame, headerSchema)
  if (header === null) return null
  const { folderId: owner, firstEventNo: firstNo, syncedEventNo: durableNo, ...more } = header
  return { kind: 'header', owner, firstNo, durableNo, ...more }
}

function decodeEnd(frame: Buffer): EndHead | null {
  const end = readJson(frame, endSchema)
  return end === null ? null : { kind: 'end', durableNo: end.lastEventNo }
}

const DECODERS: Readonly<Record<FrameKind, (frame: Buffer) => FrameHead<JournalHeader, EntriesHead> | null>> =
  { header: decodeHeader, batch: decodeBatchHead, quotedBatch: decodeBatchHead, end: decodeEnd }

export const journalFormat: SegmentFormat<JournalHeader, EntriesHead> = {
  version: FORMAT,
  names: segmentNames,
  headBytes: FRAME_HEAD_BYTES,
  lengthOf: (bytes, at) => readFrameHead(bytes, at)?.bytes ?? null,
  decode(frame) {
    const found = readFrameHead(frame, 0)
    if (found === null || frame.length < found.bytes || !isWhole(frame)) return null
    const head = DECODERS[found.kind](frame)
    return head === null ? null : { head, length: found.bytes }
  },
  find: (bytes, from) => bytes.indexOf(MAGIC, from),
  markBytes: MAGIC.length,
  // A segment has its name before its first batch is durable: a power cut may leave a part of it.
  hasDurableHeader: false,
  // A new process goes on behind the last whole batch, and uses the numbers behind it again.
  countsTo: (firstEventNo) => firstEventNo - 1,
  unreadable: ['EIO', 'EACCES'],
  isPassedOver: (name) => name === NEXT_NAME || name === COPY_NAME,
}
